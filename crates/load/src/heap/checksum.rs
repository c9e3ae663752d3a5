//! Data checksums: `pg_checksum_page` of PostgreSQL's `checksum_impl.h`, a 32-lane FNV-1a with a shift.

use super::page::SIZE;

const LANES: usize = 32;
const PRIME: u32 = 16_777_619;
/// The lanes begin with these, so that equal data in different lanes do not cancel out.
const BASES: [u32; LANES] = [
    0x5B1F_36E9,
    0xB852_5960,
    0x02AB_50AA,
    0x1DE6_6D2A,
    0x79FF_467A,
    0x9BB9_F8A3,
    0x217E_7CD2,
    0x83E1_3D2C,
    0xF8D4_474F,
    0xE39E_B970,
    0x42C6_AE16,
    0x9932_16FA,
    0x7B09_3B5D,
    0x98DA_FF3C,
    0xF718_902A,
    0x0B1C_9CDB,
    0xE58F_764B,
    0x1876_36BC,
    0x5D7B_3BB1,
    0xE73D_E7DE,
    0x92BE_C979,
    0xCCA6_C0B2,
    0x304A_0979,
    0x85AA_43D4,
    0x7831_25BB,
    0x6CA8_EAA2,
    0xE407_EAC6,
    0x4B5C_FC3E,
    0x9FBF_8C76,
    0x15CA_20BE,
    0xF2CA_9FD3,
    0x959B_D756,
];

#[inline(always)]
fn mix(sums: &mut [u32; LANES], row: &[u32; LANES]) {
    for (sum, v) in sums.iter_mut().zip(row) {
        let t = *sum ^ v;
        *sum = t.wrapping_mul(PRIME) ^ (t >> 17);
    }
}

/// The checksum of a page, whose own field must be 0; `block` is its number in the fork.
pub fn checksum(page: &[u8], block: u32) -> u16 {
    debug_assert_eq!(page.len(), SIZE);
    let mut result = pulp::Arch::new().dispatch(Lanes(page));
    result ^= block;
    (result % 65_535 + 1) as u16
}

/// The loop over the lanes, compiled for the widest vectors that this machine has.
struct Lanes<'a>(&'a [u8]);

impl pulp::WithSimd for Lanes<'_> {
    type Output = u32;

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _: S) -> u32 {
        let mut sums = BASES;
        for row in self.0.chunks_exact(LANES * 4) {
            let mut words = [0; LANES];
            for (word, bytes) in words.iter_mut().zip(row.chunks_exact(4)) {
                *word = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
            }
            mix(&mut sums, &words);
        }
        // Two more rounds of zeroes, so that the last data reach all bits.
        mix(&mut sums, &[0; LANES]);
        mix(&mut sums, &[0; LANES]);
        sums.iter().fold(0, |a, b| a ^ b)
    }
}

/// Writes the checksum into a page.
pub fn seal(page: &mut [u8], block: u32) {
    let sum = checksum(page, block);
    super::page::put(page, 8, &sum.to_le_bytes());
}

//! The hash and permutation functions of pgbench's expressions.

use crate::Prng;

/// FNV-1a over the eight bytes of `value`, least significant first, started at the offset basis XOR `seed`.
/// <http://www.isthe.com/chongo/tech/comp/fnv/>
pub fn fnv1a(value: i64, seed: u64) -> i64 {
    let mut result = 0xcbf2_9ce4_8422_2325u64 ^ seed;
    for octet in value.to_le_bytes() {
        result = (result ^ u64::from(octet)).wrapping_mul(0x100_0000_01b3);
    }
    result as i64
}

/// MurmurHash2, 64-bit, of the eight bytes of `value`.
pub fn murmur2(value: i64, seed: u64) -> i64 {
    const MUL: u64 = 0xc6a4_a793_5bd1_e995;
    const ROT: u32 = 47;
    let mut k = (value as u64).wrapping_mul(MUL);
    k ^= k >> ROT;
    k = k.wrapping_mul(MUL);
    // MUL times the length of the key, eight.
    let mut result = seed ^ 0x3525_3c9a_de8f_4ca8;
    result = (result ^ k).wrapping_mul(MUL);
    result ^= result >> ROT;
    result = result.wrapping_mul(MUL);
    (result ^ (result >> ROT)) as i64
}

/// The image of `value` under the pseudorandom permutation of `0..size` that `seed` selects.
pub fn permute(value: i64, size: i64, seed: i64) -> i64 {
    if size < 2 {
        return 0;
    }
    let mut rng = Prng::from_seed(seed as u64);
    let size = size as u64;
    let mut v = value as u64 % size;
    // Each round scrambles the lower and then the upper power-of-two part, which overlap, and rotates the whole.
    let bits = size.ilog2();
    let mask = (1u64 << bits) - 1;
    let scramble = |x: u64, m: u64, r: u64| {
        let x = (x.wrapping_mul(m) ^ r) & mask;
        ((x << 1) & mask) | (x >> (bits - 1))
    };
    for _ in 0..6 {
        let m = (rng.next_u64() & mask) | 1;
        let r = rng.next_u64() & mask;
        if v <= mask {
            v = scramble(v, m, r);
        }
        let m = (rng.next_u64() & mask) | 1;
        let r = rng.next_u64() & mask;
        let t = size - 1 - v;
        if t <= mask {
            v = size - 1 - scramble(t, m, r);
        }
        let r = rng.range_u64(0, size - 1);
        v = ((u128::from(v) + u128::from(r)) % u128::from(size)) as u64;
    }
    v as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permute_is_a_bijection() {
        for size in [2i64, 3, 7, 8, 9, 100, 1000] {
            let mut seen = vec![false; size as usize];
            for i in 0..size {
                let p = permute(i, size, 12345) as usize;
                assert!(!seen[p], "{size}: {p} twice");
                seen[p] = true;
            }
        }
    }

    #[test]
    fn hashes_are_pgbenchs() {
        // src/bin/pgbench/t/001_pgbench_with_server.pl has these of 10 with seed 5432.
        assert_eq!(fnv1a(10, 5432), -7_793_829_335_365_542_153);
        assert_eq!(murmur2(10, 5432), -5_817_877_081_768_721_676);
        assert_eq!((fnv1a(-1, 0), murmur2(-1, 0)), (-8_289_690_350_564_177_859, 4_219_408_603_045_787_357));
    }
}

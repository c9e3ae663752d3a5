//! Values as clause 2.1 and 4.3.2 of the standard have them: NURand, last names, strings of letters and digits.

use pgdyno_base::Prng;

/// Syllables of last names (clause 4.3.2.3).
const SYLLABLES: [&str; 10] = ["BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"];
/// Least and greatest distance of the constants for last names in the load and in the run, and the distances between them
/// that are not allowed (clause 2.1.6.1).
const DELTA: (u64, u64) = (65, 119);
const FORBIDDEN: [u64; 2] = [96, 112];

/// The constants C of NURand, one for each of its ranges. All clients of a run have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Constants {
    /// Constant for last names (A = 255) while the tables are populated.
    pub last_name_load: u64,
    /// Constant for last names while transactions run.
    pub last_name_run: u64,
    /// Constant for customer numbers (A = 1023).
    pub customer: u64,
    /// Constant for item numbers (A = 8191).
    pub item: u64,
}

impl Constants {
    /// Returns the constants that a seed of the data selects, within the standard's bounds.
    pub fn of_seed(seed: u64) -> Constants {
        let mut rng = Prng::from_seed(seed ^ 0x4e55_5261_6e64);
        let last_name_load = rng.range_u64(0, 255);
        let last_name_run = loop {
            let c = rng.range_u64(0, 255);
            if may_follow(last_name_load, c) {
                break c;
            }
        };
        Constants { last_name_load, last_name_run, customer: rng.range_u64(0, 1023), item: rng.range_u64(0, 8191) }
    }
}

/// Returns true if last names may be drawn with C = `run` from tables that were populated with C = `load`.
pub fn may_follow(load: u64, run: u64) -> bool {
    let delta = load.abs_diff(run);
    (DELTA.0..=DELTA.1).contains(&delta) && !FORBIDDEN.contains(&delta)
}

/// NURand(A, x, y) with the constant `c` (clause 2.1.6).
#[inline]
pub fn nurand(rng: &mut Prng, a: u64, c: u64, x: u64, y: u64) -> u64 {
    let both = rng.range_u64(0, a) | rng.range_u64(x, y);
    (both + c) % (y - x + 1) + x
}

/// Appends the last name of a number from 0 to 999.
#[inline]
pub fn last_name(number: u64, out: &mut Vec<u8>) {
    for digit in [number / 100, number / 10 % 10, number % 10] {
        out.extend_from_slice(SYLLABLES[digit as usize].as_bytes());
    }
}

/// Appends between `least` and `most` letters and digits; a `draft` has the length alone.
#[inline]
pub fn letters(rng: &mut Prng, least: u64, most: u64, draft: bool, out: &mut Vec<u8>) {
    let length = rng.range_u64(least, most) as usize;
    characters(rng, length, LETTERS, draft, out);
}

/// Appends `count` digits; a `draft` has the length alone.
#[inline]
pub fn digits(rng: &mut Prng, count: usize, draft: bool, out: &mut Vec<u8>) {
    characters(rng, count, DIGITS, draft, out);
}

/// Number of the characters of [`character`] to draw from.
const DIGITS: u32 = 10;
const LETTERS: u32 = 62;
/// Characters that are made together.
const TOGETHER: usize = 32;

#[inline]
fn characters(rng: &mut Prng, length: usize, of: u32, draft: bool, out: &mut Vec<u8>) {
    // A key of their own: what comes after them does not depend on whether they are drawn.
    let key = rng.next_u64();
    let start = out.len();
    if draft {
        out.resize(start + length, b'x');
        return;
    }
    out.resize(start + length.next_multiple_of(TOGETHER), 0);
    pulp::Arch::new().dispatch(Characters { key, of, out: &mut out[start..] });
    out.truncate(start + length);
}

/// The loop over them, compiled for the widest vectors that this machine has. `out` holds a multiple of [`TOGETHER`].
struct Characters<'a> {
    key: u64,
    of: u32,
    out: &'a mut [u8],
}

impl pulp::WithSimd for Characters<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _: S) {
        for (n, characters) in self.out.chunks_exact_mut(TOGETHER).enumerate() {
            let mut drawn = [0; TOGETHER / 2];
            for (i, bits) in drawn.iter_mut().enumerate() {
                *bits = hashed(self.key, (n * TOGETHER / 2 + i) as u32);
            }
            for (pair, bits) in characters.chunks_exact_mut(2).zip(drawn) {
                pair.copy_from_slice(&[character(bits & 0xffff, self.of), character(bits >> 16, self.of)]);
            }
        }
    }
}

/// A random number of 32 bits, a function of a key and a count: the mixing of `lowbias32` (Chris Wellons), half of the key
/// before it, half within.
#[inline(always)]
fn hashed(key: u64, count: u32) -> u32 {
    let mut v = (key as u32) ^ count.wrapping_mul(0x9E37_79B9);
    v = (v ^ (v >> 16)).wrapping_mul(0x21F0_AAAD);
    v = (v ^ (v >> 15)).wrapping_add((key >> 32) as u32).wrapping_mul(0x735A_2D97);
    v ^ (v >> 15)
}

/// One of the first `of` digits, capitals and small letters, which is their codes' order, by 16 random bits: each is as likely
/// as can be, within 0.1%.
#[inline(always)]
fn character(bits: u32, of: u32) -> u8 {
    let number = ((bits * of) >> 16) as u8;
    let capital = if number >= 10 { b'A' - b'9' - 1 } else { 0 };
    let small = if number >= 36 { b'a' - b'Z' - 1 } else { 0 };
    b'0' + number + capital + small
}

/// Appends between 26 and 50 letters and digits; in a tenth of the rows the word ORIGINAL stands somewhere in them.
#[inline]
pub fn data(rng: &mut Prng, draft: bool, out: &mut Vec<u8>) {
    const WORD: &[u8] = b"ORIGINAL";
    let start = out.len();
    letters(rng, 26, 50, draft, out);
    if rng.range_u64(1, 10) == 1 {
        let at = start + rng.range_u64(0, (out.len() - start - WORD.len()) as u64) as usize;
        out[at..at + WORD.len()].copy_from_slice(WORD);
    }
}

/// Numbers from 0 to `n - 1` in a random order (clause 4.3.3.1: a random permutation).
pub fn permutation(rng: &mut Prng, n: u32) -> Vec<u32> {
    let mut out: Vec<u32> = (0..n).collect();
    for i in (1..out.len()).rev() {
        out.swap(i, rng.range_u64(0, i as u64) as usize);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_names_are_those_of_the_standard() {
        let name = |n| {
            let mut out = Vec::new();
            last_name(n, &mut out);
            String::from_utf8(out).unwrap_or_default()
        };
        // Clause 4.3.2.3 has this example.
        assert_eq!(name(371), "PRICALLYOUGHT");
        assert_eq!((name(0), name(999)), ("BARBARBAR".into(), "EINGEINGEING".into()));
    }

    #[test]
    fn constants_are_within_the_standards_bounds() {
        for seed in 0..2000 {
            let c = Constants::of_seed(seed);
            let delta = c.last_name_load.abs_diff(c.last_name_run);
            assert!((65..=119).contains(&delta) && delta != 96 && delta != 112, "{c:?}");
            assert!(c.last_name_load <= 255 && c.last_name_run <= 255 && c.customer <= 1023 && c.item <= 8191);
        }
        assert_ne!(Constants::of_seed(1), Constants::of_seed(2));
    }

    /// Checks NURand the slow and obvious way: its density is the density over all pairs.
    #[test]
    fn nurand_is_what_its_formula_says() {
        let (a, c, x, y) = (15, 7, 1, 40);
        let mut expected = vec![0f64; 41];
        for i in 0..=a {
            for j in x..=y {
                expected[(((i | j) + c) % (y - x + 1) + x) as usize] += 1.0 / (16.0 * 40.0);
            }
        }
        let (mut rng, mut seen, n) = (Prng::from_seed(3), vec![0f64; 41], 400_000);
        (0..n).for_each(|_| seen[nurand(&mut rng, a, c, x, y) as usize] += 1.0);
        for (value, p) in expected.iter().enumerate().skip(1) {
            let (mean, sigma) = (p * f64::from(n), (p * (1.0 - p) * f64::from(n)).sqrt());
            assert!((seen[value] - mean).abs() <= 5.0 * sigma + 1e-9, "{value}: {} of {mean}", seen[value]);
        }
    }

    #[test]
    fn a_tenth_of_the_data_is_original_and_lengths_are_kept() {
        let (mut rng, mut original) = (Prng::from_seed(5), 0);
        for _ in 0..20_000 {
            let mut out = Vec::new();
            data(&mut rng, false, &mut out);
            assert!((26..=50).contains(&out.len()) && out.is_ascii());
            original += u32::from(out.windows(8).any(|w| w == b"ORIGINAL"));
        }
        assert!((1_790..=2_210).contains(&original), "{original}");
    }

    #[test]
    fn characters_are_those_and_each_as_likely() {
        let all = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
        for of in [DIGITS, LETTERS] {
            let mut counts = [0u32; 256];
            for bits in 0..=u32::from(u16::MAX) {
                assert_eq!(character(bits, of), all[((bits * of) >> 16) as usize]);
                counts[usize::from(character(bits, of))] += 1;
            }
            let each = (1 << 16) / of;
            assert!(all[..of as usize].iter().all(|c| (each..=each + 1).contains(&counts[usize::from(*c)])));
        }
    }

    /// Tests with chi-squared: single letters, neighbours, and the same position in strings whose keys differ by one.
    #[test]
    fn letters_do_not_depend_on_each_other() {
        let letters = |key: u64| {
            let mut out = vec![0; 128];
            pulp::Arch::new().dispatch(Characters { key, of: LETTERS, out: &mut out });
            out
        };
        let mut rng = Prng::from_seed(1);
        for key in [0, 1, 1 << 32, rng.next_u64()] {
            let (mut single, mut next, mut above) = ([0f64; 128], vec![0f64; 1 << 14], vec![0f64; 1 << 14]);
            let mut last = letters(key.wrapping_sub(1));
            for k in 0..2_000 {
                let text = letters(key.wrapping_add(k));
                text.iter().for_each(|c| single[usize::from(*c)] += 1.0);
                text.windows(2).for_each(|w| next[usize::from(w[0]) << 7 | usize::from(w[1])] += 1.0);
                text.iter().zip(&last).for_each(|(a, b)| above[usize::from(*a) << 7 | usize::from(*b)] += 1.0);
                last = text;
            }
            for (counts, cells) in [(&single[..], 62.0), (&next, 62.0 * 62.0), (&above, 62.0 * 62.0)] {
                let mean = counts.iter().sum::<f64>() / cells;
                let seen = counts.iter().filter(|n| **n > 0.0);
                let chi = seen.map(|n| (n - mean).powi(2) / mean).sum::<f64>();
                // Six standard deviations of chi-squared either way; the uneven 0.1% is far below.
                let (free, bound) = (cells - 1.0, 6.0 * (2.0 * (cells - 1.0f64)).sqrt());
                assert!((chi - free).abs() < bound, "{key}: {chi} of {free}");
            }
        }
    }

    #[test]
    fn strings_have_their_lengths_and_what_follows_does_not_depend_on_drafts() {
        for length in [0, 1, 4, 24, 31, 32, 33, 64, 500] {
            let (mut rng, mut out) = (Prng::from_seed(1), b"x".to_vec());
            letters(&mut rng, length, length, false, &mut out);
            assert!(out.len() as u64 == length + 1 && out[1..].iter().all(u8::is_ascii_alphanumeric));
            let (mut other, mut draft) = (Prng::from_seed(1), Vec::new());
            letters(&mut other, length, length, true, &mut draft);
            assert_eq!((draft.len() as u64, other.next_u64()), (length, rng.next_u64()));
        }
    }

    #[test]
    fn permutations_hold_every_number_once() {
        let mut p = permutation(&mut Prng::from_seed(1), 3000);
        assert_ne!(p[..10], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
        p.sort_unstable();
        assert!(p.iter().enumerate().all(|(i, v)| i as u32 == *v));
    }
}

//! PostgreSQL's pseudorandom generator, so that equal seeds give the values that `pgbench` draws.
//!
//! The generator is xoroshiro128** 1.0 (Blackman and Vigna, 2018), seeded through splitmix64, as in
//! PostgreSQL's `src/common/pg_prng.c`. The conformance tests compare whole seeded runs with the installed pgbench.

/// One stream of random numbers. Cheap to copy; 16 bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prng {
    s0: u64,
    s1: u64,
}

/// The next number of splitmix64 (Steele, Lea and Flood, 2014), a sequence that begins anywhere: good for many short
/// streams, since each number is computed apart from the others.
#[inline]
pub fn splitmix64(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut v = *state;
    v = (v ^ (v >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    v = (v ^ (v >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    v ^ (v >> 31)
}

impl Prng {
    /// A stream that depends on `seed` alone.
    pub fn from_seed(mut seed: u64) -> Prng {
        let s0 = splitmix64(&mut seed);
        let s1 = splitmix64(&mut seed);
        if s0 == 0 && s1 == 0 {
            // The all-zero state is a fixed point of the generator; PostgreSQL replaces it by these constants.
            return Prng { s0: 0x5851_F42D_4C95_7F2D, s1: 0x1405_7B7E_F767_814F };
        }
        Prng { s0, s1 }
    }

    /// A new stream seeded by the next number of this one: how pgbench derives its streams from one base sequence.
    pub fn split(&mut self) -> Prng {
        Prng::from_seed(self.next_u64())
    }

    /// The next 64 random bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        let s0 = self.s0;
        let sx = self.s1 ^ s0;
        let val = s0.wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        self.s0 = s0.rotate_left(24) ^ sx ^ (sx << 16);
        self.s1 = sx.rotate_left(37);
        val
    }

    /// Uniform in `min..=max`; `min` when the range is empty.
    #[inline]
    pub fn range_u64(&mut self, min: u64, max: u64) -> u64 {
        if max <= min {
            return min;
        }
        let range = max - min;
        // Rejection over the smallest power of two that holds the range: unbiased, fewer than two draws on average.
        let shift = range.leading_zeros();
        loop {
            let val = self.next_u64() >> shift;
            if val <= range {
                return min + val;
            }
        }
    }

    /// Uniform in `min..=max`; `min` when the range is empty.
    #[inline]
    pub fn range_i64(&mut self, min: i64, max: i64) -> i64 {
        if max <= min {
            return min;
        }
        let offset = self.range_u64(0, (max as u64).wrapping_sub(min as u64));
        (min as u64).wrapping_add(offset) as i64
    }

    /// Uniform in `[0, 1)` with 52 random bits.
    #[inline]
    pub fn f64(&mut self) -> f64 {
        (self.next_u64() >> 12) as f64 * (1.0 / (1u64 << 52) as f64)
    }

    /// Standard normal, by the Box-Muller transform (one of its two values; PostgreSQL discards the other too).
    #[inline]
    pub fn normal(&mut self) -> f64 {
        let u1 = 1.0 - self.f64();
        let u2 = 1.0 - self.f64();
        (-2.0 * u1.ln()).sqrt() * (2.0 * std::f64::consts::PI * u2).sin()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_hold_their_bounds() {
        let mut p = Prng::from_seed(7);
        for _ in 0..10_000 {
            assert!((3..=9).contains(&p.range_i64(3, 9)));
            let f = p.f64();
            assert!((0.0..1.0).contains(&f));
        }
        assert_eq!(p.range_i64(5, 5), 5);
        assert_eq!(p.range_i64(5, 2), 5);
        let _ = p.range_i64(i64::MIN, i64::MAX);
    }

    #[test]
    fn every_value_of_a_range_is_drawn_evenly() {
        let mut p = Prng::from_seed(1);
        let mut seen = [0u32; 10];
        for _ in 0..100_000 {
            seen[p.range_u64(0, 9) as usize] += 1;
        }
        // 10,000 expected, standard deviation 95: five of them either way.
        assert!(seen.iter().all(|n| (9_525..=10_475).contains(n)), "{seen:?}");
    }

    #[test]
    fn equal_seeds_give_equal_streams() {
        let (mut a, mut b) = (Prng::from_seed(42), Prng::from_seed(42));
        let (mut a2, mut b2) = (a.split(), b.split());
        assert_eq!(a2.next_u64(), b2.next_u64());
        assert_eq!(a.next_u64(), b.next_u64());
        assert_ne!(Prng::from_seed(1).next_u64(), Prng::from_seed(2).next_u64());
    }
}

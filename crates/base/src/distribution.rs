//! Integers drawn from the distributions that pgbench's `random_*` functions offer.
//!
//! Parameters are checked by the caller (the script crate knows where to point); the formulas and the order in which
//! random numbers are taken are pgbench's, so that equal seeds give equal values.

use crate::Prng;

/// Truncated normal over `min..=max`: the middle is hit most; `parameter` (at least 2) standard deviations fit
/// between the middle and either end.
#[inline]
pub fn gaussian(rng: &mut Prng, min: i64, max: i64, parameter: f64) -> i64 {
    let z = loop {
        let z = rng.normal();
        // Put this way, a parameter that is no number ends the loop, as it does in pgbench.
        if !(z < -parameter || z >= parameter) {
            break z;
        }
    };
    scale(min, max, (z + parameter) / (parameter * 2.0))
}

/// Truncated exponential over `min..=max`: `min` is hit most, the more so the larger `parameter` (above 0).
#[inline]
pub fn exponential(rng: &mut Prng, min: i64, max: i64, parameter: f64) -> i64 {
    let cut = (-parameter).exp();
    let uniform = 1.0 - rng.f64();
    scale(min, max, -(cut + (1.0 - cut) * uniform).ln() / parameter)
}

/// Zipfian over `min..=max` with exponent `s` in 1.001..=1000: `min` is hit most.
/// Devroye, "Non-Uniform Random Variate Generation", pages 550-551.
pub fn zipfian(rng: &mut Prng, min: i64, max: i64, s: f64) -> i64 {
    let n = max.wrapping_sub(min).wrapping_add(1);
    if n <= 1 {
        return min;
    }
    let b = 2f64.powf(s - 1.0);
    loop {
        let u = rng.f64();
        let v = rng.f64();
        let x = u.powf(-1.0 / (s - 1.0)).floor();
        let t = (1.0 + 1.0 / x).powf(s - 1.0);
        if v * x * (t - 1.0) / (b - 1.0) <= t / b && x <= n as f64 {
            return min - 1 + x as i64;
        }
    }
}

/// The gap to the next arrival of a Poisson process whose mean gap is `mean` (any unit), rounded to that unit.
#[inline]
pub fn poisson_gap(rng: &mut Prng, mean: f64) -> u64 {
    let uniform = 1.0 - rng.f64();
    (-uniform.ln() * mean + 0.5) as u64
}

/// `fraction` of the way (in `[0, 1)`) through `min..=max`.
#[inline]
fn scale(min: i64, max: i64, fraction: f64) -> i64 {
    let width = max.wrapping_sub(min).wrapping_add(1);
    min.wrapping_add((width as f64 * fraction) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaussian_has_its_mean_and_width() {
        let mut rng = Prng::from_seed(3);
        let (n, p) = (200_000, 10.0);
        let draws: Vec<f64> = (0..n).map(|_| gaussian(&mut rng, 1, 1_000_000, p) as f64).collect();
        let mean = draws.iter().sum::<f64>() / n as f64;
        let sd = (draws.iter().map(|d| (d - mean).powi(2)).sum::<f64>() / n as f64).sqrt();
        // The half width holds `p` standard deviations.
        assert!((sd - 500_000.0 / p).abs() < 500.0, "standard deviation {sd}");
        assert!((mean - 500_000.5).abs() < 600.0, "mean {mean}");
    }

    #[test]
    fn all_stay_within_bounds() {
        let mut rng = Prng::from_seed(9);
        for _ in 0..20_000 {
            assert!((10..=20).contains(&gaussian(&mut rng, 10, 20, 2.0)));
            assert!((10..=20).contains(&exponential(&mut rng, 10, 20, 3.0)));
            assert!((10..=20).contains(&zipfian(&mut rng, 10, 20, 1.5)));
        }
    }

    #[test]
    fn poisson_gaps_have_their_mean() {
        let mut rng = Prng::from_seed(5);
        let mean = (0..100_000).map(|_| poisson_gap(&mut rng, 1000.0)).sum::<u64>() as f64 / 1e5;
        assert!((mean - 1000.0).abs() < 16.0, "mean gap {mean}");
    }
}

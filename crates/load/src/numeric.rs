//! A `numeric` as PostgreSQL has it: digits to the base 10,000, without zeroes at either end (`numeric.c`).

/// To the base 10,000.
const BASE: u64 = 10_000;
/// Decimal digits in one of them.
const DECIMALS: u32 = 4;
/// Digits of a 64-bit value with any scale below 16.
const MOST: usize = 8;

/// A value's digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digits {
    /// The most significant first; only the first `count` count.
    pub digits: [u16; MOST],
    /// Number of digits; zero if the value is 0.
    pub count: usize,
    /// The first one's power of 10,000.
    pub weight: i16,
    /// Below 0.
    pub negative: bool,
    /// Decimal digits behind the point that are shown.
    pub scale: u8,
}

impl Digits {
    /// Returns the digits of `value`, which is in units of 10^-scale.
    pub fn of(value: i64, scale: u8) -> Digits {
        debug_assert!(scale < 16);
        let fraction = u32::from(scale).div_ceil(DECIMALS);
        // So that the point stands between two digits.
        let mut rest = u128::from(value.unsigned_abs()) * u128::from(10u64.pow(fraction * DECIMALS - u32::from(scale)));
        let mut reversed = [0u16; MOST];
        let mut n = 0;
        while rest > u128::from(u64::MAX) {
            reversed[n] = (rest % u128::from(BASE)) as u16;
            rest /= u128::from(BASE);
            n += 1;
        }
        // Nearly all values are short: 128 bits are many times slower to divide.
        let mut rest = rest as u64;
        while rest > 0 {
            reversed[n] = (rest % BASE) as u16;
            rest /= BASE;
            n += 1;
        }
        let skipped = reversed[..n].iter().take_while(|d| **d == 0).count();
        let mut digits = [0; MOST];
        let count = n - skipped;
        for (to, from) in digits.iter_mut().zip(reversed[skipped..n].iter().rev()) {
            *to = *from;
        }
        let weight = if count == 0 { 0 } else { n as i16 - 1 - fraction as i16 };
        Digits { digits, count, weight, negative: value < 0, scale }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digits(value: i64, scale: u8) -> (Vec<u16>, i16, bool) {
        let d = Digits::of(value, scale);
        (d.digits[..d.count].to_vec(), d.weight, d.negative)
    }

    #[test]
    fn digits_are_those_of_the_server() {
        assert_eq!(digits(0, 2), (vec![], 0, false));
        assert_eq!(digits(-1000, 2), (vec![10], 0, true));
        assert_eq!(digits(1234, 2), (vec![12, 3400], 0, false));
        assert_eq!(digits(1, 2), (vec![100], -1, false));
        assert_eq!(digits(30_000_000, 2), (vec![30], 1, false));
        assert_eq!(digits(5_000_000, 2), (vec![5], 1, false));
        assert_eq!(digits(1999, 4), (vec![1999], -1, false));
        assert_eq!(digits(i64::MAX, 2), (vec![9, 2233, 7203, 6854, 7758, 700], 4, false));
    }
}

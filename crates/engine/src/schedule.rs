//! When transactions are due in an open loop.

use pgdyno_base::{Nanos, Prng, distribution};

/// A Poisson process: independent gaps with an exponential distribution. It goes on whether or not anybody keeps up, so
/// that waiting is measured and not left out ("coordinated omission").
#[derive(Clone, Debug)]
pub struct Arrivals {
    rng: Prng,
    mean_gap: f64,
    next: Nanos,
    end: Nanos,
}

impl Arrivals {
    /// `rate` per second from `start` until `end`.
    pub fn poisson(rate: f64, start: Nanos, end: Nanos, rng: Prng) -> Arrivals {
        let mut this = Arrivals { rng, mean_gap: 1e9 / rate, next: start, end };
        this.advance();
        this
    }

    fn advance(&mut self) {
        self.next += Nanos(distribution::poisson_gap(&mut self.rng, self.mean_gap));
    }

    /// When the next transaction is due; `None` when none is due before the end.
    pub fn peek(&self) -> Option<Nanos> {
        (self.next < self.end).then_some(self.next)
    }

    /// Takes the next transaction, if it is due at `now`.
    pub fn take(&mut self, now: Nanos) -> Option<Nanos> {
        let due = self.peek().filter(|due| *due <= now)?;
        self.advance();
        Some(due)
    }

    /// No transaction is due from `now` on.
    pub fn stop(&mut self, now: Nanos) {
        self.end = Nanos(self.end.0.min(now.0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrivals_keep_their_rate_and_do_not_wait_for_anybody() {
        let mut a = Arrivals::poisson(1000.0, Nanos::ZERO, Nanos::from_secs(100), Prng::from_seed(1));
        let mut n = 0;
        // Nobody looks for 99 seconds; the transactions that were due are all there.
        while a.take(Nanos::from_secs(99)).is_some() {
            n += 1;
        }
        assert!((97_500..100_500).contains(&n), "{n}");
        while a.take(Nanos::MAX).is_some() {
            n += 1;
        }
        // 100,000 expected, standard deviation 316.
        assert!((98_400..101_600).contains(&n), "{n}");
        assert_eq!(a.peek(), None);
    }
}

//! When transactions are due in an open loop.

use crate::plan::Rate;
use pgdyno_base::{Nanos, Prng, distribution};

/// A Poisson process, or even distances. It goes on whether or not anybody keeps up, so that waiting is measured and not
/// left out ("coordinated omission").
#[derive(Clone, Debug)]
pub struct Arrivals {
    rng: Prng,
    rate: Rate,
    start: Nanos,
    next: Nanos,
    end: Nanos,
}

impl Arrivals {
    /// Arrivals at `rate` from `start` until `end`.
    pub fn new(rate: Rate, start: Nanos, end: Nanos, rng: Prng) -> Arrivals {
        Arrivals::shifted(rate, 1.0, start, end, rng)
    }

    /// Creates arrivals like [`Arrivals::new`], except that even arrivals begin after the fraction `first` (up to 1) of
    /// their interval. Even arrivals of several workers thus alternate.
    pub fn shifted(rate: Rate, first: f64, start: Nanos, end: Nanos, rng: Prng) -> Arrivals {
        let mut this = Arrivals { rng, rate, start, next: start, end };
        if rate.constant {
            this.next = start + Nanos::from_secs_f64(this.after(0.0, first));
        } else {
            this.advance();
        }
        this
    }

    fn advance(&mut self) {
        let Rate { from, to, constant, .. } = self.rate;
        if from == to && !constant {
            self.next += Nanos(distribution::poisson_gap(&mut self.rng, 1e9 / from));
            return;
        }
        // Time rescaling: the integral of the rate between two arrivals is 1, or exponential with mean 1.
        let events = if constant { 1.0 } else { -(1.0 - self.rng.f64()).ln() };
        self.next = self.start + Nanos::from_secs_f64(self.after((self.next - self.start).as_secs_f64(), events));
    }

    /// The time, in seconds from the start, by which `events` more arrivals are expected than at time `t`.
    fn after(&self, t: f64, events: f64) -> f64 {
        let Rate { from, to, ramp, .. } = self.rate;
        let ramp = ramp.as_secs_f64();
        if t >= ramp || ramp == 0.0 {
            return t + events / to;
        }
        // Within the ramp the rate at time t is from + slope t; its integral from t to x is r (x-t) + slope (x-t)^2 / 2.
        let slope = (to - from) / ramp;
        let r = from + slope * t;
        let left = r * (ramp - t) + slope * (ramp - t) * (ramp - t) / 2.0;
        if events > left {
            return ramp + (events - left) / to;
        }
        // The positive root, in the form that does not cancel when the slope is small.
        t + 2.0 * events / (r + (r * r + 2.0 * slope * events).max(0.0).sqrt())
    }

    /// Returns the time at which the next transaction is due; `None` if none is due before the end.
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

    fn count(arrivals: &mut Arrivals, until: Nanos) -> i64 {
        std::iter::from_fn(|| arrivals.take(until)).count() as i64
    }

    #[test]
    fn arrivals_keep_their_rate_and_do_not_wait_for_anybody() {
        let mut a = Arrivals::new(Rate::poisson(1000.0), Nanos::ZERO, Nanos::from_secs(100), Prng::from_seed(1));
        // Nobody looks for 99 seconds; the transactions that were due are all there.
        let n = count(&mut a, Nanos::from_secs(99));
        assert!((97_500..100_500).contains(&n), "{n}");
        let n = n + count(&mut a, Nanos::MAX);
        // 100,000 expected, standard deviation 316.
        assert!((98_400..101_600).contains(&n), "{n}");
        assert_eq!(a.peek(), None);
    }

    #[test]
    fn constant_arrivals_are_even() {
        let rate = Rate { constant: true, ..Rate::poisson(100.0) };
        let mut a = Arrivals::new(rate, Nanos::from_secs(5), Nanos::from_secs(6), Prng::from_seed(1));
        let due: Vec<u64> = std::iter::from_fn(|| a.take(Nanos::MAX)).map(|t| (t.0 + 500) / 1000).collect();
        assert!((99..=100).contains(&due.len()), "{due:?}");
        assert!(due.iter().enumerate().all(|(i, t)| *t == 5_000_000 + 10_000 * (i as u64 + 1)), "{due:?}");
    }

    #[test]
    fn even_arrivals_of_several_workers_take_turns() {
        let rate = Rate { constant: true, ..Rate::poisson(25.0) };
        let mut due: Vec<u64> = (0..4)
            .flat_map(|worker| {
                let turn = f64::from(worker + 1) / 4.0;
                let mut a = Arrivals::shifted(rate, turn, Nanos::ZERO, Nanos::from_secs(2), Prng::from_seed(1));
                std::iter::from_fn(move || a.take(Nanos::MAX)).map(|t| (t.0 + 500) / 1000).collect::<Vec<_>>()
            })
            .collect();
        due.sort_unstable();
        assert!(due.iter().enumerate().all(|(i, t)| *t == 10_000 * (i as u64 + 1)), "{due:?}");
    }

    #[test]
    fn a_ramp_rises_evenly_and_then_stays() {
        for constant in [true, false] {
            let rate = Rate { from: 100.0, to: 1100.0, ramp: Nanos::from_secs(10), constant };
            let mut a = Arrivals::new(rate, Nanos::ZERO, Nanos::from_secs(20), Prng::from_seed(3));
            // The integral of the rate: 100 t + 50 t^2 up to 10 s, then 1100 a second.
            let mut before = 0;
            for (second, total) in [(2u64, 400i64), (5, 1750), (10, 6000), (15, 11_500), (20, 17_000)] {
                before += count(&mut a, Nanos::from_secs(second));
                let allowed = if constant { 1 } else { 5 * (total as f64).sqrt() as i64 };
                assert!((before - total).abs() <= allowed, "{before} by {second} s, {total} expected");
            }
        }
        let falling = Rate { from: 1000.0, to: 10.0, ramp: Nanos::from_secs(10), constant: true };
        let mut a = Arrivals::new(falling, Nanos::ZERO, Nanos::from_secs(10), Prng::from_seed(3));
        assert!((count(&mut a, Nanos::MAX) - 5050).abs() <= 1);
    }
}

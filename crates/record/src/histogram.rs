//! Latency histograms: 3 significant digits from 1 µs to 1 h, mergeable across threads, processes and machines.

use crate::used::Used;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer, V2Serializer};
use pgdyno_base::Nanos;
use std::fmt;

/// Significant decimal digits: a recorded value is off by less than 0.1%.
pub const SIGNIFICANT_DIGITS: u8 = 3;

/// Larger values are recorded as this one and counted in [`Histogram::clipped`].
pub const HIGHEST: Nanos = Nanos::from_secs(3600);

type Inner = hdrhistogram::Histogram<u64>;

/// A High Dynamic Range histogram of nanoseconds (Gil Tene's HdrHistogram). Empty it takes no memory of its own: there is
/// one for every command and interval, and most of them stay empty. Decoded it keeps its used buckets only.
#[derive(Clone, Default)]
pub struct Histogram {
    inner: Option<Box<Inner>>,
    /// The used buckets of a decoded histogram until something is recorded into it; `inner` is `None` then.
    used: Option<Box<Used>>,
    clipped: u64,
    /// Sum of the values as they were, not as their buckets round them.
    sum: u128,
    sum_of_squares: f64,
}

fn fresh() -> Box<Inner> {
    Box::new(Inner::new(SIGNIFICANT_DIGITS).expect("3 digits are within the library's 0 to 5"))
}

impl fmt::Debug for Histogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Histogram").field("count", &self.count()).field("max", &self.max()).finish_non_exhaustive()
    }
}

impl Histogram {
    /// Adds one value.
    #[inline]
    pub fn record(&mut self, value: Nanos) {
        let kept = value.0.min(HIGHEST.0);
        self.clipped += u64::from(kept != value.0);
        self.sum += u128::from(value.0);
        // Signed: processors convert that in one instruction. The value is no longer than 292 years.
        let value = value.0 as i64 as f64;
        self.sum_of_squares += value * value;
        self.dense().record(kept).expect("the histogram grows to any value up to HIGHEST");
    }

    /// Returns all buckets, to record into.
    #[inline]
    fn dense(&mut self) -> &mut Inner {
        if self.inner.is_none() {
            self.inner = Some(self.used.take().map_or_else(fresh, |used| spread(&used)));
        }
        self.inner.as_mut().expect("was just made")
    }

    /// Adds all values of another histogram.
    pub fn merge(&mut self, other: &Histogram) {
        match (&other.inner, &other.used) {
            (Some(theirs), _) => {
                self.dense().add(theirs.as_ref()).expect("the histogram grows to any value up to HIGHEST");
            }
            (None, Some(theirs)) if self.inner.is_none() => match &mut self.used {
                Some(mine) => mine.merge(theirs),
                None => self.used = Some(theirs.clone()),
            },
            (None, Some(theirs)) => add(self.dense(), theirs),
            (None, None) => return,
        }
        self.clipped += other.clipped;
        self.sum += other.sum;
        self.sum_of_squares += other.sum_of_squares;
    }

    /// Returns the histogram without the values of another one, all of which this one has. Values that it lacks change
    /// nothing. Mean and deviation are to 3 digits.
    pub fn without(&self, other: &Histogram) -> Histogram {
        let used = |h: &Histogram| Used::new(h.buckets().into_iter().map(|(v, n)| (v.0, n)).collect());
        let rest = used(self).without(&used(other));
        let (sum, sum_of_squares) = rest.sums();
        let clipped = self.clipped.saturating_sub(other.clipped);
        Histogram { inner: None, used: Some(Box::new(rest)), clipped, sum, sum_of_squares }
    }

    /// Returns the number of values added.
    pub fn count(&self) -> u64 {
        self.asked(|h| h.len(), Used::count)
    }

    /// Returns the number of values above [`HIGHEST`].
    pub fn clipped(&self) -> u64 {
        self.clipped
    }

    /// The value that `percent` of the values do not exceed (nearest rank), to 3 digits; zero when empty.
    pub fn percentile(&self, percent: f64) -> Nanos {
        Nanos(self.asked(|h| h.value_at_percentile(percent), |used| used.percentile(percent)))
    }

    /// The smallest value, to 3 digits.
    pub fn min(&self) -> Nanos {
        Nanos(self.asked(|h| h.min(), Used::min))
    }

    /// The largest value, to 3 digits.
    pub fn max(&self) -> Nanos {
        Nanos(self.asked(|h| h.max(), Used::max))
    }

    /// The exact arithmetic mean in nanoseconds; zero when empty. From a decoded histogram: to 3 digits.
    pub fn mean(&self) -> f64 {
        if self.count() == 0 { 0.0 } else { self.sum as f64 / self.count() as f64 }
    }

    /// The population standard deviation in nanoseconds.
    pub fn stddev(&self) -> f64 {
        if self.count() == 0 {
            return 0.0;
        }
        let mean = self.mean();
        (self.sum_of_squares / self.count() as f64 - mean * mean).max(0.0).sqrt()
    }

    /// Returns the number of values that do not exceed `value`, to its 3 significant digits.
    pub fn count_up_to(&self, value: Nanos) -> u64 {
        self.asked(|h| h.count_between(0, value.0), |used| used.count_up_to(value.0))
    }

    /// Buckets that hold values: highest equivalent value in nanoseconds, count. For charts.
    pub fn buckets(&self) -> Vec<(Nanos, u64)> {
        self.asked(
            |h| h.iter_recorded().map(|v| (Nanos(v.value_iterated_to()), v.count_at_value())).collect(),
            |used| used.buckets().iter().map(|(v, n)| (Nanos(*v), *n)).collect(),
        )
    }

    /// Asks whichever form the histogram has; an empty one answers with the default.
    fn asked<T: Default>(&self, dense: impl FnOnce(&Inner) -> T, used: impl FnOnce(&Used) -> T) -> T {
        match (&self.inner, &self.used) {
            (Some(h), _) => dense(h),
            (None, Some(h)) => used(h),
            (None, None) => T::default(),
        }
    }

    fn whole(&self) -> std::borrow::Cow<'_, Inner> {
        match &self.inner {
            Some(h) => std::borrow::Cow::Borrowed(h.as_ref()),
            None => std::borrow::Cow::Owned(*self.used.as_ref().map_or_else(fresh, |used| spread(used))),
        }
    }

    /// The exact sum of all values in nanoseconds, and that of their squares. From a decoded histogram: to 3 digits.
    pub fn sums(&self) -> (u128, f64) {
        (self.sum, self.sum_of_squares)
    }

    /// Returns the histogram in HdrHistogram's V2 compressed encoding, as used in `.hlog` files (there in base64).
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        V2DeflateSerializer::new().serialize(&*self.whole(), &mut out).expect("writing to memory does not fail");
        out
    }

    /// Returns the histogram in HdrHistogram's V2 encoding, without compression. This is faster, for passing between
    /// processes.
    pub fn encode_plain(&self) -> Vec<u8> {
        let mut out = Vec::new();
        V2Serializer::new().serialize(&*self.whole(), &mut out).expect("writing to memory does not fail");
        out
    }

    /// Reads either encoding.
    pub fn decode(bytes: &[u8]) -> Result<Histogram, String> {
        let used = match Used::decode(bytes) {
            Some(used) => used,
            None => by_library(bytes)?,
        };
        let (sum, sum_of_squares) = used.sums();
        Ok(Histogram { inner: None, used: Some(Box::new(used)), clipped: 0, sum, sum_of_squares })
    }
}

/// Reads what the library can read: any number of digits.
fn by_library(bytes: &[u8]) -> Result<Used, String> {
    let inner: Inner = Deserializer::new()
        .deserialize(&mut std::io::Cursor::new(bytes))
        .map_err(|e| format!("these bytes are no HdrHistogram (V2, compressed or not): {e:?}"))?;
    Ok(Used::new(inner.iter_recorded().map(|v| (v.value_iterated_to(), v.count_at_value())).collect()))
}

/// Returns all buckets of a histogram of which the used ones are known.
fn spread(used: &Used) -> Box<Inner> {
    let mut inner = fresh();
    add(&mut inner, used);
    inner
}

fn add(inner: &mut Inner, used: &Used) {
    for &(value, n) in used.buckets() {
        inner.record_n(value, n).expect("the histogram grows to any value of another");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The slow, obvious reference: nearest rank over the sorted values.
    fn reference(values: &[u64], percent: f64) -> u64 {
        let mut sorted = values.to_vec();
        sorted.sort_unstable();
        let rank = ((percent / 100.0 * sorted.len() as f64).ceil() as usize).max(1);
        sorted[rank - 1]
    }

    // All buckets of a dozen histograms for each case.
    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn used_buckets_answer_as_all_buckets_do(
            a in prop::collection::vec(1u64..3_600_000_000_000, 0..100), b in prop::collection::vec(1u64..100_000_000, 1..100),
            percent in 0.0f64..101.0, limit in 0u64..5_000_000_000_000
        ) {
            let (mut x, mut y) = (Histogram::default(), Histogram::default());
            a.iter().for_each(|v| x.record(Nanos(*v)));
            b.iter().for_each(|v| y.record(Nanos(*v)));
            let (mut dense, mut mixed) = (x.clone(), x.clone());
            dense.merge(&y);
            let mut used = Histogram::decode(&x.encode()).unwrap();
            let decoded = Histogram::decode(&y.encode_plain()).unwrap();
            used.merge(&decoded);
            mixed.merge(&decoded);
            for h in [&used, &mixed] {
                prop_assert_eq!(h.count(), dense.count());
                prop_assert_eq!(h.buckets(), dense.buckets());
                prop_assert_eq!((h.min(), h.max()), (dense.min(), dense.max()));
                for p in [0.0, percent, 100.0] {
                    prop_assert_eq!(h.percentile(p), dense.percentile(p));
                }
                prop_assert_eq!(h.count_up_to(Nanos(limit)), dense.count_up_to(Nanos(limit)));
                prop_assert_eq!(Histogram::decode(&h.encode()).unwrap().buckets(), dense.buckets());
            }
            prop_assert!((used.mean() - dense.mean()).abs() <= dense.mean() * 1e-3);
            used.merge(&y);
            used.record(Nanos(7));
            dense.merge(&y);
            dense.record(Nanos(7));
            prop_assert_eq!(used.buckets(), dense.buckets());
        }
    }

    proptest! {
        #[test]
        fn percentiles_agree_with_sorting(
            values in prop::collection::vec(1_000u64..3_600_000_000_000, 1..300), percent in 1.0f64..100.0
        ) {
            let mut h = Histogram::default();
            values.iter().for_each(|v| h.record(Nanos(*v)));
            let want = reference(&values, percent) as f64;
            let got = h.percentile(percent).0 as f64;
            prop_assert!((got - want).abs() <= want * 1e-3, "{got} for {want}");
            let mean = values.iter().map(|v| *v as f64).sum::<f64>() / values.len() as f64;
            prop_assert!((h.mean() - mean).abs() <= mean * 1e-9);
            let up_to = h.count_up_to(Nanos(got as u64));
            prop_assert!(up_to as f64 >= percent / 100.0 * values.len() as f64);
            let counted: u64 = h.buckets().iter().filter(|(v, _)| v.0 as f64 <= got).map(|(_, n)| n).sum();
            prop_assert_eq!(up_to, counted);
        }

        #[test]
        fn merging_is_recording_everything_in_one(
            a in prop::collection::vec(1u64..1_000_000_000, 0..100), b in prop::collection::vec(1u64..1_000_000_000, 1..100)
        ) {
            let (mut x, mut y, mut z) = (Histogram::default(), Histogram::default(), Histogram::default());
            a.iter().for_each(|v| { x.record(Nanos(*v)); z.record(Nanos(*v)); });
            b.iter().for_each(|v| { y.record(Nanos(*v)); z.record(Nanos(*v)); });
            x.merge(&y);
            prop_assert_eq!(x.buckets(), z.buckets());
            prop_assert!((x.mean() - z.mean()).abs() < 1e-6);
            let rest = z.without(&y);
            let mut alone = Histogram::default();
            a.iter().for_each(|v| alone.record(Nanos(*v)));
            prop_assert_eq!((rest.buckets(), rest.count()), (alone.buckets(), alone.count()));
            prop_assert!((rest.mean() - alone.mean()).abs() <= alone.mean() * 1e-3);
            prop_assert_eq!(y.without(&z).count(), 0);
            let decoded = Histogram::decode(&z.encode()).unwrap();
            prop_assert_eq!(decoded.buckets(), z.buckets());
            let decoded = Histogram::decode(&z.encode_plain()).unwrap();
            prop_assert_eq!(decoded.buckets(), z.buckets());
        }

        #[test]
        fn damaged_bytes_are_read_as_the_library_reads_them(
            values in prop::collection::vec(1u64..3_600_000_000_000, 0..20),
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..3), cut in 0usize..4
        ) {
            let mut h = Histogram::default();
            values.iter().for_each(|v| h.record(Nanos(*v)));
            let mut bytes = h.encode_plain();
            for (at, byte) in &changes {
                let at = at.index(bytes.len());
                bytes[at] = *byte;
            }
            bytes.truncate(bytes.len() - cut);
            if let Some(used) = Used::decode(&bytes) {
                let inner: Inner = Deserializer::new().deserialize(&mut std::io::Cursor::new(&bytes)).unwrap();
                let theirs: Vec<_> = inner.iter_recorded().map(|v| (v.value_iterated_to(), v.count_at_value())).collect();
                prop_assert_eq!(used.buckets(), &theirs[..]);
            }
        }

        #[test]
        fn noise_is_refused(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            let _ = Histogram::decode(&bytes);
        }
    }

    #[test]
    fn values_beyond_an_hour_are_kept_and_counted() {
        let mut h = Histogram::default();
        h.record(Nanos::from_secs(7200));
        assert_eq!((h.count(), h.clipped()), (1, 1));
        assert!(h.max().as_secs_f64() >= 3599.0);
    }
}

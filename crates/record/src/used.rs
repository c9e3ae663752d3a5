//! The used buckets of a histogram, and their decoder.
//!
//! A dense array of all buckets takes 150 kB, of which a trial uses a few hundred. Histograms that were read from a
//! record are merged and asked, never recorded into, and a report reads ten thousands of them: they keep their used
//! buckets only.

use flate2::read::ZlibDecoder;
use std::cmp::Ordering;
use std::io::Read;

/// Cookies of HdrHistogram's V2 encoding: as it is, and compressed by zlib. The digit 1 is the size of a word.
const V2: u32 = 0x1c84_9313;
const V2_COMPRESSED: u32 = 0x1c84_9314;
/// Bytes before the counts: cookie, length, offset, digits, lowest and highest value, ratio.
const HEADER: usize = 40;
/// Half the buckets of each power of two: three digits need 2,048 of them.
const HALF: u64 = 1024;
const HALF_BITS: u32 = 10;

/// Used buckets in ascending order: highest equivalent value, number of values.
#[derive(Clone, Debug, Default)]
pub(crate) struct Used {
    buckets: Vec<(u64, u64)>,
    count: u64,
}

impl Used {
    /// Takes buckets that are in ascending order of their highest equivalent values.
    pub(crate) fn new(buckets: Vec<(u64, u64)>) -> Used {
        Used { count: buckets.iter().map(|(_, n)| n).sum(), buckets }
    }

    /// Reads V2, compressed or not, with three digits. `None`: another form or damaged; the library tells which.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Used> {
        if word(bytes, 0)? != V2_COMPRESSED {
            return Used::plain(bytes);
        }
        let packed = bytes.get(8..8usize.checked_add(word(bytes, 4)? as usize)?)?;
        let mut unpacked = Vec::with_capacity(4 * packed.len());
        // Damaged data can unpack to anything; the largest histogram of three digits is far smaller.
        ZlibDecoder::new(packed).take(1 << 20).read_to_end(&mut unpacked).ok()?;
        Used::plain(&unpacked)
    }

    fn plain(bytes: &[u8]) -> Option<Used> {
        let head = (word(bytes, 0)?, word(bytes, 8)?, word(bytes, 12)?, long(bytes, 16)?, long(bytes, 32)?);
        if head != (V2, 0, 3, 1, 1f64.to_bits()) {
            return None;
        }
        let end = HEADER.checked_add(word(bytes, 4)? as usize)?;
        let (mut rest, indices) = (bytes.get(HEADER..end)?, indices_up_to(long(bytes, 24)?)?);
        let (mut buckets, mut index, mut total) = (Vec::with_capacity(rest.len() / 2), 0u64, 0u64);
        while !rest.is_empty() {
            let n = zigzag(&mut rest)?;
            if n < 0 {
                index = index.checked_add(n.unsigned_abs())?;
                continue;
            }
            if index >= indices {
                return None;
            }
            if n > 0 {
                total = total.checked_add(n as u64)?;
                buckets.push((highest_of(index), n as u64));
            }
            index += 1;
        }
        Some(Used { buckets, count: total })
    }

    pub(crate) fn merge(&mut self, other: &Used) {
        let (mine, theirs) = (std::mem::take(&mut self.buckets), &other.buckets);
        let mut merged = Vec::with_capacity(mine.len() + theirs.len());
        let (mut i, mut j) = (0, 0);
        while i < mine.len() && j < theirs.len() {
            match mine[i].0.cmp(&theirs[j].0) {
                Ordering::Less => merged.push(mine[i]),
                Ordering::Greater => merged.push(theirs[j]),
                Ordering::Equal => merged.push((mine[i].0, mine[i].1 + theirs[j].1)),
            }
            let (left, right) = (mine[i].0, theirs[j].0);
            i += usize::from(left <= right);
            j += usize::from(right <= left);
        }
        merged.extend_from_slice(&mine[i..]);
        merged.extend_from_slice(&theirs[j..]);
        self.buckets = merged;
        self.count += other.count;
    }

    /// Returns the values that `other` does not have.
    pub(crate) fn without(&self, other: &Used) -> Used {
        let mut theirs = other.buckets.iter().peekable();
        let mut rest = Vec::with_capacity(self.buckets.len());
        for &(highest, n) in &self.buckets {
            while theirs.next_if(|(v, _)| *v < highest).is_some() {}
            let gone = theirs.next_if(|(v, _)| *v == highest).map_or(0, |(_, n)| *n);
            if n > gone {
                rest.push((highest, n - gone));
            }
        }
        Used::new(rest)
    }

    pub(crate) fn buckets(&self) -> &[(u64, u64)] {
        &self.buckets
    }

    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Returns the value that `percent` of the values do not exceed, by nearest rank as the library does.
    pub(crate) fn percentile(&self, percent: f64) -> u64 {
        let quantile = (percent / 100.0).min(1.0);
        let rank = ((quantile * self.count as f64).ceil() as u64).max(1);
        let mut up_to = 0;
        for &(highest, n) in &self.buckets {
            up_to += n;
            if up_to >= rank {
                return if quantile == 0.0 { lowest(highest) } else { highest };
            }
        }
        0
    }

    pub(crate) fn min(&self) -> u64 {
        self.buckets.first().map_or(0, |(highest, _)| lowest(*highest))
    }

    pub(crate) fn max(&self) -> u64 {
        self.buckets.last().map_or(0, |(highest, _)| *highest)
    }

    pub(crate) fn count_up_to(&self, value: u64) -> u64 {
        let limit = value | (width(value) - 1);
        self.buckets.iter().take_while(|(highest, _)| *highest <= limit).map(|(_, n)| n).sum()
    }

    /// The sum of all values and that of their squares, each value taken as the middle of its bucket.
    pub(crate) fn sums(&self) -> (u128, f64) {
        let (mut sum, mut squares) = (0u128, 0.0);
        for &(highest, n) in &self.buckets {
            let middle = lowest(highest) + (width(highest) >> 1);
            sum += u128::from(middle) * u128::from(n);
            squares += middle as f64 * middle as f64 * n as f64;
        }
        (sum, squares)
    }
}

/// Returns the number of values that one bucket does not tell from this one.
fn width(value: u64) -> u64 {
    1 << (u64::BITS - value.leading_zeros()).saturating_sub(HALF_BITS + 1)
}

fn lowest(value: u64) -> u64 {
    value & !(width(value) - 1)
}

/// Returns the highest equivalent value of the bucket at an index of the dense array.
fn highest_of(index: u64) -> u64 {
    let power = (index >> HALF_BITS).saturating_sub(1);
    let within = index - power * HALF;
    ((within + 1) << power) - 1
}

/// Returns the length of the dense array for values up to `high`. `None`: it is not a value of a valid histogram.
fn indices_up_to(high: u64) -> Option<u64> {
    if !(2..1 << 62).contains(&high) {
        return None;
    }
    let power = u64::from((u64::BITS - high.leading_zeros()).saturating_sub(HALF_BITS + 1));
    Some((power + 2) * HALF)
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn long(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_be_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

/// Takes one number: zigzag, LEB128 of at most nine bytes, of which the last has eight bits.
fn zigzag(rest: &mut &[u8]) -> Option<i64> {
    let mut value = 0u64;
    for at in 0..9 {
        let byte = u64::from(*rest.get(at)?);
        let is_last = at == 8 || byte < 0x80;
        value |= (if at == 8 { byte } else { byte & 0x7f }) << (7 * at);
        if is_last {
            *rest = &rest[at + 1..];
            break;
        }
    }
    Some((value >> 1) as i64 ^ -((value & 1) as i64))
}

//! Statistics of columns as ANALYZE has them, of a random sample of a dataset's rows: what `compute_scalar_stats` and
//! `analyze_mcv_list` of PostgreSQL's `analyze.c` would make of the same rows, texts compared as bytes.

use crate::heap::tuple;
use crate::rows::{Dataset, Kind, Row, Table, Value};
use pgdyno_base::Prng;
use std::cmp::Ordering;
use std::collections::HashSet;
use std::ops::Range;

/// Rows that ANALYZE looks at for each entry of the lists (`std_typanalyze`).
const ROWS_PER_ENTRY: usize = 300;

/// Statistics of a column as `pg_stats` shows them.
#[derive(Clone, Debug, PartialEq)]
pub struct Statistics {
    /// Its number in the table, from 0.
    pub column: usize,
    /// Fraction of all rows that are NULL.
    pub null_fraction: f64,
    /// Bytes of a value that is not NULL, without padding before it.
    pub average_width: u32,
    /// Distinct values; below 0: by the number of rows, negated.
    pub distinct: f64,
    /// The most common values and their fractions of all rows, the most common first.
    pub common: Vec<(Value, f64)>,
    /// Bounds that divide the other values into parts with equal numbers of rows.
    pub bounds: Vec<Value>,
    /// Between a value's place in the table and in the order of values.
    pub correlation: Option<f64>,
}

/// The statistics of a table's columns, and the rows of texts in them.
#[derive(Debug, Default)]
pub struct Sampled {
    /// Statistics by column.
    pub columns: Vec<Statistics>,
    texts: Vec<u8>,
}

impl Sampled {
    /// A text's bytes.
    pub fn text(&self, start: usize, end: usize) -> &[u8] {
        &self.texts[start..end]
    }

    /// Returns the statistics of table `table`. The sample has as many rows as ANALYZE takes for `target` entries
    /// (`default_statistics_target`).
    pub fn of(dataset: &dyn Dataset, table: usize, target: usize) -> Sampled {
        let t = &dataset.tables()[table];
        let mut rng = Prng::from_seed(table as u64);
        let numbers = sample(t.rows.clone(), target * ROWS_PER_ENTRY, &mut rng);
        let (mut row, mut texts) = (Row::default(), Vec::new());
        let mut columns = vec![Vec::with_capacity(numbers.len()); t.columns.len()];
        for number in numbers {
            dataset.row(table, number, &mut row);
            for (column, value) in columns.iter_mut().zip(&row.values) {
                column.push(match *value {
                    Value::Text(first, end) => {
                        let start = texts.len();
                        texts.extend_from_slice(row.bytes(first, end));
                        Value::Text(start, texts.len())
                    }
                    other => other,
                });
            }
        }
        let columns = (columns.iter().enumerate())
            .map(|(number, values)| Column::new(t, number, values, &texts).statistics(target))
            .collect();
        Sampled { columns, texts }
    }
}

/// The numbers of `count` rows, or of all, in rising order: each set of them is as likely (Floyd's algorithm).
fn sample(rows: Range<u64>, count: usize, rng: &mut Prng) -> Vec<u64> {
    let all = rows.end - rows.start;
    if all <= count as u64 {
        return rows.collect();
    }
    let mut taken = HashSet::with_capacity(count);
    for last in all - count as u64..all {
        let drawn = rng.range_u64(0, last);
        if !taken.insert(drawn) {
            taken.insert(last);
        }
    }
    let mut numbers: Vec<u64> = taken.into_iter().map(|n| rows.start + n).collect();
    numbers.sort_unstable();
    numbers
}

/// The values of a column in a sample.
struct Column<'a> {
    number: usize,
    kind: Kind,
    /// Values in the order of the table.
    values: &'a [Value],
    texts: &'a [u8],
    /// Rows of the table.
    rows: f64,
}

/// Equal values, in the order of values.
struct Group {
    /// The first of them in that order.
    first: usize,
    count: usize,
}

impl<'a> Column<'a> {
    fn new(table: &Table, number: usize, values: &'a [Value], texts: &'a [u8]) -> Column<'a> {
        Column { number, kind: table.columns[number].kind, values, texts, rows: table.count() as f64 }
    }

    fn statistics(&self, target: usize) -> Statistics {
        let sampled = self.values.len() as f64;
        let there: Vec<Value> = self.values.iter().copied().filter(|v| *v != Value::Null).collect();
        let null_fraction = (self.values.len() - there.len()) as f64 / sampled.max(1.0);
        let mut found = Statistics {
            column: self.number,
            null_fraction,
            average_width: self.kind.fixed().unwrap_or(0) as u32,
            distinct: 0.0,
            common: Vec::new(),
            bounds: Vec::new(),
            correlation: None,
        };
        if there.is_empty() {
            return found;
        }
        let bytes: usize = there.iter().map(|v| tuple::width(*v, self.kind)).sum();
        found.average_width = (bytes / there.len()) as u32;

        // Equal values stay in the order of rows, as `compare_scalars` has them.
        let mut sorted: Vec<(u128, u32)> = (0..).zip(&there).map(|(n, v)| (self.order(*v), n)).collect();
        sorted.sort_unstable_by(|a, b| {
            a.0.cmp(&b.0).then_with(|| self.rest(there[a.1 as usize], there[b.1 as usize])).then(a.1.cmp(&b.1))
        });
        found.correlation = correlation(&sorted);

        let value = |place: usize| there[sorted[place].1 as usize];
        let mut groups: Vec<Group> = Vec::new();
        for place in 0..sorted.len() {
            match groups.last_mut() {
                Some(g) if sorted[place].0 == sorted[g.first].0 && self.rest(value(place), value(g.first)).is_eq() => {
                    g.count += 1;
                }
                _ => groups.push(Group { first: place, count: 1 }),
            }
        }
        let repeated = groups.iter().filter(|g| g.count > 1).count();
        found.distinct = self.distinct(there.len() as f64, groups.len() as f64, repeated as f64, null_fraction);

        // Of values that are as common the first in their order.
        let mut common: Vec<&Group> = groups.iter().filter(|g| g.count > 1).collect();
        common.sort_by_key(|g| std::cmp::Reverse(g.count));
        common.truncate(target);
        let all_of_them = common.len() == groups.len() && found.distinct > 0.0;
        if !all_of_them {
            let counts: Vec<f64> = common.iter().map(|g| g.count as f64).collect();
            common.truncate(self.worth_listing(&counts, &found));
        }
        found.common = common.iter().map(|g| (value(g.first), g.count as f64 / sampled)).collect();

        let others = groups.len() - common.len();
        if others >= 2 {
            let listed: HashSet<usize> = common.iter().map(|g| g.first).collect();
            let rest: Vec<usize> = (groups.iter().filter(|g| !listed.contains(&g.first)))
                .flat_map(|g| g.first..g.first + g.count)
                .collect();
            let bounds = others.min(target + 1);
            found.bounds = (0..bounds).map(|i| value(rest[i * (rest.len() - 1) / (bounds - 1)])).collect();
        }
        found
    }

    /// A value's place in the order of values, of texts by their first bytes.
    fn order(&self, value: Value) -> u128 {
        let integer = |v: i64| u128::from(v as u64 ^ 1 << 63);
        match value {
            Value::Null => 0,
            Value::Int4(v) => integer(v.into()),
            Value::Int8(v) | Value::Numeric(v) => integer(v),
            // In the order of IEEE 754's total order.
            Value::Float8(v) => integer(v.to_bits() as i64 ^ ((v.to_bits() as i64 >> 63) as u64 >> 1) as i64),
            Value::Text(first, end) => {
                let mut bytes = [0; 16];
                let known = (end - first).min(16);
                bytes[..known].copy_from_slice(&self.texts[first..first + known]);
                u128::from_be_bytes(bytes)
            }
        }
    }

    /// Compares two values that have equal `order`.
    fn rest(&self, a: Value, b: Value) -> Ordering {
        match (a, b) {
            (Value::Text(a, a_end), Value::Text(b, b_end)) => self.texts[a..a_end].cmp(&self.texts[b..b_end]),
            _ => Ordering::Equal,
        }
    }

    /// Returns the number of distinct values in the table, in the form of [`Statistics::distinct`].
    ///
    /// This is the estimator of Haas and Stokes (1998), as in `analyze.c`. `values` counts the sampled values that are
    /// not NULL. `distinct` counts the different ones among them, and `repeated` those of these seen several times.
    fn distinct(&self, values: f64, distinct: f64, repeated: f64, null_fraction: f64) -> f64 {
        if repeated == 0.0 {
            return -(1.0 - null_fraction);
        }
        let mut estimate = distinct;
        if repeated < distinct {
            let (once, all) = (distinct - repeated, self.rows * (1.0 - null_fraction));
            estimate = values * distinct / ((values - once) + once * values / all);
            estimate = estimate.clamp(distinct, all.max(distinct)).round();
        }
        if estimate > 0.1 * self.rows { -(estimate / self.rows) } else { estimate }
    }

    /// Returns the number of the most common values that are surely more common than the others (`analyze_mcv_list`).
    /// `counts` holds the number of times each was seen.
    fn worth_listing(&self, counts: &[f64], found: &Statistics) -> usize {
        let (n, all) = (self.values.len() as f64, self.rows);
        if n >= all || all <= 1.0 {
            return counts.len();
        }
        let distinct = if found.distinct < 0.0 { -found.distinct * all } else { found.distinct };
        (1..=counts.len())
            .rev()
            .find(|listed| {
                let last = counts[listed - 1];
                let before: f64 = counts[..listed - 1].iter().sum();
                // What would be thought of the last one if it were not listed.
                let mut selectivity = (1.0 - before / n - found.null_fraction).clamp(0.0, 1.0);
                let others = distinct - (listed - 1) as f64;
                if others > 1.0 {
                    selectivity /= others;
                }
                // How far a hypergeometric count strays.
                let k = all * last / n;
                let variance = n * k * (all - k) * (all - n) / (all * all * (all - 1.0));
                last > selectivity * n + 2.0 * variance.sqrt() + 0.5
            })
            .unwrap_or(0)
    }
}

/// Between places in the order of values and numbers in the order of rows.
fn correlation(sorted: &[(u128, u32)]) -> Option<f64> {
    if sorted.len() < 2 {
        return None;
    }
    let n = sorted.len() as f64;
    let products: f64 = sorted.iter().enumerate().map(|(place, (_, row))| place as f64 * f64::from(*row)).sum();
    let sum = (n - 1.0) * n / 2.0;
    let squares = (n - 1.0) * n * (2.0 * n - 1.0) / 6.0;
    Some((n * products - sum * sum) / (n * squares - sum * sum))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[Value], texts: &[u8], rows: f64) -> Statistics {
        Column { number: 0, kind: Kind::Int4, values, texts, rows }.statistics(100)
    }

    fn integers(values: impl IntoIterator<Item = i32>) -> Vec<Value> {
        values.into_iter().map(Value::Int4).collect()
    }

    #[test]
    fn a_sample_is_of_the_rows_and_has_each_once() {
        let mut rng = Prng::from_seed(1);
        let mut counts = [0u32; 20];
        for _ in 0..20_000 {
            let drawn = sample(10..30, 5, &mut rng);
            assert!(drawn.len() == 5 && drawn.windows(2).all(|w| w[0] < w[1]));
            drawn.iter().for_each(|n| counts[(n - 10) as usize] += 1);
        }
        // 5,000 expected, standard deviation 61.
        assert!(counts.iter().all(|n| (4_690..=5_310).contains(n)), "{counts:?}");
        assert_eq!(sample(3..6, 5, &mut rng), [3, 4, 5]);
    }

    #[test]
    fn a_key_is_all_different_and_in_order() {
        let found = of(&integers(0..3_000), &[], 30_000.0);
        assert_eq!((found.distinct, found.common.len(), found.bounds.len()), (-1.0, 0, 101));
        assert_eq!((found.bounds[0], found.bounds[100]), (Value::Int4(0), Value::Int4(2_999)));
        assert!((found.correlation.unwrap_or(0.0) - 1.0).abs() < 1e-12);
        let found = of(&integers((0..3_000).rev()), &[], 30_000.0);
        assert!((found.correlation.unwrap_or(0.0) + 1.0).abs() < 1e-12);
    }

    #[test]
    fn few_values_are_all_listed() {
        let values: Vec<Value> =
            (0..3_000).map(|i| if i % 3 == 0 { Value::Null } else { Value::Int4(i % 3) }).collect();
        let found = of(&values, &[], 1e9);
        assert_eq!((found.null_fraction, found.distinct, found.average_width), (1.0 / 3.0, 2.0, 4));
        assert_eq!(found.common, [(Value::Int4(1), 1.0 / 3.0), (Value::Int4(2), 1.0 / 3.0)]);
        assert!(found.bounds.is_empty());
    }

    #[test]
    fn what_stands_out_is_listed_and_the_rest_is_divided() {
        // A half is 7, the others are each seen twice or three times of a million.
        let values = integers((0..4_000).map(|i| if i % 2 == 0 { 7 } else { 100 + i % 900 }));
        let found = of(&values, &[], 1e6);
        assert_eq!(found.common, [(Value::Int4(7), 0.5)]);
        assert!(found.bounds.len() == 101 && !found.bounds.contains(&Value::Int4(7)));
        assert_eq!(found.distinct, 451.0);
    }

    #[test]
    fn nothing_is_said_of_what_is_not_there() {
        let found = of(&[Value::Null, Value::Null], &[], 2.0);
        assert_eq!((found.null_fraction, found.distinct, found.correlation), (1.0, 0.0, None));
        assert_eq!(of(&[], &[], 0.0).null_fraction, 0.0);
    }

    #[test]
    fn values_have_their_order() {
        let texts = b"abcdefghijklmnopqrabcdefghijklmnopqsb";
        let column = Column { number: 0, kind: Kind::Text, values: &[], texts, rows: 0.0 };
        let less = |a: Value, b: Value| column.order(a).cmp(&column.order(b)).then(column.rest(a, b)).is_lt();
        let [long, longer, short] = [Value::Text(0, 18), Value::Text(18, 36), Value::Text(36, 37)];
        assert!(less(long, longer) && less(longer, short) && !less(long, long) && less(Value::Text(0, 2), long));
        assert!(less(Value::Int4(-1), Value::Int4(0)) && less(Value::Numeric(i64::MIN), Value::Numeric(-1)));
        let floats = [f64::NEG_INFINITY, -2.0, -1.5, 0.0, 1e-300, 3.0, f64::INFINITY];
        assert!(floats.windows(2).all(|w| less(Value::Float8(w[0]), Value::Float8(w[1]))));
    }
}

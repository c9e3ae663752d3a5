//! Rows as lines of text, for LOAD DATA: values between tabs, a backslash before what would end one.

use crate::rows::{Kind, Row, Value};

/// Days from 0000-03-01 to 2000-01-01.
const DAYS_BEFORE: i64 = 730_425;
const DAY_US: i64 = 86_400_000_000;

/// Appends a row of columns of these kinds.
#[inline]
pub fn append(row: &Row, kinds: &[Kind], out: &mut Vec<u8>) {
    for (n, (value, kind)) in row.values.iter().zip(kinds).enumerate() {
        if n > 0 {
            out.push(b'\t');
        }
        match (*value, kind) {
            (Value::Null, _) => out.extend_from_slice(b"\\N"),
            (Value::Int4(v), _) => integer(i64::from(v), out),
            (Value::Int8(v), Kind::Timestamp | Kind::Timestamptz) => moment(v, out),
            (Value::Int8(v), _) => integer(v, out),
            (Value::Float8(v), _) => out.extend_from_slice(v.to_string().as_bytes()),
            (Value::Text(start, end), _) => text(row.bytes(start, end), out),
            (Value::Numeric(v), kind) => decimal(v, kind.scale(), out),
        }
    }
    out.push(b'\n');
}

#[inline]
fn integer(v: i64, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(v).as_bytes());
}

#[inline]
fn text(bytes: &[u8], out: &mut Vec<u8>) {
    for b in bytes {
        match b {
            b'\t' | b'\n' | b'\\' => out.extend_from_slice(&[b'\\', *b]),
            0 => out.extend_from_slice(b"\\0"),
            b => out.push(*b),
        }
    }
}

/// `v` units of 10^-scale.
fn decimal(v: i64, scale: u8, out: &mut Vec<u8>) {
    if v < 0 {
        out.push(b'-');
    }
    let unit = 10u64.pow(u32::from(scale));
    integer((v.unsigned_abs() / unit) as i64, out);
    if scale > 0 {
        out.extend_from_slice(format!(".{:0width$}", v.unsigned_abs() % unit, width = usize::from(scale)).as_bytes());
    }
}

/// Microseconds since 2000-01-01 as a date and a time. The calendar is Howard Hinnant's `civil_from_days`.
fn moment(us: i64, out: &mut Vec<u8>) {
    let (days, time) = (us.div_euclid(DAY_US), us.rem_euclid(DAY_US));
    let z = days + DAYS_BEFORE;
    let era = z.div_euclid(146_097);
    let of_era = z.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let m = (5 * of_year + 2) / 153;
    let day = of_year - (153 * m + 2) / 5 + 1;
    let month = if m < 10 { m + 3 } else { m - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let put = |v: i64, digits: usize, out: &mut Vec<u8>| {
        let start = out.len();
        out.resize(start + digits, b'0');
        let mut v = v;
        for at in (start..start + digits).rev() {
            out[at] = b'0' + (v % 10) as u8;
            v /= 10;
        }
    };
    let seconds = time / 1_000_000;
    for (v, digits, behind) in [
        (year, 4, b'-'),
        (month, 2, b'-'),
        (day, 2, b' '),
        (seconds / 3600, 2, b':'),
        (seconds % 3600 / 60, 2, b':'),
        (seconds % 60, 2, b'.'),
    ] {
        put(v, digits, out);
        out.push(behind);
    }
    put(time % 1_000_000, 6, out);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_as_load_data_reads_them() {
        let mut row = Row::default();
        row.push(Value::Int4(-5));
        row.push(Value::Null);
        row.text(b"a\tb\\c\nd");
        row.push(Value::Numeric(-1205));
        row.push(Value::Numeric(7));
        row.push(Value::Int8(0));
        row.push(Value::Int8(9190 * DAY_US + 3_723_000_045));
        row.push(Value::Float8(1.5));
        let kinds = [
            Kind::Int4,
            Kind::Int8,
            Kind::Text,
            Kind::Numeric(6, 2),
            Kind::Numeric(6, 3),
            Kind::Timestamp,
            Kind::Timestamptz,
            Kind::Float8,
        ];
        let mut out = Vec::new();
        append(&row, &kinds, &mut out);
        let expected = "-5\t\\N\ta\\\tb\\\\c\\\nd\t-12.05\t0.007\t2000-01-01 00:00:00.000000\t\
                        2025-02-28 01:02:03.000045\t1.5\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn days_of_leap_years() {
        for (days, text) in
            [(59, "2000-02-29"), (60, "2000-03-01"), (365, "2000-12-31"), (-1, "1999-12-31"), (9497, "2026-01-01")]
        {
            let mut out = Vec::new();
            moment(days * DAY_US, &mut out);
            assert_eq!(&out[..10], text.as_bytes());
        }
    }
}

//! Values of variables and expressions.

use crate::error::EvalError;
use std::sync::Arc;

/// A value: pgbench's four expression types, and text as `-D` gives it.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Value {
    /// No value yet; reading it is an error.
    #[default]
    Unset,
    /// SQL's NULL.
    Null,
    /// TRUE or FALSE.
    Bool(bool),
    /// A 64-bit integer.
    Int(i64),
    /// A double.
    Double(f64),
    /// Text that is not (or not yet) read as a number.
    Text(Arc<str>),
}

impl Value {
    /// What `-D name=text` means: the narrowest type that reads it, text where none does.
    pub fn from_text(text: &str) -> Value {
        let trimmed = text.trim();
        if trimmed.eq_ignore_ascii_case("null") {
            return Value::Null;
        }
        if let Ok(i) = trimmed.parse::<i64>() {
            return Value::Int(i);
        }
        let numeric = trimmed.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c));
        if let (true, Ok(d)) = (numeric, trimmed.parse::<f64>()) {
            return Value::Double(d);
        }
        for (word, b) in [("true", true), ("yes", true), ("on", true), ("false", false), ("no", false), ("off", false)]
        {
            if trimmed.eq_ignore_ascii_case(word) {
                return Value::Bool(b);
            }
        }
        Value::Text(text.into())
    }

    /// The type's name, as error messages call it.
    pub fn type_name(&self) -> &'static str {
        match self {
            Value::Unset => "unset",
            Value::Null => "null",
            Value::Bool(_) => "boolean",
            Value::Int(_) => "int",
            Value::Double(_) => "double",
            Value::Text(_) => "text",
        }
    }

    /// As an integer; a double is rounded to the nearest (halves to even) and must fit.
    pub fn to_int(&self) -> Result<i64, EvalError> {
        match self {
            Value::Int(i) => Ok(*i),
            Value::Double(d) => {
                let r = d.round_ties_even();
                // 2^63 is exact as a double; everything below it that is a double fits.
                if (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&r) {
                    Ok(r as i64)
                } else {
                    Err(EvalError::Argument("double to int overflow".into()))
                }
            }
            other => Err(other.mismatch("int")),
        }
    }

    /// As a double.
    pub fn to_double(&self) -> Result<f64, EvalError> {
        match self {
            Value::Int(i) => Ok(*i as f64),
            Value::Double(d) => Ok(*d),
            other => Err(other.mismatch("double")),
        }
    }

    /// As a boolean; only a boolean is one.
    pub fn to_bool(&self) -> Result<bool, EvalError> {
        match self {
            Value::Bool(b) => Ok(*b),
            other => Err(other.mismatch("boolean")),
        }
    }

    /// As `\if` reads a condition: numbers are true when not zero, NULL is false.
    pub fn truth(&self) -> Result<bool, EvalError> {
        match self {
            Value::Bool(b) => Ok(*b),
            Value::Int(i) => Ok(*i != 0),
            Value::Double(d) => Ok(*d != 0.0),
            Value::Null => Ok(false),
            other => Err(other.mismatch("boolean")),
        }
    }

    fn mismatch(&self, want: &'static str) -> EvalError {
        match self {
            Value::Text(t) => EvalError::Malformed(t.to_string()),
            other => EvalError::Type { want, got: other.type_name() },
        }
    }

    /// Appends the value as PostgreSQL reads it in text format.
    #[inline]
    pub fn write_text(&self, out: &mut Vec<u8>) {
        match self {
            Value::Int(i) => out.extend_from_slice(itoa::Buffer::new().format(*i).as_bytes()),
            Value::Bool(b) => out.extend_from_slice(if *b { b"true" } else { b"false" }),
            Value::Null | Value::Unset => out.extend_from_slice(b"NULL"),
            Value::Double(d) => out.extend_from_slice(format_double(*d).as_bytes()),
            Value::Text(t) => out.extend_from_slice(t.as_bytes()),
        }
    }

    /// The value in text format, as [`Value::write_text`] writes it.
    pub fn text(&self) -> String {
        let mut out = Vec::new();
        self.write_text(&mut out);
        String::from_utf8_lossy(&out).into_owned()
    }
}

/// C's `%.15g`: what pgbench prints for a double.
pub fn format_double(d: f64) -> String {
    const DIGITS: i32 = 15;
    if d.is_nan() {
        return "nan".into();
    }
    if d.is_infinite() {
        return if d > 0.0 { "inf".into() } else { "-inf".into() };
    }
    if d == 0.0 {
        return if d.is_sign_negative() { "-0".into() } else { "0".into() };
    }
    let scientific = format!("{:.*e}", DIGITS as usize - 1, d);
    let (mantissa, exponent) = scientific.split_once('e').expect("format {:e} writes an e");
    let exponent: i32 = exponent.parse().expect("format {:e} writes an integer exponent");
    let strip = |s: &str| {
        if s.contains('.') { s.trim_end_matches('0').trim_end_matches('.').to_owned() } else { s.to_owned() }
    };
    if (-4..DIGITS).contains(&exponent) {
        strip(&format!("{:.*}", (DIGITS - 1 - exponent) as usize, d))
    } else {
        let sign = if exponent < 0 { '-' } else { '+' };
        format!("{}e{sign}{:02}", strip(mantissa), exponent.abs())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_print_as_percent_15_g() {
        for (d, s) in [
            (0.1, "0.1"),
            (1e15, "1e+15"),
            (123456789.0, "123456789"),
            (1e-5, "1e-05"),
            (0.0001, "0.0001"),
            (-2.5, "-2.5"),
            (1.0 / 3.0, "0.333333333333333"),
            (1e300, "1e+300"),
            (99999999999999.9, "99999999999999.9"),
        ] {
            assert_eq!(format_double(d), s);
        }
    }

    #[test]
    fn text_is_read_as_its_narrowest_type() {
        assert_eq!(Value::from_text("12"), Value::Int(12));
        assert_eq!(Value::from_text("-1.5"), Value::Double(-1.5));
        assert_eq!(Value::from_text("True"), Value::Bool(true));
        assert_eq!(Value::from_text("null"), Value::Null);
        assert_eq!(Value::from_text("inf"), Value::Text("inf".into()));
        assert_eq!(Value::from_text("a b"), Value::Text("a b".into()));
    }

    #[test]
    fn out_of_range_doubles_are_no_integers() {
        assert!(Value::Double(9.3e18).to_int().is_err());
        assert!(Value::Double(f64::NAN).to_int().is_err());
        assert_eq!(Value::Double(2.5).to_int(), Ok(2));
        assert_eq!(Value::Double(-9_223_372_036_854_775_808.0).to_int(), Ok(i64::MIN));
    }
}

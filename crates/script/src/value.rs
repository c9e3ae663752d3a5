//! Values of variables and expressions.

use crate::error::EvalError;
use std::sync::Arc;

/// Operand of an expression: one of pgbench's four types. Scalars are small and copied freely: the machine's stack
/// consists of them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scalar {
    /// SQL's NULL.
    Null,
    /// TRUE or FALSE.
    Bool(bool),
    /// A 64-bit integer.
    Int(i64),
    /// A double.
    Double(f64),
}

/// Value of a variable.
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
    /// Text of `-D` and `\\gset`, sent as it is; an expression reads it as its narrowest type.
    Text(Arc<Text>),
    /// Text of `\\pick`, sent as the value that it is: where a statement's text takes it, as a literal.
    Picked(Arc<Text>),
}

impl From<Scalar> for Value {
    #[inline]
    fn from(s: Scalar) -> Value {
        match s {
            Scalar::Null => Value::Null,
            Scalar::Bool(b) => Value::Bool(b),
            Scalar::Int(i) => Value::Int(i),
            Scalar::Double(d) => Value::Double(d),
        }
    }
}

/// Text, and what an expression makes of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Text {
    bytes: Box<[u8]>,
    reading: Result<Scalar, Unreadable>,
}

impl Text {
    /// Reads it once, so that expressions need not.
    pub fn new(bytes: &[u8]) -> Text {
        let reading = std::str::from_utf8(bytes).map_err(|_| Unreadable::Malformed).and_then(read);
        Text { bytes: bytes.into(), reading }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unreadable {
    Empty,
    Malformed,
    TooLarge,
}

impl Value {
    /// Returns the value that `-D name=text` defines.
    pub fn text_of(bytes: &[u8]) -> Value {
        Value::Text(Arc::new(Text::new(bytes)))
    }

    /// Returns the value that an expression reads from the variable `name()`, which holds this value.
    #[inline]
    pub fn read<'a>(&self, name: impl Fn() -> &'a str) -> Result<Scalar, Box<EvalError>> {
        match self {
            Value::Int(i) => Ok(Scalar::Int(*i)),
            Value::Double(d) => Ok(Scalar::Double(*d)),
            Value::Bool(b) => Ok(Scalar::Bool(*b)),
            Value::Null => Ok(Scalar::Null),
            Value::Unset => Err(Box::new(EvalError::Undefined(name().to_owned()))),
            Value::Text(t) | Value::Picked(t) => t.reading.map_err(|e| {
                Box::new(match e {
                    // pgbench says nothing of it.
                    Unreadable::Empty => EvalError::Argument(String::new()),
                    Unreadable::TooLarge => EvalError::TooLarge(self.text()),
                    Unreadable::Malformed => EvalError::Malformed { name: name().to_owned(), text: self.text() },
                })
            }),
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
            Value::Text(t) | Value::Picked(t) => out.extend_from_slice(&t.bytes),
        }
    }

    /// Appends the value as a statement's text takes it: pgbench's variables as they stand, a picked text as a literal.
    pub fn write_literal(&self, out: &mut Vec<u8>) {
        let Value::Picked(t) = self else { return self.write_text(out) };
        // Reads the same whatever standard_conforming_strings is.
        let escapes = t.bytes.contains(&b'\\');
        out.extend_from_slice(if escapes { b" E'" } else { b"'" });
        for b in &t.bytes {
            if *b == b'\'' || *b == b'\\' {
                out.push(*b);
            }
            out.push(*b);
        }
        out.push(b'\'');
    }

    /// The value in text format, as [`Value::write_text`] writes it.
    pub fn text(&self) -> String {
        let mut out = Vec::new();
        self.write_text(&mut out);
        String::from_utf8_lossy(&out).into_owned()
    }
}

impl Scalar {
    /// The type's name, as error messages call it.
    pub fn type_name(&self) -> &'static str {
        match self {
            Scalar::Null => "null",
            Scalar::Bool(_) => "boolean",
            Scalar::Int(_) => "int",
            Scalar::Double(_) => "double",
        }
    }

    /// Returns the value as an integer. A double is rounded to the nearest integer (halves to even) and must fit.
    #[inline]
    pub fn to_int(self) -> Result<i64, Box<EvalError>> {
        match self {
            Scalar::Int(i) => Ok(i),
            Scalar::Double(d) => {
                let r = d.round_ties_even();
                // 2^63 is exact as a double; everything below it that is a double fits.
                if (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&r) {
                    Ok(r as i64)
                } else {
                    Err(Box::new(EvalError::Argument(format!("double to int overflow for {}", fixed(r)))))
                }
            }
            other => Err(other.mismatch("int")),
        }
    }

    /// Returns the value as a double.
    #[inline]
    pub fn to_double(self) -> Result<f64, Box<EvalError>> {
        match self {
            Scalar::Int(i) => Ok(i as f64),
            Scalar::Double(d) => Ok(d),
            other => Err(other.mismatch("double")),
        }
    }

    /// Returns the value as a boolean; no other type converts to one.
    #[inline]
    pub fn to_bool(self) -> Result<bool, Box<EvalError>> {
        match self {
            Scalar::Bool(b) => Ok(b),
            other => Err(other.mismatch("boolean")),
        }
    }

    /// Returns the truth of a condition as `\\if` reads it: nonzero numbers are true, NULL is false.
    #[inline]
    pub fn truth(self) -> bool {
        match self {
            Scalar::Bool(b) => b,
            Scalar::Int(i) => i != 0,
            Scalar::Double(d) => d != 0.0,
            Scalar::Null => false,
        }
    }

    #[cold]
    fn mismatch(self, want: &'static str) -> Box<EvalError> {
        Box::new(EvalError::Type { want, got: self.type_name() })
    }
}

/// C's `%f` with PostgreSQL's words for what is no number.
pub fn fixed(d: f64) -> String {
    if d.is_finite() { format!("{d:.6}") } else { format_double(d) }
}

/// The narrowest type that reads a text, as pgbench documents it for its variables.
fn read(text: &str) -> Result<Scalar, Unreadable> {
    let is = |word: &str| text.eq_ignore_ascii_case(word);
    // "y" and "ye" are "yes"; but "o" could be either.
    let begins = |word: &str| text.len() <= word.len() && word[..text.len()].eq_ignore_ascii_case(text);
    if text.is_empty() {
        return Err(Unreadable::Empty);
    }
    if !text.is_ascii() {
        return Err(Unreadable::Malformed);
    }
    if is("null") {
        return Ok(Scalar::Null);
    }
    if begins("true") || begins("yes") || is("on") {
        return Ok(Scalar::Bool(true));
    }
    if begins("false") || begins("no") || is("off") || is("of") {
        return Ok(Scalar::Bool(false));
    }
    let number = text.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == '\x0b');
    if number.strip_prefix(['+', '-']).unwrap_or(number).bytes().all(|b| b.is_ascii_digit()) {
        return number.parse().map(Scalar::Int).map_err(|_| Unreadable::TooLarge);
    }
    // C's strtod also reads hexadecimal floats; nobody is known to pass them.
    match number.parse::<f64>() {
        Ok(d) if d.is_finite() || number.to_ascii_lowercase().contains(['n', 'i']) => Ok(Scalar::Double(d)),
        _ => Err(Unreadable::Malformed),
    }
}

/// C's `%.15g` with PostgreSQL's words for what is no number: what pgbench prints for a double.
pub fn format_double(d: f64) -> String {
    const DIGITS: i32 = 15;
    if d.is_nan() {
        return "NaN".into();
    }
    if d.is_infinite() {
        return if d > 0.0 { "Infinity".into() } else { "-Infinity".into() };
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
    fn text_is_read_as_its_narrowest_type_and_stays_text() {
        let read = |t: &str| Value::text_of(t.as_bytes()).read(|| "v");
        let shown = |t: &str| read(t).map_or(Value::Unset, Value::from);
        for (text, want) in [
            ("12", Value::Int(12)),
            ("007", Value::Int(7)),
            ("+3", Value::Int(3)),
            ("-1.5", Value::Double(-1.5)),
            ("1e3", Value::Double(1000.0)),
            ("True", Value::Bool(true)),
            ("t", Value::Bool(true)),
            ("YE", Value::Bool(true)),
            ("of", Value::Bool(false)),
            ("nul", Value::Unset),
            ("null", Value::Null),
            ("bla", Value::Unset),
            ("o", Value::Unset),
            ("trueXXX", Value::Unset),
            ("", Value::Unset),
            ("99999999999999999999", Value::Unset),
            ("1e999", Value::Unset),
        ] {
            assert_eq!(shown(text), want, "{text:?}");
            assert_eq!(Value::text_of(text.as_bytes()).text(), text);
        }
        assert_eq!(read("bla").unwrap_err().to_string(), "malformed variable \"v\" value: \"bla\"");
        assert!(read("99999999999999999999").unwrap_err().to_string().contains("out of range for type bigint"));
    }

    #[test]
    fn out_of_range_doubles_are_no_integers() {
        assert!(Scalar::Double(9.3e18).to_int().is_err());
        assert!(Scalar::Double(f64::NAN).to_int().is_err());
        assert_eq!(Scalar::Double(2.5).to_int(), Ok(2));
        assert_eq!(Scalar::Double(-9_223_372_036_854_775_808.0).to_int(), Ok(i64::MIN));
    }
}

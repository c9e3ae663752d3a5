//! Tokens of an expression.

use crate::error::Fault;

/// A token and the byte offset (into the script) where it begins.
#[derive(Clone, Debug, PartialEq)]
pub struct Token {
    /// Offset of its beginning.
    pub offset: usize,
    /// Length in bytes.
    pub length: usize,
    /// Kind of the token.
    pub kind: TokenKind,
}

impl Token {
    /// The offset of its last byte.
    pub fn last(&self) -> usize {
        self.offset + self.length - 1
    }
}

/// Kind of a token.
#[derive(Clone, Debug, PartialEq)]
pub enum TokenKind {
    /// An integer literal; `9223372036854775808` is only valid behind a minus.
    Int(u64),
    /// A floating point literal.
    Double(f64),
    /// `:name`
    Variable(String),
    /// A keyword or a function's name, in lower case.
    Word(String),
    /// An operator or a parenthesis or a comma.
    Op(&'static str),
}

/// Longer operators first, so that the first match is the longest.
const OPERATORS: [&str; 20] =
    ["<<", ">>", "<=", ">=", "<>", "!=", "+", "-", "*", "/", "%", "=", "<", ">", "|", "#", "&", "~", "(", ")"];

/// Cuts `text`, which begins at `base` in the script, into tokens. Of several mistakes we name the first; pgbench, which
/// reads on to the end of the line when it has found one, the last.
pub fn tokenize(text: &str, base: usize) -> Result<Vec<Token>, Fault> {
    let bytes = text.as_bytes();
    let mut tokens = Vec::new();
    let mut first: Option<Fault> = None;
    let mut wrong = |fault: Fault| match &mut first {
        Some(first) => first.classic = fault.classic,
        None => first = Some(fault),
    };
    let mut i = 0;
    while i < bytes.len() {
        let offset = base + i;
        let c = bytes[i];
        let run = |from: usize, accept: fn(u8) -> bool| {
            bytes[from..].iter().position(|b| !accept(*b)).map_or(bytes.len(), |n| from + n)
        };
        let kind = match c {
            b' ' | b'\t' | b'\r' | b'\x0b' | b'\x0c' | b'\n' => {
                i += 1;
                continue;
            }
            // A backslash at the end of a line continues the command.
            b'\\' if text[i + 1..].trim_start_matches('\r').starts_with('\n') => {
                i = text[i..].find('\n').map_or(bytes.len(), |n| i + n + 1);
                continue;
            }
            b':' => {
                let end = run(i + 1, |b| b.is_ascii_alphanumeric() || b == b'_' || b >= 0x80);
                if end == i + 1 {
                    wrong(
                        Fault::new(offset, "a variable's name must follow the colon")
                            .classic("unexpected character (:)")
                            .caret(offset),
                    );
                    i += 1;
                    continue;
                }
                let name = text[i + 1..end].to_owned();
                i = end;
                TokenKind::Variable(name)
            }
            b'0'..=b'9' | b'.' => match number(text, i) {
                Ok((kind, end)) => {
                    i = end;
                    kind
                }
                Err((ours, classic, length)) => {
                    wrong(Fault::new(offset, ours).classic(classic).caret(offset + length - 1));
                    i += length;
                    continue;
                }
            },
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | 0x80.. => {
                let end = run(i, |b| b.is_ascii_alphanumeric() || b == b'_' || b >= 0x80);
                let word = text[i..end].to_ascii_lowercase();
                i = end;
                TokenKind::Word(word)
            }
            b',' => {
                i += 1;
                TokenKind::Op(",")
            }
            _ => match OPERATORS.iter().find(|op| text[i..].starts_with(**op)) {
                Some(op) => {
                    i += op.len();
                    TokenKind::Op(op)
                }
                None => {
                    let c = char::from(c);
                    wrong(
                        Fault::new(offset, format!("unexpected character \"{c}\""))
                            .classic(format!("unexpected character ({c})"))
                            .caret(offset),
                    );
                    i += 1;
                    continue;
                }
            },
        };
        tokens.push(Token { offset, length: base + i - offset, kind });
    }
    first.map_or(Ok(tokens), Err)
}

/// Reads the number at byte `start`: the token and the offset behind it; or our words, pgbench's, and how many bytes
/// they concern.
fn number(text: &str, start: usize) -> Result<(TokenKind, usize), (String, String, usize)> {
    let bytes = text.as_bytes();
    let digits = |from: usize| {
        bytes[from.min(bytes.len())..].iter().position(|b| !b.is_ascii_digit()).map_or(bytes.len(), |n| from + n)
    };
    let mut end = digits(start);
    let mut double = false;
    if bytes.get(end) == Some(&b'.') {
        double = true;
        end = digits(end + 1);
        if end == start + 1 {
            return Err(("unexpected character \".\"".into(), "unexpected character (.)".into(), 1));
        }
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        let exponent_end = digits(end + 1 + sign);
        if exponent_end > end + 1 + sign {
            double = true;
            end = exponent_end;
        }
    }
    let literal = &text[start..end];
    let overflow = |kind: &str| {
        (format!("{kind} constant overflow: {literal}"), format!("{kind} constant overflow ({literal})"), end - start)
    };
    if double {
        return match literal.parse::<f64>() {
            Ok(d) if d.is_finite() => Ok((TokenKind::Double(d), end)),
            _ => Err(overflow("double")),
        };
    }
    match literal.parse::<u64>() {
        Ok(i) if i <= 1 << 63 => Ok((TokenKind::Int(i), end)),
        _ => Err(overflow("bigint")),
    }
}

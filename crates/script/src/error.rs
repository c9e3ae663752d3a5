//! What can be wrong with a script, and where.
//!
//! - [`ScriptError`]: found before the run, with file, line, column and the line itself under a caret.
//! - [`EvalError`]: found while a client evaluates an expression (division by zero, a value out of range);
//!   [`crate::Program::locate`] turns it into a [`ScriptError`].

use std::fmt;

/// A mistake in a script, with its place. `Display` prints `file:line:column: message`, the line and a caret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptError {
    /// The script's name, as the user gave it.
    pub file: String,
    /// Counted from 1.
    pub line: usize,
    /// Counted from 1, in characters.
    pub column: usize,
    /// What is wrong.
    pub message: String,
    /// What to do about it; may be empty.
    pub hint: String,
    /// The line of the script that the position is in.
    pub source: String,
}

impl ScriptError {
    /// An error at byte `offset` of `text`.
    pub fn at(file: &str, text: &str, offset: usize, message: impl Into<String>, hint: impl Into<String>) -> Self {
        let mut offset = offset.min(text.len());
        while !text.is_char_boundary(offset) {
            offset -= 1;
        }
        let start = text[..offset].rfind('\n').map_or(0, |i| i + 1);
        let end = text[offset..].find('\n').map_or(text.len(), |i| offset + i);
        ScriptError {
            file: file.to_owned(),
            line: text[..offset].matches('\n').count() + 1,
            column: text[start..offset].chars().count() + 1,
            message: message.into(),
            hint: hint.into(),
            source: text[start..end].trim_end().to_owned(),
        }
    }
}

impl fmt::Display for ScriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}:{}:{}: {}", self.file, self.line, self.column, self.message)?;
        writeln!(f, "    {}", self.source)?;
        // Tabs are kept, so that the caret stands under its character however wide the terminal makes them.
        let pad: String =
            self.source.chars().take(self.column - 1).map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
        write!(f, "    {pad}^")?;
        if !self.hint.is_empty() {
            write!(f, "\n{}", self.hint)?;
        }
        Ok(())
    }
}

impl std::error::Error for ScriptError {}

/// A place-less mistake: the byte range it concerns within the text that was being read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Byte offset into the script.
    pub offset: usize,
    /// What is wrong.
    pub message: String,
    /// What to do about it; may be empty.
    pub hint: String,
}

impl Fault {
    /// A fault without a hint.
    pub fn new(offset: usize, message: impl Into<String>) -> Fault {
        Fault { offset, message: message.into(), hint: String::new() }
    }

    /// Adds what to do about it.
    pub fn hint(mut self, hint: impl Into<String>) -> Fault {
        self.hint = hint.into();
        self
    }
}

/// An expression that cannot be evaluated. `Display` is the message that pgbench prints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EvalError {
    /// Integer division or modulo by zero.
    DivisionByZero,
    /// An integer operation left 64 bits; the operation's name.
    OutOfRange(&'static str),
    /// A value of the wrong type: what was wanted and what was there.
    Type {
        /// The wanted type.
        want: &'static str,
        /// The type that the value has.
        got: &'static str,
    },
    /// A text that is no number, in an expression.
    Malformed(String),
    /// An argument out of its documented bounds.
    Argument(String),
    /// A variable without a value.
    Undefined(String),
}

impl fmt::Display for EvalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EvalError::DivisionByZero => f.write_str("division by zero"),
            EvalError::OutOfRange(what) => write!(f, "bigint {what} out of range"),
            EvalError::Type { want, got } => write!(f, "cannot coerce {got} to {want}"),
            EvalError::Malformed(text) => write!(f, "malformed variable value: \"{text}\" is not a number or boolean"),
            EvalError::Argument(message) => f.write_str(message),
            EvalError::Undefined(name) => write!(f, "undefined variable \"{name}\""),
        }
    }
}

impl std::error::Error for EvalError {}

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
    /// Description of the mistake.
    pub message: String,
    /// Suggested remedy; may be empty.
    pub hint: String,
    /// The line of the script that the position is in.
    pub source: Box<str>,
    /// Message for the same mistake in pgbench's words and form, without the leading `pgbench: error: `.
    pub classic: Box<str>,
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
        let (line, message) = (line_of(text, offset), message.into());
        ScriptError {
            file: file.to_owned(),
            line,
            column: text[start..offset].chars().count() + 1,
            classic: format!("{file}:{line}: {message}").into(),
            message,
            hint: hint.into(),
            source: text[start..end].trim_end().into(),
        }
    }

    /// A fault in the script `text`.
    pub fn of(file: &str, text: &str, fault: Fault) -> Self {
        let mut error = ScriptError::at(file, text, fault.offset, &fault.message, &fault.hint);
        let words = fault.classic.words.as_deref().unwrap_or(&fault.message);
        error.classic = match &fault.classic.command {
            // Says itself where it is.
            None if fault.classic.whole => words.replace("{script}", file).into(),
            None => error.classic.replace(&fault.message, words).into(),
            Some(c) => {
                let name = &c.name;
                let mut out = format!("{file}:{}: {words} in command \"{name}\"", line_of(text, c.start));
                if c.shown {
                    out.push_str(&format!("\n{}", text[c.start..c.end].trim_end_matches(['\n', '\r'])));
                }
                if let Some(caret) = fault.classic.caret {
                    // The end of a file is seen one byte before that of a line.
                    let caret = caret.min(text.len() - 1).max(c.start);
                    // A width of a format has 16 bits only.
                    out.push_str(&format!("\n{}^ error found here", " ".repeat(caret - c.start)));
                }
                out.into()
            }
        };
        error
    }
}

/// Characters of a line that are shown: more than anybody's terminal has.
const SHOWN: usize = 200;

impl ScriptError {
    /// The first character that is shown of a line that is long.
    fn first_shown(&self) -> usize {
        if self.source.chars().count() <= SHOWN { 0 } else { (self.column - 1).saturating_sub(SHOWN / 2) }
    }

    /// The line, or of a long one what is about the place; with marks for what was left out.
    fn excerpt(&self) -> (&'static str, String, &'static str) {
        let (first, length) = (self.first_shown(), self.source.chars().count());
        let shown = self.source.chars().skip(first).take(SHOWN).collect();
        (if first > 0 { "…" } else { "" }, shown, if first + SHOWN < length { "…" } else { "" })
    }
}

fn line_of(text: &str, offset: usize) -> usize {
    text.as_bytes()[..offset.min(text.len())].iter().filter(|b| **b == b'\n').count() + 1
}

impl fmt::Display for ScriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}:{}:{}: {}", self.file, self.line, self.column, self.message)?;
        let (before, source, after) = self.excerpt();
        writeln!(f, "    {before}{source}{after}")?;
        // Tabs are kept, so that the caret stands under its character however wide the terminal makes them.
        let within = self.column - 1 - self.first_shown() + before.chars().count();
        let pad: String =
            before.chars().chain(source.chars()).take(within).map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
        write!(f, "    {pad}^")?;
        if !self.hint.is_empty() {
            write!(f, "\n{}", self.hint)?;
        }
        Ok(())
    }
}

impl std::error::Error for ScriptError {}

/// The meta-command that a fault lies in, as pgbench shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// Its name, as written.
    pub name: String,
    /// Offset of its beginning, the backslash.
    pub start: usize,
    /// Behind its last byte.
    pub end: usize,
    /// True if its text is repeated below the message.
    pub shown: bool,
}

/// Message of pgbench for a fault, as far as it differs from pgdyno's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Classic {
    /// Its words; without them ours are also its.
    pub words: Option<String>,
    /// The words are the whole message: no file and line in front. `{script}` stands for the script's name.
    pub whole: bool,
    /// The meta-command.
    pub command: Option<Span>,
    /// Position of pgbench's caret.
    pub caret: Option<usize>,
}

/// A place-less mistake: the byte it concerns within the text that was being read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Byte offset into the script.
    pub offset: usize,
    /// Description of the mistake.
    pub message: String,
    /// Suggested remedy; may be empty.
    pub hint: String,
    /// Message of pgbench for the fault.
    pub classic: Box<Classic>,
}

impl Fault {
    /// A fault without a hint.
    pub fn new(offset: usize, message: impl Into<String>) -> Fault {
        Fault { offset, message: message.into(), hint: String::new(), classic: Box::default() }
    }

    /// Adds what to do about it.
    pub fn hint(mut self, hint: impl Into<String>) -> Fault {
        self.hint = hint.into();
        self
    }

    /// Adds pgbench's words.
    pub fn classic(mut self, words: impl Into<String>) -> Fault {
        self.classic.words = Some(words.into());
        self
    }

    /// Adds the byte that pgbench's caret points at.
    pub fn caret(mut self, at: usize) -> Fault {
        self.classic.caret = Some(at);
        self
    }

    /// Adds pgbench's words, which are all that it prints.
    pub fn classic_whole(mut self, words: impl Into<String>) -> Fault {
        self.classic.words = Some(words.into());
        self.classic.whole = true;
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
    /// A variable's text that is no number and no boolean, in an expression.
    Malformed {
        /// The variable.
        name: String,
        /// Its text.
        text: String,
    },
    /// A variable's text that would be an integer if it were not so large.
    TooLarge(String),
    /// An argument out of its documented bounds.
    Argument(String),
    /// A variable without a value.
    Undefined(String),
    /// A name that no variable can have, and the command that would assign it.
    Name(&'static str, String),
    /// `\sleep` or `\shell` cannot be carried out; why.
    Execution(String),
}

impl EvalError {
    /// Returns pgbench's name for the step that failed.
    pub fn stage(&self) -> &'static str {
        match self {
            EvalError::Execution(_) | EvalError::Name("setshell", _) => "execution",
            EvalError::Name(..) => "assignment",
            _ => "evaluation",
        }
    }
}

impl fmt::Display for EvalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EvalError::DivisionByZero => f.write_str("division by zero"),
            EvalError::OutOfRange(what) => write!(f, "bigint {what} out of range"),
            EvalError::Type { want, got } => write!(f, "cannot coerce {got} to {want}"),
            EvalError::Malformed { name, text } => write!(f, "malformed variable \"{name}\" value: \"{text}\""),
            EvalError::TooLarge(text) => write!(f, "value \"{text}\" is out of range for type bigint"),
            EvalError::Argument(message) | EvalError::Execution(message) => f.write_str(message),
            EvalError::Undefined(name) => write!(f, "undefined variable \"{name}\""),
            EvalError::Name(command, name) => write!(f, "{command}: invalid variable name: \"{name}\""),
        }
    }
}

impl std::error::Error for EvalError {}

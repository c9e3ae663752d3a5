//! What a server says of an error, or in a notice.

use crate::sqlstate::SqlState;
use std::fmt;

/// An error, a warning or a notice of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerError {
    /// ERROR, FATAL, WARNING ... in English.
    pub severity: String,
    /// SQLSTATE.
    pub code: Option<SqlState>,
    /// The message.
    pub message: String,
    /// More about it.
    pub detail: Option<String>,
    /// Suggested remedy.
    pub hint: Option<String>,
    /// Context of the error: the call stack of functions, and the like.
    pub context: Option<String>,
    /// The character of the statement that it concerns, from 1.
    pub position: Option<usize>,
    /// The statement that a function was carrying out.
    pub internal_query: Option<String>,
    /// The character of that.
    pub internal_position: Option<usize>,
}

impl ServerError {
    /// The message as libpq words it, and psql and pgbench show it: with the line of `sql` that it concerns, and a caret.
    pub fn classic(&self, sql: Option<&str>) -> String {
        let mut out = format!("{}:  {}", self.severity, self.message);
        let places = [(sql, self.position), (self.internal_query.as_deref(), self.internal_position)];
        match places.into_iter().find_map(|(sql, position)| position.map(|p| (sql, p))) {
            Some((Some(sql), position)) => out.push_str(&excerpt(sql, position)),
            // Of a statement that was prepared before, only the server knows the text.
            Some((None, position)) => out.push_str(&format!(" at character {position}")),
            None => {}
        }
        for (label, text) in [
            ("DETAIL", &self.detail),
            ("HINT", &self.hint),
            ("QUERY", &self.internal_query),
            ("CONTEXT", &self.context),
        ] {
            if let Some(text) = text {
                // Notices carry no context there, and most of theirs is noise.
                if label != "CONTEXT" || matches!(self.severity.as_str(), "ERROR" | "FATAL" | "PANIC") {
                    out.push_str(&format!("\n{label}:  {text}"));
                }
            }
        }
        out
    }

    /// The code, or the one that stands for a missing code.
    pub fn state(&self) -> SqlState {
        self.code.unwrap_or(SqlState::UNKNOWN)
    }
}

impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = if self.severity.is_empty() { "ERROR" } else { &self.severity };
        write!(f, "{severity}: {} (SQLSTATE {})", self.message, self.state())?;
        if let Some(detail) = &self.detail {
            write!(f, "; {detail}")?;
        }
        if let Some(hint) = &self.hint {
            write!(f, "; {hint}")?;
        }
        Ok(())
    }
}

/// The line of `sql` that holds its character `position` (from 1), cut to 60 characters, and a caret below it.
fn excerpt(sql: &str, position: usize) -> String {
    const WIDTH: usize = 60;
    const RIGHT: usize = 10;
    let characters: Vec<char> = sql.chars().collect();
    let Some(at) = position.checked_sub(1).filter(|at| *at <= characters.len()) else { return String::new() };
    let is_break = |c: &char| *c == '\n' || *c == '\r';
    let start = characters[..at].iter().rposition(is_break).map_or(0, |n| n + 1);
    let end = characters[at..].iter().position(is_break).map_or(characters.len(), |n| at + n);
    let number = characters[..start].iter().filter(|c| **c == '\n').count() + 1;
    let (mut from, mut to) = (start, end);
    if to - from > WIDTH {
        if start + WIDTH >= at + RIGHT {
            to = start + WIDTH;
        } else {
            to = end.min(at + RIGHT);
            from = to - WIDTH;
        }
    }
    let (before, after) = (if from > start { "..." } else { "" }, if to < end { "..." } else { "" });
    let shown: String = characters[from..to].iter().map(|c| if *c == '\t' { ' ' } else { *c }).collect();
    let label = format!("LINE {number}: {before}");
    format!("\n{label}{shown}{after}\n{:>width$}", '^', width = label.chars().count() + at - from + 1)
}

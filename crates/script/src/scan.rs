//! Cuts a script into commands: SQL statements end at a semicolon outside quotes, comments, parentheses and the body of
//! an SQL function, or at a backslash; meta-commands begin with a backslash and end with the line (a backslash before the
//! newline continues it).

use crate::ast::{Command, CommandKind};
use crate::error::Fault;
use crate::flavour::Flavour;
use crate::meta::{end_of_meta, meta};
use crate::program::Capture;

/// Maximum length of a statement's first line in reports, bytes: pgbench's limit.
const SHOWN: usize = 127;

/// The commands of `text`, in order.
pub fn scan(text: &str, flavour: Flavour) -> Result<Vec<Command>, Fault> {
    let bytes = text.as_bytes();
    let mut commands: Vec<Command> = Vec::new();
    let mut at = 0;
    loop {
        at = skip_blanks(text, at, flavour);
        if at >= bytes.len() {
            return Ok(commands);
        }
        if bytes[at] == b'\\' && !matches!(bytes.get(at + 1), Some(b';' | b':')) {
            let end = end_of_meta(text, at);
            meta(text, at, end, &mut commands)?;
            at = end;
        } else {
            let sql = Sql::read(text, at, flavour)?;
            // A semicolon alone is a statement too: the empty one.
            if sql.ended || !sql.text.trim_end().is_empty() {
                commands.push(sql.command(at));
            }
            at = sql.next;
        }
    }
}

/// Skips white space and `--` comments before a command. A comment in `/* */` belongs to the statement behind it: it may
/// be a hint.
fn skip_blanks(text: &str, mut at: usize, flavour: Flavour) -> usize {
    let bytes = text.as_bytes();
    while at < bytes.len() {
        if bytes[at].is_ascii_whitespace() || bytes[at] == b'\x0b' {
            at += 1;
        } else if text[at..].starts_with("--") || (flavour == Flavour::MySql && bytes[at] == b'#') {
            at = text[at..].find('\n').map_or(bytes.len(), |n| at + n);
        } else {
            break;
        }
    }
    at
}

/// Returns true if a statement's text contains only comments.
pub fn is_only_comments(text: &str, flavour: Flavour) -> bool {
    let mut at = 0;
    loop {
        at = skip_blanks(text, at, flavour);
        if at >= text.len() {
            return true;
        }
        if !text[at..].starts_with("/*") {
            return false;
        }
        let Ok(end) = end_of_comment(text, at, flavour) else { return false };
        at = end;
    }
}

/// Behind the literal, quoted identifier or comment that begins at `at`; `at` itself where none does. The statement
/// begins at `start`.
fn quoted(text: &str, start: usize, at: usize, flavour: Flavour) -> Result<usize, Fault> {
    let bytes = text.as_bytes();
    let mysql = flavour == Flavour::MySql;
    match bytes[at] {
        quote @ (b'\'' | b'"') if mysql => end_of_quote(text, at, quote, true),
        b'`' if mysql => end_of_quote(text, at, b'`', false),
        b'#' if mysql => Ok(text[at..].find('\n').map_or(bytes.len(), |n| at + n)),
        b'$' if mysql => Ok(at),
        b'\'' => {
            // E'...' has backslash escapes.
            let escapes =
                at > start && matches!(bytes[at - 1], b'e' | b'E') && (at < start + 2 || !is_identifier(bytes[at - 2]));
            end_of_quote(text, at, b'\'', escapes)
        }
        b'"' => end_of_quote(text, at, b'"', false),
        b'$' if at == start || !is_identifier(bytes[at - 1]) => {
            let end = end_of_dollar_quote(text, at)?;
            Ok(if end == at + 1 { at } else { end })
        }
        b'-' if text[at..].starts_with("--") => Ok(text[at..].find('\n').map_or(bytes.len(), |n| at + n)),
        b'/' if text[at..].starts_with("/*") => end_of_comment(text, at, flavour),
        _ => Ok(at),
    }
}

/// Returns the end of the literal, quoted identifier or comment that begins at `at` in an extracted statement. Returns
/// `at` if none begins there, and `None` if it does not end.
pub fn end_of_quoted(sql: &str, at: usize, flavour: Flavour) -> Option<usize> {
    quoted(sql, 0, at, flavour).ok()
}

/// Behind the comment that begins at `start`. PostgreSQL's nest.
fn end_of_comment(text: &str, start: usize, flavour: Flavour) -> Result<usize, Fault> {
    let bytes = text.as_bytes();
    let (mut at, mut depth) = (start, 0usize);
    while at + 1 < bytes.len() {
        match &bytes[at..at + 2] {
            b"/*" if flavour == Flavour::Postgres || depth == 0 => {
                depth += 1;
                at += 2;
            }
            b"*/" => {
                depth -= 1;
                at += 2;
                if depth == 0 {
                    return Ok(at);
                }
            }
            _ => at += 1,
        }
    }
    Err(Fault::new(start, "unterminated comment").hint("Close it with */."))
}

/// A statement as it was read.
struct Sql {
    /// Without its semicolon; blanks before that are kept, since the server's messages count them.
    text: String,
    /// It had one.
    ended: bool,
    /// Offset at which the next command may begin.
    next: usize,
}

impl Sql {
    fn read(text: &str, start: usize, flavour: Flavour) -> Result<Sql, Fault> {
        let bytes = text.as_bytes();
        let mut at = start;
        let mut parentheses = 0usize;
        let mut body = FunctionBody::default();
        // What has been copied up to: `\;` and `\:` lose their backslash.
        let (mut out, mut copied) = (String::new(), start);
        while at < bytes.len() {
            let behind = quoted(text, start, at, flavour)?;
            if behind > at {
                at = behind;
                continue;
            }
            match bytes[at] {
                b'(' => {
                    parentheses += 1;
                    at += 1;
                }
                b')' => {
                    parentheses = parentheses.saturating_sub(1);
                    at += 1;
                }
                b';' if parentheses == 0 && !body.is_open() => {
                    out.push_str(&text[copied..at]);
                    return Ok(Sql { text: out, ended: true, next: at + 1 });
                }
                b'\\' if matches!(bytes.get(at + 1), Some(b';' | b':')) => {
                    out.push_str(&text[copied..at]);
                    copied = at + 1;
                    at += 2;
                    body = FunctionBody::default();
                }
                b'\\' => break,
                b if b.is_ascii_alphabetic() || b == b'_' || b >= 0x80 => {
                    let end = bytes[at..].iter().position(|b| !is_identifier(*b)).map_or(bytes.len(), |n| at + n);
                    // The prefix of a literal (E'', U&'') is looked at with its quote.
                    body.word(&text[at..end], parentheses);
                    at = end;
                }
                _ => at += 1,
            }
        }
        out.push_str(&text[copied..at]);
        Ok(Sql { text: out, ended: false, next: at })
    }

    fn command(&self, offset: usize) -> Command {
        let first: String = self.text.chars().take_while(|c| *c != '\n' && *c != '\r').collect();
        let whole = first.len() == self.text.len();
        let mut shown = if whole && self.ended { format!("{first};") } else { first };
        if shown.len() > SHOWN {
            let mut end = SHOWN;
            while !shown.is_char_boundary(end) {
                end -= 1;
            }
            shown.truncate(end);
        }
        Command {
            offset,
            text: self.text.clone(),
            shown,
            name: "SQL".into(),
            kind: CommandKind::Sql { capture: Capture::Nothing, ended: self.ended },
        }
    }
}

/// Follows `CREATE FUNCTION ... BEGIN ATOMIC ...; END`: semicolons inside it end nothing.
#[derive(Default)]
struct FunctionBody {
    /// The first words of the statement, as far as they tell what it is.
    words: Vec<String>,
    depth: usize,
}

impl FunctionBody {
    fn word(&mut self, word: &str, parentheses: usize) {
        let word = word.to_ascii_lowercase();
        if self.words.len() < 4 {
            self.words.push(word.clone());
        }
        let mut first = self.words.iter().map(String::as_str).filter(|w| !matches!(*w, "or" | "replace"));
        let routine = first.next() == Some("create") && matches!(first.next(), Some("function" | "procedure"));
        if !routine || parentheses > 0 {
            return;
        }
        match word.as_str() {
            "begin" => self.depth += 1,
            // CASE ends with END too.
            "case" if self.depth > 0 => self.depth += 1,
            "end" => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
    }

    fn is_open(&self) -> bool {
        self.depth > 0
    }
}

fn is_identifier(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'_' || b == b'$' || b >= 0x80
}

fn end_of_quote(text: &str, start: usize, quote: u8, escapes: bool) -> Result<usize, Fault> {
    let bytes = text.as_bytes();
    let mut at = start + 1;
    while at < bytes.len() {
        if escapes && bytes[at] == b'\\' {
            at += 2;
        } else if bytes[at] == quote && bytes.get(at + 1) == Some(&quote) {
            // A doubled quote stands for one: a backslash behind it still escapes.
            at += 2;
        } else if bytes[at] == quote {
            return Ok(at + 1);
        } else {
            at += 1;
        }
    }
    let what = if matches!(quote, b'"' | b'`') { "quoted identifier" } else { "string literal" };
    Err(Fault::new(start, format!("unterminated {what}")).hint(format!("Close it with {}.", quote as char)))
}

fn end_of_dollar_quote(text: &str, start: usize) -> Result<usize, Fault> {
    let rest = &text[start + 1..];
    let Some(tag_len) = rest.find('$') else { return Ok(start + 1) };
    let tag = &rest[..tag_len];
    let valid = !tag.starts_with(|c: char| c.is_ascii_digit())
        && tag.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b >= 0x80);
    if !valid {
        return Ok(start + 1);
    }
    let quote = &text[start..start + tag_len + 2];
    let body = start + quote.len();
    match text[body..].find(quote) {
        Some(n) => Ok(body + n + quote.len()),
        None => Err(Fault::new(start, "unterminated dollar-quoted string").hint(format!("Close it with {quote}."))),
    }
}

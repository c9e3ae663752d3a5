//! Cuts a script into commands: SQL statements end at a semicolon outside quotes, comments, parentheses and the body of
//! an SQL function, or at a backslash; meta-commands begin with a backslash and end with the line (a backslash before the
//! newline continues it).

use crate::ast::{Amount, Command, CommandKind, Expr, ExprKind};
use crate::error::{Fault, Span};
use crate::functions::Function;
use crate::parser::parse_expression;
use crate::program::Capture;

/// How long the first line of a statement is in reports: pgbench's limit.
const SHOWN: usize = 127;
/// Words of a meta-command, its name included: pgbench's limit.
const MAX_WORDS: usize = 256;

const META_COMMANDS: &str = "\\set, \\setrandom (historic), \\sleep, \\shell, \\setshell, \\gset, \\aset, \\if, \\elif, \\else, \
                             \\endif, \\startpipeline, \\syncpipeline, \\endpipeline";

/// The commands of `text`, in order.
pub fn scan(text: &str) -> Result<Vec<Command>, Fault> {
    let bytes = text.as_bytes();
    let mut commands: Vec<Command> = Vec::new();
    let mut at = 0;
    loop {
        at = skip_blanks(text, at)?;
        if at >= bytes.len() {
            return Ok(commands);
        }
        if bytes[at] == b'\\' && !matches!(bytes.get(at + 1), Some(b';' | b':')) {
            let end = end_of_meta(text, at);
            meta(text, at, end, &mut commands)?;
            at = end;
        } else {
            let sql = Sql::read(text, at)?;
            // A semicolon alone is a statement too: the empty one.
            if sql.ended || !sql.text.trim_end().is_empty() {
                commands.push(sql.command(at));
            }
            at = sql.next;
        }
    }
}

/// Skips white space and comments before a command.
fn skip_blanks(text: &str, mut at: usize) -> Result<usize, Fault> {
    let bytes = text.as_bytes();
    while at < bytes.len() {
        if bytes[at].is_ascii_whitespace() || bytes[at] == b'\x0b' {
            at += 1;
        } else if text[at..].starts_with("--") {
            at = text[at..].find('\n').map_or(bytes.len(), |n| at + n);
        } else if text[at..].starts_with("/*") {
            at = end_of_comment(text, at)?;
        } else {
            break;
        }
    }
    Ok(at)
}

/// Behind the (nestable) comment that begins at `start`.
fn end_of_comment(text: &str, start: usize) -> Result<usize, Fault> {
    let bytes = text.as_bytes();
    let (mut at, mut depth) = (start, 0usize);
    while at + 1 < bytes.len() {
        match &bytes[at..at + 2] {
            b"/*" => {
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
    /// Where the next command may begin.
    next: usize,
}

impl Sql {
    fn read(text: &str, start: usize) -> Result<Sql, Fault> {
        let bytes = text.as_bytes();
        let mut at = start;
        let mut parentheses = 0usize;
        let mut body = FunctionBody::default();
        // What has been copied up to: `\;` and `\:` lose their backslash.
        let (mut out, mut copied) = (String::new(), start);
        while at < bytes.len() {
            match bytes[at] {
                b'\'' => {
                    // E'...' has backslash escapes.
                    let escapes = at > start
                        && matches!(bytes[at - 1], b'e' | b'E')
                        && (at < start + 2 || !is_identifier(bytes[at - 2]));
                    at = end_of_quote(text, at, b'\'', escapes)?;
                }
                b'"' => at = end_of_quote(text, at, b'"', false)?,
                b'$' if at == start || !is_identifier(bytes[at - 1]) => at = end_of_dollar_quote(text, at)?,
                b'-' if text[at..].starts_with("--") => at = text[at..].find('\n').map_or(bytes.len(), |n| at + n),
                b'/' if text[at..].starts_with("/*") => at = end_of_comment(text, at)?,
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
        Ok(Sql { text: out.trim_end().to_owned(), ended: false, next: at })
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
        } else if bytes[at] == quote {
            // A doubled quote stands for one; the scan then simply enters a new literal.
            return Ok(at + 1);
        } else {
            at += 1;
        }
    }
    let what = if quote == b'"' { "quoted identifier" } else { "string literal" };
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

/// Behind the meta-command that begins at `start`: its newline, unless a backslash continues the line.
fn end_of_meta(text: &str, start: usize) -> usize {
    let mut from = start;
    while let Some(n) = text[from..].find('\n') {
        let newline = from + n;
        if !text[start..newline].trim_end_matches('\r').ends_with('\\') {
            return newline;
        }
        from = newline + 1;
    }
    text.len()
}

/// A word of a meta-command with its offset.
fn words(text: &str, start: usize, end: usize) -> Vec<(usize, &str)> {
    let mut out = Vec::new();
    let mut at = start;
    while at < end {
        let rest = &text[at..end];
        let blank = |c: char| c.is_ascii_whitespace() || c == '\x0b';
        at += rest.len() - rest.trim_start_matches(blank).len();
        let rest = &text[at..end];
        // A backslash at the end of a line continues it.
        if let Some(n) = rest.strip_prefix('\\').map(|r| r.trim_start_matches('\r')).and_then(|r| r.strip_prefix('\n'))
        {
            at = end - n.len();
            continue;
        }
        if rest.is_empty() {
            break;
        }
        let mut len = rest.find(blank).unwrap_or(rest.len());
        if rest[..len].ends_with('\\') && rest[len..].trim_start_matches('\r').starts_with('\n') {
            len -= 1;
        }
        out.push((at, &rest[..len]));
        at += len;
    }
    out
}

/// A meta-command that is being read.
struct Meta<'a> {
    text: &'a str,
    start: usize,
    end: usize,
    /// Its name, as written.
    name: &'a str,
    /// The words behind it.
    args: Vec<(usize, &'a str)>,
}

impl<'a> Meta<'a> {
    /// A fault that pgbench shows with the command's text or without.
    fn fault(&self, offset: usize, message: impl Into<String>, shown: bool) -> Fault {
        self.at_command(Fault::new(offset, message), shown)
    }

    fn at_command(&self, mut fault: Fault, shown: bool) -> Fault {
        fault.classic.command = Some(Span { name: self.name.to_owned(), start: self.start, end: self.end, shown });
        fault
    }

    /// Everything from argument `n` to the end of the command, as an expression.
    fn expression(&self, n: usize) -> Result<Expr, Fault> {
        let from = self.args.get(n).map_or(self.end, |(at, _)| *at);
        let parsed = match self.args.get(n) {
            Some(_) => parse_expression(&self.text[from..self.end], from),
            None => {
                Err(Fault::new(self.end, "an expression was expected here").classic("syntax error").caret(self.end))
            }
        };
        parsed.map_err(|fault| self.at_command(fault, true))
    }

    fn at_most(&self, n: usize, message: &str) -> Result<(), Fault> {
        match self.args.get(n) {
            Some((at, word)) => Err(self.fault(*at, format!("{message}: \"{word}\""), true).classic(message)),
            None => Ok(()),
        }
    }
}

/// Reads the meta-command at `start..end` into `commands`.
fn meta(text: &str, start: usize, end: usize, commands: &mut Vec<Command>) -> Result<(), Fault> {
    let mut words = words(text, start + 1, end).into_iter();
    let Some((_, name)) = words.next() else {
        // A backslash alone: pgbench takes it for a comment.
        return Ok(());
    };
    let m = Meta { text, start, end, name, args: words.collect() };
    let lower = name.to_ascii_lowercase();
    let takes_words = !matches!(lower.as_str(), "set" | "if" | "elif");
    if takes_words && m.args.len() >= MAX_WORDS {
        return Err(m.fault(start, "too many arguments", false));
    }
    let kind = match lower.as_str() {
        "set" => {
            let Some((_, variable)) = m.args.first() else {
                return Err(m.fault(end, "missing variable name of \\set", false).classic("missing argument"));
            };
            CommandKind::Set { name: (*variable).to_owned(), value: m.expression(1)? }
        }
        "setrandom" => set_random(&m)?,
        "sleep" => sleep(&m)?,
        "if" => CommandKind::If(m.expression(0)?),
        "elif" => CommandKind::Elif(m.expression(0)?),
        "else" => m.at_most(0, "unexpected argument").map(|()| CommandKind::Else)?,
        "endif" => m.at_most(0, "unexpected argument").map(|()| CommandKind::Endif)?,
        "startpipeline" => m.at_most(0, "unexpected argument").map(|()| CommandKind::StartPipeline)?,
        "syncpipeline" => m.at_most(0, "unexpected argument").map(|()| CommandKind::SyncPipeline)?,
        "endpipeline" => m.at_most(0, "unexpected argument").map(|()| CommandKind::EndPipeline)?,
        "shell" => {
            if m.args.is_empty() {
                return Err(m.fault(end, "missing command", true));
            }
            CommandKind::Shell { assign: None, words: m.args.iter().map(|(_, w)| (*w).to_owned()).collect() }
        }
        "setshell" => {
            let [(_, variable), command @ ..] = m.args.as_slice() else {
                return Err(m.fault(end, "missing argument", true));
            };
            if command.is_empty() {
                return Err(m.fault(end, "missing argument", true));
            }
            let words = command.iter().map(|(_, w)| (*w).to_owned()).collect();
            CommandKind::Shell { assign: Some((*variable).to_owned()), words }
        }
        "gset" | "aset" => return capture(&m, lower == "gset", commands),
        _ => {
            return Err(m
                .fault(start, format!("invalid command \\{name}"), true)
                .classic("invalid command")
                .hint(format!("There are: {META_COMMANDS}.")));
        }
    };
    let shown = text[start..end].trim_end_matches(['\n', '\r']).to_owned();
    commands.push(Command { offset: start, text: shown.trim_end().to_owned(), shown, name: name.to_owned(), kind });
    Ok(())
}

/// `\gset` and `\aset` belong to the statement before them.
fn capture(m: &Meta<'_>, last: bool, commands: &mut [Command]) -> Result<(), Fault> {
    m.at_most(1, "too many arguments")?;
    let lone = |before: Option<&Command>| {
        let words = "\\gset must follow an SQL command";
        let classic = before.map_or(words.to_owned(), |c| match c.kind {
            CommandKind::Sql { .. } => words.to_owned(),
            _ => format!("{words} ({})", c.shown),
        });
        Err(Fault::new(m.start, format!("\\{} must follow an SQL command", m.name)).classic(classic))
    };
    let prefix = m.args.first().map_or(String::new(), |(_, w)| (*w).to_owned());
    match commands.last_mut() {
        Some(Command { kind: CommandKind::Sql { capture, .. }, .. }) if *capture == Capture::Nothing => {
            *capture = if last { Capture::Last(prefix) } else { Capture::Each(prefix) };
            Ok(())
        }
        before => lone(before.map(|c| &*c)),
    }
}

fn sleep(m: &Meta<'_>) -> Result<CommandKind, Fault> {
    let Some((at, word)) = m.args.first().copied() else {
        return Err(m.fault(m.end, "missing argument of \\sleep", true).classic("missing argument"));
    };
    if let Some((extra, _)) = m.args.get(2) {
        return Err(m.fault(*extra, "too many arguments", true).caret(*extra));
    }
    let mut unit = m.args.get(1).copied();
    let amount = if let Some(name) = word.strip_prefix(':') {
        Amount::Variable(name.to_owned())
    } else {
        // The unit may be glued to the number: `\sleep 10ms`.
        let unsigned = word.strip_prefix(['+', '-']).unwrap_or(word);
        let digits = unsigned.bytes().take_while(u8::is_ascii_digit).count();
        let rest = &unsigned[digits..];
        if !rest.is_empty() {
            if unit.is_some() || digits == 0 {
                return Err(m
                    .fault(at, format!("invalid sleep time, must be an integer: \"{word}\""), true)
                    .classic(format!("invalid sleep time, must be an integer ({word})"))
                    .caret(at));
            }
            unit = Some((at + word.len() - rest.len(), rest));
        }
        let number = &word[..word.len() - rest.len()];
        Amount::Number(number.parse::<i64>().unwrap_or(if digits == 0 { 0 } else { i64::MAX }))
    };
    let nanos = match unit.map(|(at, u)| (at, u.to_ascii_lowercase())) {
        None => 1_000_000_000,
        Some((_, u)) if u == "s" => 1_000_000_000,
        Some((_, u)) if u == "ms" => 1_000_000,
        Some((_, u)) if u == "us" => 1_000,
        Some((unit_at, u)) => {
            return Err(m
                .fault(unit_at, format!("unrecognized time unit \"{u}\", must be us, ms or s"), true)
                .classic(format!("unrecognized time unit, must be us, ms or s ({u})"))
                .caret(unit_at));
        }
    };
    Ok(CommandKind::Sleep { amount, unit: nanos })
}

/// `\setrandom name min max [uniform | gaussian p | exponential p]`, which pgbench had until PostgreSQL 9.5.
fn set_random(m: &Meta<'_>) -> Result<CommandKind, Fault> {
    let Some((_, name)) = m.args.first() else {
        return Err(m.fault(m.end, "missing variable name of \\setrandom", true).classic("missing argument"));
    };
    let argument = |n: usize, what: &str| match m.args.get(n) {
        Some((at, word)) => parse_expression(word, *at).map_err(|f| m.at_command(f, true)),
        None => Err(m
            .fault(m.end, format!("missing {what} of \\setrandom"), true)
            .classic("missing argument")
            .hint("\\setrandom is historic; write: \\set name random(min, max)")),
    };
    let mut call = vec![argument(1, "minimum")?, argument(2, "maximum")?];
    let distribution = m.args.get(3).map_or("uniform".to_owned(), |(_, w)| w.to_ascii_lowercase());
    let (f, parameters) = match distribution.as_str() {
        "uniform" => (Function::Random, 0),
        "gaussian" => (Function::RandomGaussian, 1),
        "exponential" => (Function::RandomExponential, 1),
        other => {
            let at = m.args.get(3).map_or(m.end, |(at, _)| *at);
            return Err(m
                .fault(at, format!("unknown distribution \"{other}\" of \\setrandom"), true)
                .hint("It is uniform, gaussian or exponential."));
        }
    };
    if parameters == 1 {
        call.push(argument(4, "parameter")?);
    }
    m.at_most(4 + parameters, "too many arguments")?;
    Ok(CommandKind::Set { name: (*name).to_owned(), value: Expr { offset: m.start, kind: ExprKind::Call(f, call) } })
}

//! Meta-commands: what a line says that begins with a backslash.

use crate::ast::{Amount, Command, CommandKind, Expr, ExprKind};
use crate::error::{Fault, Span};
use crate::functions::Function;
use crate::parser::parse_expression;
use crate::program::Capture;

/// Words of a meta-command, its name included: pgbench's limit.
const MAX_WORDS: usize = 256;

const META_COMMANDS: &str = "\\set, \\setrandom (historic), \\sleep, \\shell, \\setshell, \\gset, \\aset, \\if, \\elif, \\else, \
                             \\endif, \\startpipeline, \\syncpipeline, \\endpipeline";

/// Behind the meta-command that begins at `start`: its newline, unless a backslash continues the line.
pub fn end_of_meta(text: &str, start: usize) -> usize {
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
pub fn meta(text: &str, start: usize, end: usize, commands: &mut Vec<Command>) -> Result<(), Fault> {
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
        "pick" => {
            let Some((_, sample)) = m.args.first() else {
                return Err(m.fault(end, "missing sample name of \\pick", true).classic("missing argument"));
            };
            m.at_most(2, "too many arguments")?;
            let prefix = m.args.get(1).map_or(String::new(), |(_, w)| (*w).to_owned());
            CommandKind::Pick { sample: (*sample).to_owned(), prefix }
        }
        "gset" | "aset" => return capture(&m, lower == "gset", commands),
        _ => return Err(invalid(&m)),
    };
    let shown = text[start..end].trim_end_matches(['\n', '\r']).to_owned();
    commands.push(Command { offset: start, text: shown.trim_end().to_owned(), shown, name: name.to_owned(), kind });
    Ok(())
}

fn invalid(m: &Meta<'_>) -> Fault {
    let hint = format!("There are: {META_COMMANDS}; in experiments also \\pick.");
    m.fault(m.start, format!("invalid command \\{}", m.name), true).classic("invalid command").hint(hint)
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

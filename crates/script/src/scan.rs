//! Cuts a script into commands: SQL statements end at a semicolon outside quotes, comments and parentheses;
//! meta-commands begin with a backslash and end with the line (a backslash before the newline continues it).

use crate::ast::{Command, CommandKind, Expr, ExprKind};
use crate::error::Fault;
use crate::functions::Function;
use crate::parser::parse_expression;

/// The commands of `text`, in order.
pub fn scan(text: &str) -> Result<Vec<Command>, Fault> {
    let bytes = text.as_bytes();
    let mut commands = Vec::new();
    let mut at = 0;
    loop {
        at = skip_blanks(text, at)?;
        if at >= bytes.len() {
            return Ok(commands);
        }
        if bytes[at] == b'\\' {
            let end = end_of_meta(text, at);
            commands.push(meta(text, at, end)?);
            at = end;
        } else {
            let (end, next) = end_of_sql(text, at)?;
            let sql = text[at..end].trim_end();
            if !sql.is_empty() {
                commands.push(Command { offset: at, text: sql.to_owned(), kind: CommandKind::Sql });
            }
            at = next;
        }
    }
}

/// Skips white space and comments before a command.
fn skip_blanks(text: &str, mut at: usize) -> Result<usize, Fault> {
    let bytes = text.as_bytes();
    while at < bytes.len() {
        if bytes[at].is_ascii_whitespace() {
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

/// The end of the statement that begins at `start`, without its semicolon, and where the next command may begin.
fn end_of_sql(text: &str, start: usize) -> Result<(usize, usize), Fault> {
    let bytes = text.as_bytes();
    let mut at = start;
    let mut parentheses = 0usize;
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
            b';' if parentheses == 0 => return Ok((at, at + 1)),
            // A meta-command may follow a statement that lacks its semicolon: it ends the statement, as in pgbench.
            b'\\' if text[..at].trim_end_matches([' ', '\t', '\r']).ends_with('\n') => return Ok((at, at)),
            b'\\' => {
                return Err(Fault::new(at, "unexpected backslash in an SQL statement")
                    .hint("Meta-commands begin a line; \\gset and the like are not supported by this version."));
            }
            _ => at += 1,
        }
    }
    Ok((at, at))
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
        let skipped = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_whitespace()).len();
        at += skipped;
        let rest = &text[at..end];
        if rest.is_empty() {
            break;
        }
        let len = rest.find(|c: char| c.is_ascii_whitespace()).unwrap_or(rest.len());
        // A backslash alone continues the line; as the first word it is a command without a name.
        if out.is_empty() || &rest[..len] != "\\" {
            out.push((at, &rest[..len]));
        }
        at += len;
    }
    out
}

fn valid_name(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b >= 0x80)
}

/// What later versions will do; named, so that the message can say so instead of "invalid command".
const PLANNED: [&str; 7] = ["setshell", "shell", "gset", "aset", "startpipeline", "syncpipeline", "endpipeline"];

fn meta(text: &str, start: usize, end: usize) -> Result<Command, Fault> {
    let words = words(text, start, end);
    let name = words[0].1[1..].to_ascii_lowercase();
    let args = &words[1..];
    let no_more = |n: usize| match args.get(n) {
        Some((at, word)) => Err(Fault::new(*at, format!("unexpected argument \"{word}\" of \\{name}"))),
        None => Ok(()),
    };
    // Everything from argument `n` to the end of the command, as an expression.
    let expression = |n: usize, what: &str| match args.get(n) {
        Some((at, _)) => parse_expression(&text[*at..end], *at),
        None => Err(Fault::new(end, format!("missing {what} of \\{name}"))),
    };
    let variable = || match args.first() {
        Some((_, word)) if valid_name(word) => Ok((*word).to_owned()),
        Some((at, word)) => Err(Fault::new(*at, format!("invalid variable name: \"{word}\""))
            .hint("A name has letters, digits and underscores and begins with no digit.")),
        None => Err(Fault::new(end, format!("missing variable name of \\{name}"))),
    };
    let kind = match name.as_str() {
        "set" => CommandKind::Set { name: variable()?, value: expression(1, "expression")? },
        "setrandom" => CommandKind::Set { name: variable()?, value: set_random(start, end, args)? },
        "sleep" => sleep(text, end, args, no_more)?,
        "if" => CommandKind::If(expression(0, "condition")?),
        "elif" => CommandKind::Elif(expression(0, "condition")?),
        "else" => no_more(0).map(|()| CommandKind::Else)?,
        "endif" => no_more(0).map(|()| CommandKind::Endif)?,
        planned if PLANNED.contains(&planned) => {
            return Err(Fault::new(start, format!("\\{planned} is not supported by this version of pgdyno"))
                .hint("Supported: \\set, \\setrandom, \\sleep, \\if, \\elif, \\else, \\endif."));
        }
        _ => {
            return Err(Fault::new(start, format!("invalid command \\{name}"))
                .hint("Supported: \\set, \\setrandom, \\sleep, \\if, \\elif, \\else, \\endif."));
        }
    };
    Ok(Command { offset: start, text: text[start..end].trim_end().to_owned(), kind })
}

fn sleep(
    text: &str,
    end: usize,
    args: &[(usize, &str)],
    no_more: impl Fn(usize) -> Result<(), Fault>,
) -> Result<CommandKind, Fault> {
    let Some((at, word)) = args.first() else {
        return Err(Fault::new(end, "missing argument of \\sleep"));
    };
    // The unit may be glued to the number: `\sleep 10ms`.
    let digits = if word.starts_with(':') {
        word.len()
    } else {
        word.find(|c: char| !c.is_ascii_digit() && c != '+' && c != '-').unwrap_or(word.len())
    };
    let (unit_at, unit) = match args.get(1) {
        Some((unit_at, unit)) if digits == word.len() => {
            no_more(2)?;
            (*unit_at, *unit)
        }
        _ => {
            no_more(1)?;
            (at + digits, &word[digits..])
        }
    };
    let factor = match unit.to_ascii_lowercase().as_str() {
        "us" => 1,
        "ms" => 1_000,
        "" | "s" => 1_000_000,
        _ => {
            return Err(Fault::new(unit_at, format!("unrecognized time unit \"{unit}\", must be us, ms or s")));
        }
    };
    Ok(CommandKind::Sleep { amount: parse_expression(&text[*at..at + digits], *at)?, factor })
}

/// `\setrandom name min max [uniform | gaussian p | exponential p]`, historic since PostgreSQL 9.6.
fn set_random(start: usize, end: usize, args: &[(usize, &str)]) -> Result<Expr, Fault> {
    let argument = |n: usize, what: &str| match args.get(n) {
        Some((at, word)) => parse_expression(word, *at),
        None => Err(Fault::new(end, format!("missing {what} of \\setrandom"))
            .hint("\\setrandom is historic; write: \\set name random(min, max)")),
    };
    let mut call = vec![argument(1, "minimum")?, argument(2, "maximum")?];
    let distribution = args.get(3).map_or("uniform".to_owned(), |(_, w)| w.to_ascii_lowercase());
    let (f, parameters) = match distribution.as_str() {
        "uniform" => (Function::Random, 0),
        "gaussian" => (Function::RandomGaussian, 1),
        "exponential" => (Function::RandomExponential, 1),
        other => {
            let at = args.get(3).map_or(end, |(at, _)| *at);
            return Err(Fault::new(at, format!("unknown distribution \"{other}\" of \\setrandom"))
                .hint("It is uniform, gaussian or exponential."));
        }
    };
    if parameters == 1 {
        call.push(argument(4, "parameter")?);
    }
    if let Some((at, word)) = args.get(4 + parameters) {
        return Err(Fault::new(*at, format!("unexpected argument \"{word}\" of \\setrandom")));
    }
    Ok(Expr { offset: start, kind: ExprKind::Call(f, call) })
}

//! The statements of transactions as texts: for people to read, for samples, and with their values in them.

use crate::exchange::{Exchange, Question};
use crate::options::Options;
use crate::random::Constants;
use crate::schema;
use crate::transactions::{Kind, Statement as Written, Terms};
use pgdyno_base::Prng;
use std::task::{Context, Waker};

/// A transaction for people to read: its statements, each under its name.
pub fn listing(kind: Kind, options: &Options) -> String {
    let all = kind.statements(options.as_function());
    let one = |(number, (name, _)): (usize, &Written)| {
        format!("-- name: {}: {name}\n{};\n", kind.name(), text_of(kind, number, 0, options))
    };
    all.iter().enumerate().map(one).collect()
}

/// A transaction with inputs drawn from `seed`, as if the server had answered: of each statement its number, its text and
/// its text with values. What depends on rows has plausible values, which need not be those of any row.
pub fn sample(kind: Kind, options: &Options, seed: u64) -> Vec<(usize, String, String)> {
    let constants = Constants::of_seed(options.data_seed);
    let terms = Terms { warehouses: u64::from(options.warehouses), constants, warehouse: None, district: None };
    let (exchange, mut found) = (Exchange::default(), Vec::new());
    let input = kind.draw(&mut Prng::from_seed(seed), &terms);
    let mut running = input.run(exchange.clone(), options.as_function(), !options.isolation.is_empty());
    // Of the widest row that is read.
    const COLUMNS: usize = 16;
    while running.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending() {
        let mut reads = Vec::new();
        let some = exchange.take(usize::MAX, |q| {
            let text = text_of(kind, q.statement, 0, options);
            let mut whole = Vec::new();
            Pieces::of(&text).substitute(q, &mut whole);
            if is_read(&text) {
                reads.push(if text.contains("select d_next_o_id") { "3001" } else { "1" });
            }
            found.push((q.statement, text, String::from_utf8_lossy(&whole).into_owned()));
        });
        if !some {
            break;
        }
        for value in reads {
            exchange.row([Some(value.as_bytes()); COLUMNS].into_iter());
            exchange.end_of_rows();
        }
        exchange.all_answered();
    }
    found
}

/// The lines of the statements in that listing, from 1.
pub(crate) fn lines_of(kind: Kind, options: &Options) -> Vec<usize> {
    let mut line = 1;
    let mut next = |number| {
        let here = line + 1;
        line += 1 + text_of(kind, number, 0, options).lines().count();
        here
    };
    (0..kind.statements(options.as_function()).len()).map(&mut next).collect()
}

/// A statement's text for a set.
pub(crate) fn text_of(kind: Kind, number: usize, set: u32, options: &Options) -> String {
    let (_, text) = kind.statements(options.as_function())[number];
    if text == "begin" && !options.isolation.is_empty() {
        return format!("begin isolation level {}", options.isolation);
    }
    schema::with_names(text, set, options.sets)
}

pub(crate) fn is_read(sql: &str) -> bool {
    sql.starts_with("select")
}

/// A statement's text between its parameters.
pub(crate) struct Pieces {
    /// Texts, each with the number (from 0) of the parameter that follows it.
    before: Vec<(String, usize)>,
    rest: String,
}

impl Pieces {
    pub fn of(text: &str) -> Pieces {
        let (mut before, mut rest) = (Vec::new(), text);
        while let Some((piece, behind)) = rest.split_once('$') {
            let digits = behind.bytes().take_while(u8::is_ascii_digit).count();
            // Our statements have no other `$`.
            let number: usize = behind[..digits].parse().unwrap_or(1);
            before.push((piece.to_owned(), number.saturating_sub(1)));
            rest = &behind[digits..];
        }
        Pieces { before, rest: rest.to_owned() }
    }

    /// Returns the number of parameters.
    pub fn parameters(&self) -> usize {
        self.before.iter().map(|(_, n)| n + 1).max().unwrap_or(0)
    }

    /// Writes the statement with all its values in it: for the simple protocol.
    pub fn substitute(&self, q: Question<'_>, out: &mut Vec<u8>) {
        for (piece, n) in &self.before {
            out.extend_from_slice(piece.as_bytes());
            out.push(b'\'');
            let value = q.parameter(*n);
            if value.contains(&b'\'') {
                value.iter().for_each(|byte| out.extend((0..=usize::from(*byte == b'\'')).map(|_| byte)));
            } else {
                out.extend_from_slice(value);
            }
            out.push(b'\'');
        }
        out.extend_from_slice(self.rest.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::RoundTrips;
    use crate::transactions::KINDS;

    #[test]
    fn samples_are_whole_transactions() {
        for (kind, round_trips) in
            KINDS.iter().flat_map(|k| [(*k, RoundTrips::Statements), (*k, RoundTrips::Functions)])
        {
            for seed in 0..50 {
                let o = Options { round_trips, ..Options::of_tests() };
                let all = sample(kind, &o, seed);
                let texts: Vec<&str> = all.iter().map(|(_, _, whole)| whole.as_str()).collect();
                if round_trips == RoundTrips::Statements {
                    assert_eq!((texts[0], texts[texts.len() - 1]), ("begin", "commit"), "{kind:?} {texts:?}");
                }
                let named =
                    |t: &str| t.split('{').skip(1).all(|rest| !rest.starts_with(|c: char| c.is_ascii_lowercase()));
                assert!(texts.iter().all(|t| !t.contains('$') && named(t)), "{texts:?}");
            }
        }
    }
}

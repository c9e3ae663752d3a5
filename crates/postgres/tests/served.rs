//! The server's side of the protocol, against the client's.

use pgdyno_postgres::conn::ChannelBinding;
use pgdyno_postgres::served::{Run, Served, Work};
use pgdyno_postgres::{
    Attempt, CommandTag, Config, Conversation, Effect, Endpoint, Event, Given, QueryMode, Sending, SslMode, Statement,
    TransactionStatus,
};
use pgdyno_protocol::Conversation as _;
use std::sync::Arc;

const LABEL: u8 = 7;

fn config() -> Arc<Config> {
    Arc::new(Config {
        user: "me".into(),
        database: "db".into(),
        password: None,
        parameters: Vec::new(),
        ssl_mode: SslMode::Disable,
        channel_binding: ChannelBinding::Disable,
        endpoint: Endpoint::Unix("/nowhere".into()),
        read_write: false,
        tells_kinds: true,
        tls: None,
    })
}

/// A client and a server whose bytes go from one to the other.
struct Pair {
    client: Conversation<u8>,
    server: Served,
    sent: Vec<u8>,
}

impl Pair {
    fn begun() -> Pair {
        let mut sent = Vec::new();
        let client = Conversation::start(config(), Attempt::Clear, &mut sent).unwrap();
        let mut pair = Pair { client, server: Served::new(), sent };
        assert_eq!(pair.asked(), Some(Work::Begin));
        pair.server.began("18.1", 4711);
        let events = pair.heard();
        assert!(matches!(events[..], [Event::Began(_)]), "{events:?}");
        pair
    }

    /// Returns the work that the client has asked for since.
    fn asked(&mut self) -> Option<Work> {
        // Byte by byte: no message depends on how it arrives.
        for byte in std::mem::take(&mut self.sent) {
            self.server.feed(&[byte]);
        }
        self.client.mark_sent();
        self.server.work().unwrap()
    }

    /// Returns the events of the answers since.
    fn heard(&mut self) -> Vec<Event<u8>> {
        let (bytes, mut plain, mut reply) = (self.server.take(), Vec::new(), Vec::new());
        let mut input = self.client.open(&bytes, &mut plain, &mut reply).unwrap();
        let mut events = Vec::new();
        while let Some(event) = self.client.next(&mut input, &mut reply).unwrap() {
            events.push(event);
        }
        events
    }

    fn ask(&mut self, text: &str, mode: QueryMode, values: &[(Given, &str)], in_pipeline: bool) {
        let statement = Statement {
            command: 0,
            slot: 0,
            name: "s0",
            text,
            parameters: values.len(),
            effect: Effect::of(text),
            reads: true,
            names: true,
        };
        let sending = Sending { mode, prepare: true, in_pipeline, part: LABEL, result: LABEL, end: LABEL };
        let whole = |o: &mut Vec<u8>| o.extend_from_slice(text.as_bytes());
        self.client.statement(&statement, &sending, &mut self.sent, whole, |n, o| {
            o.extend_from_slice(values[n].1.as_bytes());
            values[n].0
        });
    }

    fn answer(&mut self, rows: &[&[Option<&str>]], tag: &str) {
        let columns = ["x".to_owned()];
        self.server
            .result(Some(&columns), tag, true, |out| {
                rows.iter().try_for_each(|row| {
                    out.row::<()>(row.len(), |n, o| {
                        o.extend_from_slice(row[n].unwrap_or_default().as_bytes());
                        Ok(row[n].is_some())
                    })
                })
            })
            .unwrap();
    }
}

fn results(events: &[Event<u8>]) -> Vec<CommandTag> {
    events.iter().filter_map(|e| if let Event::Result(_, tag) = e { Some(*tag) } else { None }).collect()
}

#[test]
fn values_arrive_with_their_kinds_and_rows_come_back() {
    let mut pair = Pair::begun();
    let values = [(Given::Integer, "-5"), (Given::Double, "2.5"), (Given::Text, "it's"), (Given::Null, "")];
    for mode in [QueryMode::Extended, QueryMode::Prepared] {
        pair.ask("SELECT $1, $2, $3, $4", mode, &values, false);
        let Some(Work::Group(runs)) = pair.asked() else { panic!("no group") };
        let kept = values.map(|(kind, text)| (kind, text.as_bytes().to_vec())).to_vec();
        assert_eq!(runs, [Run { statement: 0, mode, values: kept, reads: true }]);
        assert_eq!(pair.server.text(0), Some("SELECT $1, $2, $3, $4"));
        pair.answer(&[&[Some("1")], &[None]], "SELECT 2");
        pair.server.end_group(None);
        let events = pair.heard();
        assert!(events.iter().any(|e| matches!(e, Event::Columns(_, names) if names == &["x"])), "{events:?}");
        assert_eq!(events.iter().filter(|e| matches!(e, Event::Row(_))).count(), 2);
        assert_eq!(results(&events), [CommandTag::Other]);
        assert!(pair.client.is_idle());
    }
}

#[test]
fn blocks_are_followed_and_commits_are_told() {
    let mut pair = Pair::begun();
    for (text, status) in [
        ("BEGIN", TransactionStatus::InBlock),
        ("UPDATE t SET a = 1", TransactionStatus::InBlock),
        ("COMMIT", TransactionStatus::Idle),
    ] {
        pair.ask(text, QueryMode::Simple, &[], false);
        assert!(matches!(pair.asked(), Some(Work::Group(runs)) if runs.len() == 1));
        pair.server.result::<()>(None, text, true, |_| Ok(())).unwrap();
        pair.server.end_group(None);
        pair.heard();
        assert_eq!(pair.client.status(), status, "{text}");
    }
    assert_eq!(pair.client.fate(), pgdyno_postgres::Fate::Committed);
}

#[test]
fn what_follows_an_error_is_not_answered() {
    let mut pair = Pair::begun();
    for text in ["SELECT 1", "SELECT 2", "SELECT 3"] {
        pair.ask(text, QueryMode::Extended, &[], true);
    }
    pair.client.sync(LABEL, &mut pair.sent);
    let Some(Work::Group(runs)) = pair.asked() else { panic!("no group") };
    assert_eq!(runs.len(), 3);
    pair.answer(&[&[Some("1")]], "SELECT 1");
    pair.server.failed("40001", "try again", false);
    pair.server.end_group(None);
    let events = pair.heard();
    assert_eq!(results(&events).len(), 1);
    let refused = events.iter().find_map(|e| if let Event::Refused(r) = e { Some(r) } else { None }).unwrap();
    assert_eq!(refused.error.message, "try again");
    assert!(pair.client.is_idle() && pair.client.status() == TransactionStatus::Idle);
}

#[test]
fn an_error_within_a_block_leaves_it_aborted_until_it_is_rolled_back() {
    let mut pair = Pair::begun();
    pair.ask("BEGIN", QueryMode::Simple, &[], false);
    pair.asked();
    pair.server.result::<()>(None, "BEGIN", true, |_| Ok(())).unwrap();
    pair.server.end_group(None);
    pair.heard();
    pair.ask("SELECT 1/0", QueryMode::Extended, &[], false);
    pair.asked();
    pair.server.failed("22012", "division by zero", false);
    pair.server.end_group(None);
    pair.heard();
    assert_eq!(pair.client.status(), TransactionStatus::Failed);
    pair.ask("ROLLBACK", QueryMode::Simple, &[], false);
    pair.asked();
    pair.server.result::<()>(None, "ROLLBACK", true, |_| Ok(())).unwrap();
    pair.server.end_group(None);
    pair.heard();
    assert_eq!(pair.client.status(), TransactionStatus::Idle);
}

#[test]
fn noise_is_refused() {
    for noise in [&b"\0\0\0\x03"[..], b"\xff\xff\xff\xff", b"GET / HTTP/1.1\r\n\r\n"] {
        let mut server = Served::new();
        server.feed(noise);
        assert!(matches!(server.work(), Err(_) | Ok(None)));
    }
    let mut pair = Pair::begun();
    pair.server.feed(b"B\0\0\0\x08\0x\0\0");
    assert!(pair.server.work().is_err());
}

#[test]
fn no_bytes_make_it_panic() {
    let mut pair = Pair::begun();
    let values = [(Given::Integer, "-5"), (Given::Text, "x"), (Given::Null, "")];
    for (mode, in_pipeline) in [(QueryMode::Simple, false), (QueryMode::Extended, true), (QueryMode::Prepared, false)] {
        pair.ask("SELECT $1, $2, $3", mode, &values, in_pipeline);
    }
    let good = std::mem::take(&mut pair.sent);
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below as u64) as usize
    };
    for _ in 0..20_000 {
        let mut bytes = good.clone();
        for _ in 0..=random(4) {
            let at = random(bytes.len());
            match random(3) {
                0 => bytes[at] = random(256) as u8,
                1 => bytes.truncate(at.max(1)),
                _ => bytes.insert(at, random(256) as u8),
            }
        }
        let mut server = Pair::begun().server;
        server.feed(&bytes);
        while let Ok(Some(work)) = server.work() {
            if let Work::Group(runs) = work {
                for run in &runs {
                    assert!(server.text(run.statement).is_some());
                    let _ = server.result::<()>(None, "SELECT 0", true, |_| Ok(()));
                }
                server.end_group(None);
            }
        }
    }
}

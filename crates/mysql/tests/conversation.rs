//! What a server may say, and what it may not.

use pgdyno_mysql::packet::{length_encoded, packet, string};
use pgdyno_mysql::{Config, Conversation};
use pgdyno_protocol::{
    Attempt, Conversation as _, Effect, Endpoint, Event, Fate, Given, Lexicon, ProtocolError, QueryMode, Sending,
    SslMode, Statement, TransactionStatus,
};
use proptest::prelude::*;
use std::sync::Arc;

/// All that pgdyno asks for, and TLS.
const ALL: u32 = 0x1bf_ffff | 0x800;
const NO_TLS: u32 = ALL & !0x800;
const IN_TRANSACTION: u16 = 1;
const AUTOCOMMIT: u16 = 2;
const MORE: u16 = 8;

type Talk = Conversation<u32>;

fn config() -> Config {
    let address = "127.0.0.1:3306".parse().unwrap();
    let endpoint = Endpoint::Tcp { host: "localhost".into(), addresses: vec![address] };
    Config { password: Some("pw".into()), ..Config::plain(endpoint, "u", "d") }
}

fn greeting(plugin: &str, capabilities: u32) -> Vec<u8> {
    let mut out = Vec::new();
    packet(&mut out, 0, |o| {
        o.push(10);
        o.extend_from_slice(b"10.11.19-MariaDB\0");
        o.extend_from_slice(&77u32.to_le_bytes());
        o.extend_from_slice(b"12345678\0");
        o.extend_from_slice(&(capabilities as u16).to_le_bytes());
        o.push(45);
        o.extend_from_slice(&AUTOCOMMIT.to_le_bytes());
        o.extend_from_slice(&((capabilities >> 16) as u16).to_le_bytes());
        o.push(21);
        o.extend_from_slice(&[0; 10]);
        o.extend_from_slice(b"901234567890\0");
        o.extend_from_slice(plugin.as_bytes());
        o.push(0);
    });
    out
}

fn ok(sequence: u8, affected: u64, status: u16) -> Vec<u8> {
    ended(sequence, 0, affected, status)
}

fn ended(sequence: u8, first: u8, affected: u64, status: u16) -> Vec<u8> {
    let mut out = Vec::new();
    packet(&mut out, sequence, |o| {
        o.push(first);
        length_encoded(o, affected);
        o.push(0);
        o.extend_from_slice(&status.to_le_bytes());
        o.extend_from_slice(&[0; 2]);
    });
    out
}

fn err(sequence: u8, number: u16, state: &str, text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    packet(&mut out, sequence, |o| {
        o.push(0xff);
        o.extend_from_slice(&number.to_le_bytes());
        o.extend_from_slice(format!("#{state}{text}").as_bytes());
    });
    out
}

fn column(out: &mut Vec<u8>, sequence: u8, name: &str, kind: u8) -> u8 {
    packet(out, sequence, |o| {
        for text in ["def", "d", "t", "t", name, name] {
            string(o, text.as_bytes());
        }
        o.push(12);
        o.extend_from_slice(&[45, 0, 20, 0, 0, 0, kind, 0, 0, 0, 0, 0]);
    })
}

/// A result of the text protocol: a column "a", one row a value.
fn rows(values: &[Option<&str>], status: u16) -> Vec<u8> {
    let mut out = Vec::new();
    let mut n = packet(&mut out, 1, |o| o.push(1));
    n = column(&mut out, n, "a", 0xfd);
    for value in values {
        n = packet(&mut out, n, |o| match value {
            Some(text) => string(o, text.as_bytes()),
            None => o.push(0xfb),
        });
    }
    out.extend(ended(n, 0xfe, 0, status));
    out
}

fn fed(talk: &mut Talk, bytes: &[u8]) -> Result<(Vec<String>, Vec<u8>), ProtocolError> {
    let (mut plain, mut reply, mut told) = (Vec::new(), Vec::new(), Vec::new());
    let mut input = talk.open(bytes, &mut plain, &mut reply)?;
    while let Some(event) = talk.next(&mut input, &mut reply)? {
        told.push(match event {
            Event::Row(label) => {
                let values: Vec<_> = talk.row()?.map(|v| v.map(|v| String::from_utf8_lossy(v).into_owned())).collect();
                format!("row {label} {values:?}")
            }
            Event::Began(info) => format!("began {}", info.process),
            Event::Prepared(label) => format!("prepared {label}"),
            Event::Columns(label, names) => format!("columns {label} {names:?}"),
            Event::Result(label, tag) => format!("result {label} {tag:?}"),
            Event::Synchronised(label) => format!("end {label}"),
            Event::Refused(r) => {
                format!("refused {:?} {} {}{}", r.label, r.error.state(), r.query, if r.fatal { " fatal" } else { "" })
            }
            other => format!("{other:?}"),
        });
    }
    Ok((told, reply))
}

fn begun() -> Talk {
    let mut talk = Talk::start(Arc::new(config()), Attempt::Clear, &mut Vec::new()).unwrap();
    let (told, login) = fed(&mut talk, &greeting("mysql_native_password", NO_TLS)).unwrap();
    assert!(told.is_empty() && login[3] == 1 && login.windows(3).any(|w| w == b"u\0\x14"), "{login:?}");
    let (told, reply) = fed(&mut talk, &ok(2, 0, AUTOCOMMIT)).unwrap();
    assert_eq!((told.as_slice(), reply.len()), (["began 77".to_owned()].as_slice(), 0));
    assert!(talk.is_open() && talk.is_idle());
    talk
}

fn asked(talk: &mut Talk, sql: &str, mode: QueryMode, prepare: bool, reads: bool) -> Vec<u8> {
    let mut out = Vec::new();
    let statement = Statement {
        command: 0,
        slot: 0,
        name: "s",
        text: sql,
        parameters: sql.matches('?').count(),
        effect: Effect::read(sql, &Lexicon::MYSQL),
        reads,
        names: reads,
    };
    let sending = Sending { mode, prepare, in_pipeline: false, part: 1, result: 2, end: 3 };
    let values = |n: usize, o: &mut Vec<u8>| match n {
        0 => {
            o.extend_from_slice(b"-5");
            Given::Integer
        }
        1 => {
            o.extend_from_slice(b"it's");
            Given::Text
        }
        2 => Given::Null,
        _ => {
            o.extend_from_slice(b"1.5");
            Given::Double
        }
    };
    talk.statement(&statement, &sending, &mut out, |o| o.extend_from_slice(sql.as_bytes()), values);
    talk.mark_sent();
    out
}

fn told(talk: &mut Talk, bytes: &[u8]) -> Vec<String> {
    fed(talk, bytes).unwrap().0
}

#[test]
fn text_is_answered_by_rows() {
    let mut talk = begun();
    let sent = asked(&mut talk, "select a from t", QueryMode::Simple, false, true);
    assert_eq!(&sent[..5], [16, 0, 0, 0, 3]);
    assert_eq!(
        told(&mut talk, &rows(&[Some("x"), None], AUTOCOMMIT)),
        ["columns 2 [\"a\"]", "row 2 [Some(\"x\")]", "row 2 [None]", "result 2 Other", "end 3"]
    );
    asked(&mut talk, "select a from t", QueryMode::Simple, false, false);
    assert_eq!(told(&mut talk, &rows(&[], AUTOCOMMIT)), ["result 2 Nothing", "end 3"]);
    // Several statements in a text.
    asked(&mut talk, "select 1; update t set a = 1", QueryMode::Simple, false, false);
    let both = [rows(&[Some("1")], AUTOCOMMIT | MORE), ok(5, 1, AUTOCOMMIT)].concat();
    assert_eq!(told(&mut talk, &both), ["result 2 Other", "result 2 Other", "end 3"]);
    assert!(talk.is_idle());
}

#[test]
fn a_statement_is_prepared_once() {
    let mut talk = begun();
    let sql = "select ?, ?, ?, ?";
    let sent = asked(&mut talk, sql, QueryMode::Prepared, true, true);
    assert_eq!(sent[4], 0x16);
    assert_eq!(talk.fate(), Fate::Nothing, "nothing is carried out before it is prepared");
    let mut prepared = Vec::new();
    let mut n = packet(&mut prepared, 1, |o| o.extend_from_slice(&[0, 9, 0, 0, 0, 1, 0, 4, 0, 0, 0, 0]));
    for name in ["?", "?", "?", "?", "a"] {
        n = column(&mut prepared, n, name, 8);
    }
    let (events, execution) = fed(&mut talk, &prepared).unwrap();
    assert_eq!(events, ["prepared 1"]);
    let values = [&(-5i64).to_le_bytes()[..], b"\x04it's", &1.5f64.to_le_bytes()[..]].concat();
    let body = [&[0x17, 9, 0, 0, 0, 0, 1, 0, 0, 0, 0b100, 1, 8, 0, 0xfd, 0, 6, 0, 5, 0][..], &values].concat();
    assert_eq!(&execution[4..], body);
    let mut answer = Vec::new();
    n = packet(&mut answer, 1, |o| o.push(1));
    n = column(&mut answer, n, "a", 8);
    n = packet(&mut answer, n, |o| o.extend_from_slice(&[0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]));
    answer.extend(ended(n, 0xfe, 0, AUTOCOMMIT));
    let events = ["columns 1 [\"a\"]", "row 1 [Some(\"-1\")]", "result 1 Other", "end 3"];
    assert_eq!(told(&mut talk, &answer), events);
    assert_eq!(asked(&mut talk, sql, QueryMode::Prepared, false, true)[4..], body);
}

#[test]
fn what_a_lost_connection_leaves_open() {
    let mut talk = begun();
    let ask = |talk: &mut Talk, sql: &str| drop(asked(talk, sql, QueryMode::Prepared, true, false));
    ask(&mut talk, "begin");
    assert_eq!(talk.fate(), Fate::Nothing);
    told(&mut talk, &ok(1, 0, AUTOCOMMIT | IN_TRANSACTION));
    assert_eq!(talk.status(), TransactionStatus::InBlock);
    ask(&mut talk, "create table t (a int)");
    assert_eq!(talk.fate(), Fate::Unknown, "DDL commits what is open");
    told(&mut talk, &err(1, 1050, "42S01", "exists"));
    assert_eq!(talk.status(), TransactionStatus::Idle, "also where it fails");
    assert_eq!(talk.fate(), Fate::Committed);
    talk.forget_commits();
    ask(&mut talk, "begin");
    told(&mut talk, &ok(1, 0, AUTOCOMMIT | IN_TRANSACTION));
    ask(&mut talk, "commit");
    assert_eq!(talk.fate(), Fate::Unknown);
    assert_eq!(told(&mut talk, &ok(1, 0, AUTOCOMMIT)), ["result 2 Commit", "end 3"]);
    assert_eq!((talk.fate(), talk.status()), (Fate::Committed, TransactionStatus::Idle));
    talk.forget_commits();
    assert_eq!(talk.fate(), Fate::Nothing);
    // A session that is killed within a COMMIT does not tell what became of it.
    ask(&mut talk, "commit");
    assert_eq!(told(&mut talk, &err(1, 1927, "70100", "killed")), ["refused Some(2) 70100 0 fatal"]);
    assert_eq!(talk.fate(), Fate::Unknown);
}

#[test]
fn errors_have_their_codes() {
    for (number, state, code) in [(1213, "40001", "40001"), (1205, "HY000", "M1205"), (1064, "42000", "42000")] {
        let mut talk = begun();
        asked(&mut talk, "update t set a = 1", QueryMode::Simple, false, false);
        assert_eq!(
            told(&mut talk, &err(1, number, state, "no")),
            [format!("refused Some(2) {code} 0"), "end 3".into()]
        );
        assert!(talk.is_idle());
    }
    // A session that is ended: whatever was asked before, and whatever number the packet has.
    for number in [0, 5] {
        let mut talk = begun();
        asked(&mut talk, "select a from t", QueryMode::Simple, false, false);
        told(&mut talk, &rows(&[Some("x")], AUTOCOMMIT));
        assert_eq!(told(&mut talk, &err(number, 4031, "HY000", "idle")), ["refused None M4031 0 fatal"]);
        asked(&mut talk, "update t set a = 1", QueryMode::Simple, false, false);
        assert_eq!(told(&mut talk, &err(number, 1053, "08S01", "down")), ["refused Some(2) 08S01 0 fatal"]);
    }
}

#[test]
fn only_what_counts_rows_finds_none() {
    for (sql, tag) in [("update t set a = 1", "Nothing"), ("set @a = 1", "Other"), ("begin", "Other")] {
        let mut talk = begun();
        asked(&mut talk, sql, QueryMode::Simple, false, false);
        assert_eq!(told(&mut talk, &ok(1, 0, AUTOCOMMIT)), [format!("result 2 {tag}"), "end 3".into()], "{sql}");
    }
    // What MySQL does not prepare goes as text.
    let mut talk = begun();
    assert_eq!(asked(&mut talk, "savepoint s", QueryMode::Prepared, true, false)[4], 3);
}

#[test]
fn statements_of_a_text_commit_by_themselves() {
    let mut talk = begun();
    asked(&mut talk, "update t set a = 1; update t set a = 2", QueryMode::Simple, false, false);
    told(&mut talk, &ok(1, 1, AUTOCOMMIT | MORE));
    told(&mut talk, &err(2, 1213, "40001", "deadlock"));
    assert_eq!(talk.fate(), Fate::Committed);
    let mut talk = begun();
    asked(&mut talk, "begin", QueryMode::Simple, false, false);
    told(&mut talk, &ok(1, 0, AUTOCOMMIT | IN_TRANSACTION));
    asked(&mut talk, "commit and chain", QueryMode::Simple, false, false);
    told(&mut talk, &ok(1, 0, AUTOCOMMIT | IN_TRANSACTION));
    assert_eq!((talk.fate(), talk.status()), (Fate::Committed, TransactionStatus::InBlock));
}

#[test]
fn what_no_server_says() {
    let mut infile = Vec::new();
    packet(&mut infile, 1, |o| o.extend_from_slice(b"\xfb/etc/passwd"));
    let mut many = Vec::new();
    packet(&mut many, 1, |o| length_encoded(o, 1 << 40));
    for (answer, word) in [
        (infile, "file of this machine"),
        (ok(2, 0, 0), "number 2 where 1"),
        (many, "unknown form"),
        (vec![0, 0, 0, 1], "empty"),
        ([ok(1, 0, 0), ok(2, 0, 0)].concat(), "number 2 where 0"),
    ] {
        let mut talk = begun();
        asked(&mut talk, "select 1", QueryMode::Simple, false, false);
        let result = fed(&mut talk, &answer);
        assert!(matches!(&result, Err(ProtocolError::Protocol(m)) if m.contains(word)), "{word}: {result:?}");
    }
    let mut talk = begun();
    assert!(fed(&mut talk, &ok(0, 0, 0)).is_err(), "an answer without a question");
    let mut talk = begun();
    asked(&mut talk, "select ?", QueryMode::Prepared, true, false);
    let mut other = Vec::new();
    packet(&mut other, 1, |o| o.extend_from_slice(&[0, 9, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0]));
    let mut n = 2;
    for _ in 0..2 {
        n = column(&mut other, n, "?", 8);
    }
    assert_eq!(told(&mut talk, &other), ["refused Some(1) 42000 0", "end 3"]);
    assert!(talk.is_idle());
}

#[test]
fn how_a_session_begins() {
    let start = |attempt, change: fn(&mut Config)| {
        let mut config = config();
        change(&mut config);
        Talk::start(Arc::new(config), attempt, &mut Vec::new()).unwrap()
    };
    // TLS is asked for and not there.
    let mut talk = start(Attempt::Encrypted, |c| c.ssl_mode = SslMode::Require);
    let refused = fed(&mut talk, &greeting("mysql_native_password", NO_TLS));
    assert!(matches!(refused, Err(ProtocolError::Tls(_))), "{refused:?}");
    let mut talk = start(Attempt::Encrypted, |c| c.ssl_mode = SslMode::Prefer);
    assert!(fed(&mut talk, &greeting("mysql_native_password", NO_TLS)).is_ok());
    // The account has another plugin.
    let switch = |name: &str, data: &[u8]| {
        let mut out = Vec::new();
        packet(&mut out, 2, |o| {
            o.push(0xfe);
            o.extend_from_slice(name.as_bytes());
            o.push(0);
            o.extend_from_slice(data);
        });
        out
    };
    for (name, word) in [("dialog", "dialog"), ("mysql_clear_password", "in the clear")] {
        let mut talk = start(Attempt::Clear, |_| {});
        fed(&mut talk, &greeting("mysql_native_password", NO_TLS)).unwrap();
        assert!(fed(&mut talk, &switch(name, b"")).unwrap_err().to_string().contains(word), "{name}");
    }
    let mut talk = start(Attempt::Clear, |_| {});
    fed(&mut talk, &greeting("mysql_native_password", NO_TLS)).unwrap();
    let (_, proof) = fed(&mut talk, &switch("client_ed25519", &[7; 32])).unwrap();
    assert_eq!((proof.len(), proof[3]), (4 + 64, 3));
    // caching_sha2_password: a hash in the server's cache is enough; else TLS, or the server's key where that is allowed.
    let more = |n: u8, byte: u8| {
        let mut out = Vec::new();
        packet(&mut out, n, |o| o.extend_from_slice(&[1, byte]));
        out
    };
    let mut talk = start(Attempt::Clear, |_| {});
    fed(&mut talk, &greeting("caching_sha2_password", NO_TLS)).unwrap();
    assert_eq!(told(&mut talk, &[more(2, 3), ok(3, 0, 2)].concat()), ["began 77"]);
    let mut talk = start(Attempt::Clear, |_| {});
    fed(&mut talk, &greeting("caching_sha2_password", NO_TLS)).unwrap();
    assert!(fed(&mut talk, &more(2, 4)).unwrap_err().to_string().contains("get-server-public-key"));
    let mut talk = start(Attempt::Clear, |c| c.ask_public_key = true);
    fed(&mut talk, &greeting("caching_sha2_password", NO_TLS)).unwrap();
    assert_eq!(fed(&mut talk, &more(2, 4)).unwrap().1, [1, 0, 0, 3, 2]);
    // Variables of the session follow the login.
    let mut talk = start(Attempt::Clear, |c| c.settings = vec![("autocommit".into(), "1".into())]);
    fed(&mut talk, &greeting("mysql_native_password", NO_TLS)).unwrap();
    let (events, set) = fed(&mut talk, &ok(2, 0, 2)).unwrap();
    assert!(events.is_empty() && set.ends_with(b"SET SESSION autocommit = 1"));
    assert_eq!(told(&mut talk, &ok(1, 0, 2)), ["began 77"]);
    let mut talk = start(Attempt::Clear, |_| {});
    let refused = fed(&mut talk, &err(0, 1040, "08004", "Too many connections"));
    assert!(matches!(refused, Err(ProtocolError::Server(e)) if e.state().as_str() == "08004"));
}

proptest! {
    /// Cuts of the network change nothing.
    #[test]
    fn cuts_do_not_matter(cuts in prop::collection::vec(1usize..40, 0..60), reads: bool) {
        let answer = [
            rows(&[Some("one"), None, Some(&"long ".repeat(9))], AUTOCOMMIT | MORE),
            err(7, 1213, "40001", "deadlock"),
        ]
        .concat();
        let mut whole = begun();
        asked(&mut whole, "select 1; select 2", QueryMode::Simple, false, reads);
        let expected = told(&mut whole, &answer);
        let mut talk = begun();
        asked(&mut talk, "select 1; select 2", QueryMode::Simple, false, reads);
        let (mut rest, mut found) = (answer.as_slice(), Vec::new());
        for cut in cuts.into_iter().chain([usize::MAX]) {
            let (now, later) = rest.split_at(cut.min(rest.len()));
            found.extend(told(&mut talk, now));
            rest = later;
        }
        prop_assert_eq!(found, expected);
    }

    /// Noise of a server is an error or events, never a panic.
    #[test]
    fn nothing_breaks_it(noise in prop::collection::vec(any::<u8>(), 0..200), greet: bool, mode in 0u8..3) {
        let mut talk = if greet {
            Talk::start(Arc::new(config()), Attempt::Clear, &mut Vec::new()).unwrap()
        } else {
            let mut talk = begun();
            let mode = [QueryMode::Simple, QueryMode::Extended, QueryMode::Prepared][mode as usize];
            asked(&mut talk, "select ?", mode, true, true);
            talk
        };
        let _ = fed(&mut talk, &noise);
        // Well framed noise gets further.
        let mut framed = Vec::new();
        packet(&mut framed, u8::from(!greet), |o| o.extend_from_slice(&noise));
        let _ = fed(&mut talk, &framed);
    }
}

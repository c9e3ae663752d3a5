//! What a server may say and what that means; what it may not say, and that it is not believed.

mod common;

use common::{begin, begun, config, feed, feed_and_reply, greeting, message};
use pgdyno_postgres::{Attempt, Cancel, Conversation, Effect, Fate, ProtocolError, SslMode};
use proptest::prelude::*;

const ERROR: &[u8] = b"SERROR\0VERROR\0C40001\0Mno\0\0";
const FATAL: &[u8] = b"SFATAL\0VFATAL\0C57P01\0Mshut down\0\0";

/// A message: its tag and body.
type Part<'a> = (u8, &'a [u8]);

fn join(parts: &[Part<'_>]) -> Vec<u8> {
    parts.iter().flat_map(|(tag, body)| message(*tag, body)).collect()
}

/// A statement by itself in the prepared protocol.
fn statement(c: &mut Conversation<u32>, label: u32, effect: Effect, reads: bool) {
    let mut out = Vec::new();
    let mut ask = c.ask(label, &mut out);
    ask.bind("P0", 0, |_, _| false);
    ask.execute(effect, reads);
    ask.sync();
    c.mark_sent();
}

fn query(c: &mut Conversation<u32>, label: u32, sql: &str) {
    c.ask(label, &mut Vec::new()).query(sql);
    c.mark_sent();
}

fn violated(c: &mut Conversation<u32>, bytes: &[u8]) -> String {
    match feed(c, bytes) {
        Err(ProtocolError::Protocol(why)) => why,
        other => panic!("believed: {other:?}"),
    }
}

#[test]
fn a_statement_is_answered() {
    let mut c = begun();
    statement(&mut c, 3, Effect::STATEMENT, false);
    let answer = join(&[(b'2', b""), (b'D', b"\0\x01\0\0\0\x011"), (b'C', b"SELECT 1\0"), (b'Z', b"I")]);
    assert_eq!(feed(&mut c, &answer).unwrap(), ["result 3 Other", "synchronised 3"]);
    assert!(c.is_idle());
}

#[test]
fn rows_are_read_where_that_is_wanted() {
    let mut c = begun();
    let mut out = Vec::new();
    let mut ask = c.ask(1, &mut out);
    ask.parse("", "select 1 as a");
    ask.bind("", 0, |_, _| false);
    ask.describe();
    ask.execute(Effect::STATEMENT, true);
    ask.sync();
    let column = b"\0\x01a\0\0\0\0\0\0\0\0\0\0\x17\0\x04\xff\xff\xff\xff\0\0";
    let answer = join(&[
        (b'1', b""),
        (b'2', b""),
        (b'T', column),
        (b'D', b"\0\x02\0\0\0\x02ab\xff\xff\xff\xff"),
        (b'C', b"SELECT 1\0"),
        (b'Z', b"T"),
    ]);
    let events = feed(&mut c, &answer).unwrap();
    assert_eq!(
        events,
        ["prepared 1", "columns 1 a", "row 1 [Some([97, 98]), None]", "result 1 Other", "synchronised 1"]
    );
}

#[test]
fn several_queries_in_one_message() {
    let mut c = begun();
    query(&mut c, 1, "begin; select 1; commit");
    let column = b"\0\x01a\0\0\0\0\0\0\0\0\0\0\x17\0\x04\xff\xff\xff\xff\0\0";
    let answer = join(&[
        (b'C', b"BEGIN\0"),
        (b'T', column),
        (b'D', b"\0\x01\0\0\0\x011"),
        (b'C', b"SELECT 1\0"),
        (b'C', b"COMMIT\0"),
        (b'Z', b"I"),
    ]);
    let events = feed(&mut c, &answer).unwrap();
    assert_eq!(events, ["result 1 Other", "result 1 Other", "result 1 Commit", "synchronised 1"]);
}

#[test]
fn an_error_in_a_pipeline_passes_over_the_rest_of_its_part() {
    let mut c = begun();
    let mut out = Vec::new();
    for label in [1, 2] {
        let mut ask = c.ask(label, &mut out);
        ask.bind("", 0, |_, _| false);
        ask.execute(Effect::STATEMENT, false);
    }
    c.ask(9, &mut out).sync();
    statement(&mut c, 3, Effect::STATEMENT, false);
    let answer = join(&[(b'2', b""), (b'E', ERROR), (b'Z', b"I"), (b'2', b""), (b'C', b"SELECT 1\0"), (b'Z', b"I")]);
    let events = feed(&mut c, &answer).unwrap();
    let want = ["refused Some(1) 40001 query 0 fatal false", "synchronised 9", "result 3 Other", "synchronised 3"];
    assert_eq!(events, want);
}

/// A pipeline that is sent in parts: the error comes before the rest of it is asked.
#[test]
fn what_is_asked_behind_an_error_is_passed_over_as_well() {
    let mut c = begun();
    let mut out = Vec::new();
    let mut ask = c.ask(1, &mut out);
    ask.bind("", 0, |_, _| false);
    ask.execute(Effect::STATEMENT, false);
    c.mark_sent();
    assert_eq!(feed(&mut c, &message(b'E', ERROR)).unwrap(), ["refused Some(1) 40001 query 0 fatal false"]);
    assert!(!c.is_idle(), "the server waits for a Sync");
    let mut ask = c.ask(2, &mut out);
    ask.parse("", "select 2");
    ask.bind("", 0, |_, _| false);
    ask.execute(Effect::STATEMENT, false);
    ask.sync();
    c.mark_sent();
    assert_eq!(c.fate(), Fate::Nothing);
    assert_eq!(feed(&mut c, &message(b'Z', b"I")).unwrap(), ["synchronised 2"]);
    assert!(c.is_idle());
}

#[test]
fn what_nobody_asked_for_is_not_believed() {
    let surplus: [(&[Part<'_>], &str); 6] = [
        (&[(b'Z', b"I")], "nothing was asked"),
        (&[(b'C', b"SELECT 1\0")], "nothing was asked"),
        (&[(b'D', b"\0\0")], "nothing was asked"),
        (&[(b'2', b"")], "nothing was asked"),
        (&[(b'E', ERROR)], "an error that nothing asked for"),
        (&[(b'W', b"\0\0\0")], "nothing was asked"),
    ];
    for (parts, why) in surplus {
        let said = violated(&mut begun(), &join(parts));
        assert!(said.contains(why), "{said}");
    }
}

#[test]
fn an_answer_without_a_result_is_not_believed() {
    // ReadyForQuery at once, behind Bind's answer, instead of a result; twice; a result twice; rows without a result.
    let wrong: [&[Part<'_>]; 6] = [
        &[(b'Z', b"I")],
        &[(b'2', b""), (b'Z', b"I")],
        &[(b'2', b""), (b'C', b"SELECT 1\0"), (b'Z', b"I"), (b'Z', b"I")],
        &[(b'2', b""), (b'C', b"SELECT 1\0"), (b'C', b"SELECT 1\0")],
        &[(b'2', b""), (b'D', b"\0\0"), (b'Z', b"I")],
        &[(b'1', b""), (b'2', b"")],
    ];
    for parts in wrong {
        let mut c = begun();
        statement(&mut c, 0, Effect::STATEMENT, false);
        violated(&mut c, &join(parts));
    }
    for parts in [&[(b'Z', &b"I"[..])][..], &[(b'D', b"\0\0")], &[(b'E', ERROR), (b'E', ERROR)], &[(b'2', b"")]] {
        let mut c = begun();
        query(&mut c, 0, "select 1");
        violated(&mut c, &join(parts));
    }
}

#[test]
fn notices_parameters_and_notifications_come_at_any_time() {
    let chatter =
        || join(&[(b'N', b"SNOTICE\0Mhello\0\0"), (b'S', b"TimeZone\0UTC\0"), (b'A', b"\0\0\0\x01channel\0payload\0")]);
    let mut c = begun();
    let mut heard = begun();
    heard.read_notices(true);
    for c in [&mut c, &mut heard] {
        statement(c, 1, Effect::STATEMENT, false);
    }
    let mut all = chatter();
    for part in [(b'2', &b""[..]), (b'C', b"SELECT 1\0"), (b'Z', b"I")] {
        all.extend(message(part.0, part.1));
        all.extend(chatter());
    }
    assert_eq!(feed(&mut c, &all).unwrap(), ["result 1 Other", "synchronised 1"]);
    assert_eq!(feed(&mut heard, &all).unwrap().iter().filter(|e| *e == "notice hello").count(), 4);
}

#[test]
fn a_server_may_end_a_session_at_any_time() {
    let mut c = begun();
    assert_eq!(feed(&mut c, &message(b'E', FATAL)).unwrap(), ["refused None 57P01 query 0 fatal true"]);
    let mut c = begun();
    statement(&mut c, 4, Effect::STATEMENT, false);
    assert_eq!(feed(&mut c, &message(b'E', FATAL)).unwrap(), ["refused Some(4) 57P01 query 0 fatal true"]);
}

#[test]
fn copy_in_is_asked_for_and_can_be_refused() {
    // The simple protocol.
    let mut c = begun();
    query(&mut c, 1, "copy t from stdin");
    assert_eq!(feed(&mut c, &message(b'G', b"\0\0\0")).unwrap(), ["copy in 1"]);
    let mut out = Vec::new();
    c.refuse_copy("no", &mut out);
    assert_eq!(out, message(b'f', b"no\0"));
    let end = join(&[(b'E', ERROR), (b'Z', b"I")]);
    assert_eq!(feed(&mut c, &end).unwrap(), ["refused Some(1) 40001 query 0 fatal false", "synchronised 1"]);
    // The extended one: the Sync that was sent is passed over, and another takes its place.
    let mut c = begun();
    statement(&mut c, 2, Effect::STATEMENT, false);
    assert_eq!(feed(&mut c, &join(&[(b'2', b""), (b'G', b"\0\0\0")])).unwrap(), ["copy in 2"]);
    out.clear();
    c.refuse_copy("no", &mut out);
    assert_eq!(out, [message(b'f', b"no\0"), message(b'S', b"")].concat());
    assert_eq!(feed(&mut c, &end).unwrap().len(), 2);
    assert!(c.is_idle());
}

#[test]
fn copy_out_is_passed_over() {
    let mut c = begun();
    query(&mut c, 1, "copy t to stdout");
    let answer =
        join(&[(b'H', b"\0\0\0"), (b'd', b"1\n"), (b'd', b"2\n"), (b'c', b""), (b'C', b"COPY 2\0"), (b'Z', b"I")]);
    assert_eq!(feed(&mut c, &answer).unwrap(), ["copy out 1", "result 1 Other", "synchronised 1"]);
    // And not believed where none is under way.
    let mut c = begun();
    query(&mut c, 1, "select 1");
    violated(&mut c, &message(b'd', b"1\n"));
}

#[test]
fn rows_that_nobody_reads_need_no_memory() {
    let mut c = begun();
    statement(&mut c, 1, Effect::STATEMENT, false);
    let mut events = feed(&mut c, &message(b'2', b"")).unwrap();
    // A row of 1 GB, header first.
    let length: u32 = 1 << 30;
    let mut header = vec![b'D'];
    header.extend_from_slice(&length.to_be_bytes());
    for byte in header {
        events.extend(feed(&mut c, &[byte]).unwrap());
    }
    let chunk = vec![0x5a; 1 << 20];
    let mut left = length as usize - 4;
    while left > 0 {
        let n = left.min(chunk.len());
        events.extend(feed(&mut c, &chunk[..n]).unwrap());
        assert!(c.memory() < 64 * 1024, "{} bytes are kept", c.memory());
        left -= n;
    }
    events.extend(feed(&mut c, &join(&[(b'C', b"SELECT 1\0"), (b'Z', b"I")])).unwrap());
    assert_eq!(events, ["result 1 Other", "synchronised 1"]);
}

#[test]
fn of_a_long_error_the_beginning_is_kept() {
    let mut c = begun();
    query(&mut c, 1, "select 1");
    let body = [ERROR.strip_suffix(b"\0\0").unwrap(), vec![b'o'; 50 << 20].as_slice(), b"\0\0"].concat();
    let mut events = Vec::new();
    for chunk in message(b'E', &body).chunks(65_536) {
        events.extend(feed(&mut c, chunk).unwrap());
        assert!(c.memory() <= 600 * 1024);
    }
    events.extend(feed(&mut c, &message(b'Z', b"I")).unwrap());
    assert_eq!(events, ["refused Some(1) 40001 query 0 fatal false", "synchronised 1"]);
}

/// Returns the outcome in doubt when the connection is lost after these bytes.
fn fate(ask: impl Fn(&mut Conversation<u32>), answer: &[Part<'_>]) -> Fate {
    let mut c = begun();
    ask(&mut c);
    feed(&mut c, &join(answer)).unwrap();
    c.fate()
}

#[test]
fn a_lost_connection_may_have_committed_or_not() {
    let simple = |sql: &'static str| move |c: &mut Conversation<u32>| query(c, 0, sql);
    let extended = |sql: &'static str| move |c: &mut Conversation<u32>| statement(c, 0, Effect::of(sql), false);
    let begin: Part<'_> = (b'C', b"BEGIN\0");
    // Nothing answered yet.
    for sql in
        ["update t set a = 1", "/* */ COMMIT", "-- so\nend", "begin; update t set a = 1; end", "commit and chain"]
    {
        assert_eq!(fate(simple(sql), &[]), Fate::Unknown, "{sql}");
    }
    for sql in ["begin", "rollback", "begin; update t set a = 1", "select 1 /* ; */ ; rollback"] {
        let want = if sql.starts_with("select") { Fate::Unknown } else { Fate::Nothing };
        assert_eq!(fate(simple(sql), &[]), want, "{sql}");
    }
    assert_eq!(fate(extended("update t set a = 1"), &[]), Fate::Unknown);
    assert_eq!(fate(extended("begin"), &[]), Fate::Nothing);
    // The simple protocol says that a statement is done when it is committed; the extended one commits at Sync.
    let updated: Part<'_> = (b'C', b"UPDATE 1\0");
    assert_eq!(fate(simple("update t set a = 1"), &[updated]), Fate::Committed);
    assert_eq!(fate(extended("update t set a = 1"), &[(b'2', b""), updated]), Fate::Unknown);
    assert_eq!(fate(extended("commit"), &[(b'2', b""), (b'C', b"COMMIT\0")]), Fate::Committed);
    // Of several statements, some are answered.
    let three = "begin; update t set a = 1; commit";
    assert_eq!(fate(simple(three), &[begin, updated]), Fate::Unknown);
    assert_eq!(fate(simple(three), &[begin, updated, (b'C', b"COMMIT\0")]), Fate::Committed);
    assert_eq!(fate(simple(three), &[begin, (b'E', ERROR)]), Fate::Nothing);
}

#[test]
fn within_a_block_only_its_commit_is_in_doubt() {
    let mut c = begun();
    query(&mut c, 0, "begin");
    feed(&mut c, &join(&[(b'C', b"BEGIN\0"), (b'Z', b"T")])).unwrap();
    query(&mut c, 1, "update t set a = 1");
    assert_eq!(c.fate(), Fate::Nothing);
    feed(&mut c, &join(&[(b'C', b"UPDATE 1\0"), (b'Z', b"T")])).unwrap();
    query(&mut c, 2, "/* last */ end");
    assert_eq!(c.fate(), Fate::Unknown);
    feed(&mut c, &message(b'C', b"COMMIT\0")).unwrap();
    assert_eq!(c.fate(), Fate::Committed);
    // Also when the server is ready for more: until the caller begins something else.
    feed(&mut c, &message(b'Z', b"I")).unwrap();
    assert_eq!(c.fate(), Fate::Committed);
    c.forget_commits();
    assert_eq!(c.fate(), Fate::Nothing);
    statement(&mut c, 3, Effect::STATEMENT, false);
    feed(&mut c, &join(&[(b'2', b""), (b'C', b"UPDATE 1\0"), (b'Z', b"I")])).unwrap();
    assert_eq!(c.fate(), Fate::Committed);
    // Of an error nothing is committed, and of a block that is open neither.
    c.forget_commits();
    statement(&mut c, 4, Effect::STATEMENT, false);
    feed(&mut c, &join(&[(b'2', b""), (b'E', ERROR), (b'Z', b"I")])).unwrap();
    assert_eq!(c.fate(), Fate::Nothing);
    query(&mut c, 5, "begin");
    feed(&mut c, &join(&[(b'C', b"BEGIN\0"), (b'Z', b"T")])).unwrap();
    assert_eq!(c.fate(), Fate::Nothing);
}

#[test]
fn a_session_that_ends_within_a_commit_leaves_it_in_doubt() {
    let error = |severity: &str, code: &str| format!("S{severity}\0V{severity}\0C{code}\0Mgone\0\0").into_bytes();
    for (severity, code, want) in [
        ("ERROR", "40001", Fate::Nothing),
        ("FATAL", "57P01", Fate::Nothing),
        ("FATAL", "25P03", Fate::Nothing),
        ("PANIC", "58030", Fate::Unknown),
        ("PANIC", "57P01", Fate::Unknown),
        ("FATAL", "08P01", Fate::Unknown),
        ("FATAL", "58030", Fate::Unknown),
        ("FATAL", "XX000", Fate::Unknown),
    ] {
        let body = error(severity, code);
        for sql in ["commit", "update t set a = 1"] {
            let (simple, extended) =
                (|c: &mut _| query(c, 0, sql), |c: &mut _| statement(c, 0, Effect::of(sql), false));
            assert_eq!(fate(simple, &[(b'E', &body)]), want, "{severity} {code} {sql}");
            assert_eq!(fate(extended, &[(b'2', b""), (b'E', &body)]), want, "{severity} {code} {sql}, extended");
        }
        // Before anything that commits is sent there is no doubt.
        assert_eq!(fate(|c| query(c, 0, "begin"), &[(b'E', &body)]), Fate::Nothing);
    }
}

#[test]
fn a_portal_that_is_suspended_has_not_been_carried_out() {
    let mut c = begun();
    statement(&mut c, 0, Effect::STATEMENT, false);
    assert!(matches!(feed(&mut c, &join(&[(b'2', b""), (b's', b"")])), Err(ProtocolError::Protocol(_))));
}

#[test]
fn a_commit_that_is_refused_ends_its_block() {
    let mut c = begun();
    let mut out = Vec::new();
    for sql in ["begin", "commit"] {
        let mut ask = c.ask(0, &mut out);
        ask.bind("", 0, |_, _| false);
        ask.execute(Effect::of(sql), false);
    }
    c.ask(0, &mut out).sync();
    statement(&mut c, 1, Effect::STATEMENT, false);
    feed(&mut c, &join(&[(b'2', b""), (b'C', b"BEGIN\0"), (b'2', b""), (b'E', ERROR)])).unwrap();
    // The statement behind commits itself.
    assert_eq!(c.fate(), Fate::Unknown);
    // A COMMIT that is answered by ROLLBACK has committed nothing.
    let mut c = begun();
    query(&mut c, 0, "commit");
    feed(&mut c, &message(b'C', b"ROLLBACK\0")).unwrap();
    assert_eq!(c.fate(), Fate::Nothing);
}

#[test]
fn what_never_left_cannot_have_committed() {
    let mut c = begun();
    c.ask(0, &mut Vec::new()).query("update t set a = 1");
    assert_eq!(c.fate(), Fate::Nothing);
    c.mark_sent();
    assert_eq!(c.fate(), Fate::Unknown);
    // Of a pipeline that is sent in parts, the part that has left counts.
    let mut c = begun();
    let mut out = Vec::new();
    for sql in ["begin", "update t set a = 1"] {
        let mut ask = c.ask(0, &mut out);
        ask.bind("", 0, |_, _| false);
        ask.execute(Effect::of(sql), false);
    }
    c.mark_sent();
    let mut ask = c.ask(0, &mut out);
    ask.bind("", 0, |_, _| false);
    ask.execute(Effect::of("commit"), false);
    ask.sync();
    assert_eq!(c.fate(), Fate::Nothing);
    c.mark_sent();
    assert_eq!(c.fate(), Fate::Unknown);
}

// ---------------------------------------------------------------- how a session begins

#[test]
fn a_session_begins() {
    for cut in 1..30 {
        let mut c = begin();
        let mut events = Vec::new();
        for chunk in greeting().chunks(cut) {
            events.extend(feed(&mut c, chunk).unwrap());
        }
        assert_eq!(events, ["began 7 [(\"server_version\", \"18.6\")]"]);
    }
}

#[test]
fn cleartext_and_md5_passwords_are_answered() {
    let answer = |body: &[u8]| feed_and_reply(&mut begin(), &message(b'R', body)).unwrap().1;
    assert_eq!(answer(&[0, 0, 0, 3]), message(b'p', b"secret\0"));
    let md5 = answer(&[0, 0, 0, 5, 1, 2, 3, 4]);
    assert_eq!((md5[0], &md5[5..8], md5.len()), (b'p', &b"md5"[..], 5 + 35 + 1));
}

#[test]
fn a_session_begins_only_when_it_is_authenticated() {
    // ReadyForQuery, parameters or a notice without AuthenticationOk: a server, or somebody between, that asked nothing.
    for first in [message(b'Z', b"I"), message(b'S', b"a\0b\0"), message(b'N', b"Mx\0\0"), message(b'K', &[0; 8])] {
        let why = violated(&mut begin(), &first);
        assert!(why.contains("before the session was authenticated"), "{why}");
    }
    // In the middle of SCRAM.
    let mut c = begin();
    feed(&mut c, &message(b'R', b"\0\0\0\x0aSCRAM-SHA-256\0\0")).unwrap();
    violated(&mut c, &message(b'Z', b"I"));
}

#[test]
fn a_server_asks_for_authentication_once() {
    let sasl = message(b'R', b"\0\0\0\x0aSCRAM-SHA-256\0\0");
    let mut c = begin();
    feed(&mut c, &sasl).unwrap();
    assert!(violated(&mut c, &sasl).contains("second request for authentication"));
    // Nor by a weaker method.
    let mut c = begin();
    feed(&mut c, &sasl).unwrap();
    violated(&mut c, &message(b'R', &[0, 0, 0, 3]));
    // Nor behind its end.
    let mut c = begin();
    feed(&mut c, &message(b'R', &[0; 4])).unwrap();
    violated(&mut c, &message(b'R', &[0, 0, 0, 3]));
}

#[test]
fn a_server_must_prove_itself() {
    let mut c = begin();
    feed(&mut c, &message(b'R', b"\0\0\0\x0aSCRAM-SHA-256\0\0")).unwrap();
    let e = feed(&mut c, &message(b'R', &[0; 4])).unwrap_err();
    assert!(matches!(&e, ProtocolError::Auth(m) if m.contains("without proving")), "{e}");
}

#[test]
fn channel_binding_is_not_offered_without_tls() {
    let e = feed(&mut begin(), &message(b'R', b"\0\0\0\x0aSCRAM-SHA-256-PLUS\0SCRAM-SHA-256\0\0")).unwrap_err();
    assert!(matches!(&e, ProtocolError::Auth(m) if m.contains("without TLS")), "{e}");
}

#[test]
fn methods_that_are_not_known_are_named() {
    let e = feed(&mut begin(), &message(b'R', &[0, 0, 0, 7])).unwrap_err();
    assert!(matches!(&e, ProtocolError::Auth(m) if m.contains("GSSAPI") && m.contains("pg_hba.conf")), "{e}");
}

#[test]
fn sslmode_decides_what_a_server_without_tls_means() {
    for (mode, goes_on) in [(SslMode::Prefer, true), (SslMode::Require, false), (SslMode::VerifyFull, false)] {
        let mut out = Vec::new();
        let mut c: Conversation<u32> = Conversation::start(config(mode), Attempt::Encrypted, &mut out).unwrap();
        assert_eq!(out, [0, 0, 0, 8, 4, 210, 22, 47]);
        match feed_and_reply(&mut c, b"N") {
            Ok((_, startup)) => assert!(goes_on && !startup.is_empty()),
            Err(e) => assert!(!goes_on && e.to_string().contains("does not offer TLS"), "{e}"),
        }
    }
}

#[test]
fn bytes_slipped_in_before_tls_are_refused() {
    let mut c: Conversation<u32> =
        Conversation::start(config(SslMode::Require), Attempt::Encrypted, &mut Vec::new()).unwrap();
    let e = feed(&mut c, b"SZ\0\0\0\x05I").unwrap_err();
    assert!(e.to_string().contains("data behind the answer"), "{e}");
}

#[test]
fn something_else_on_the_port_is_no_postgresql() {
    let e = feed(&mut begin(), b"HTTP/1.1 400 Bad Request\r\n\r\n").unwrap_err();
    assert!(e.to_string().contains("not a PostgreSQL server"), "{e}");
}

#[test]
fn a_cancel_request_is_not_sent_before_tls() {
    let secret = vec![9, 8, 7, 6];
    let mut out = Vec::new();
    let (_, done) = Cancel::start(config(SslMode::Disable), false, 5, secret.clone(), &mut out);
    assert!(done && out.ends_with(&[0, 0, 0, 5, 9, 8, 7, 6]));
    out.clear();
    let (mut cancel, done) = Cancel::start(config(SslMode::Prefer), true, 5, secret.clone(), &mut out);
    assert!(!done && out == [0, 0, 0, 8, 4, 210, 22, 47], "only TLS is asked for");
    out.clear();
    // Not even where sslmode would let a session go on in the clear.
    assert!(cancel.feed(b"N", &mut out).is_err());
    assert!(!out.windows(4).any(|w| w == secret));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    /// However the bytes are cut, the same is understood; whatever is distorted, nothing panics, and what was answered
    /// was asked for.
    #[test]
    fn cutting_changes_nothing(
        cut in 1usize..40, flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        reads in any::<bool>()
    ) {
        let conversation = || {
            let mut c = begun();
            statement(&mut c, 0, Effect::STATEMENT, reads);
            query(&mut c, 1, "begin; select 1; end");
            statement(&mut c, 2, Effect::of("commit"), false);
            c
        };
        let column = b"\0\x01a\0\0\0\0\0\0\0\0\0\0\x17\0\x04\xff\xff\xff\xff\0\0";
        let mut bytes = join(&[
            (b'2', b""), (b'N', b"Mhello\0\0"), (b'D', b"\0\x01\0\0\0\x011"), (b'C', b"SELECT 1\0"), (b'Z', b"I"),
            (b'C', b"BEGIN\0"), (b'T', column), (b'D', b"\0\x01\0\0\0\x011"), (b'C', b"SELECT 1\0"),
            (b'C', b"COMMIT\0"), (b'S', b"a\0b\0"), (b'Z', b"I"), (b'2', b""), (b'E', ERROR), (b'Z', b"I"),
        ]);
        let whole = flips.is_empty();
        for (at, byte) in flips {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let (mut together, mut apart) = (conversation(), conversation());
        let a = feed(&mut together, &bytes);
        let mut b = Ok(Vec::new());
        for chunk in bytes.chunks(cut) {
            match (feed(&mut apart, chunk), &mut b) {
                (Ok(events), Ok(all)) => all.extend(events),
                (Err(e), _) => { b = Err(e); break; }
                _ => {}
            }
        }
        if whole {
            let a = a.unwrap();
            prop_assert_eq!(&a, &b.unwrap());
            prop_assert_eq!(a.iter().filter(|e| e.starts_with("synchronised")).count(), 3);
            prop_assert!(together.is_idle());
        } else {
            prop_assert_eq!(a.is_ok(), b.is_ok());
        }
        prop_assert!(together.memory() < 1 << 20);
    }
}

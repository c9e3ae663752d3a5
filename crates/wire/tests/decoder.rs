//! The decoder against whole, split, joined and broken input.

use pgdyno_wire::backend::{self, ServerError, next_message};
use pgdyno_wire::handshake::Attempt;
use pgdyno_wire::{Config, Endpoint, Handshake, Progress, SslMode, WireError, frontend};
use proptest::prelude::*;
use std::sync::Arc;

fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    let mut out = vec![tag];
    out.extend_from_slice(&(body.len() as u32 + 4).to_be_bytes());
    out.extend_from_slice(body);
    out
}

fn config(mode: SslMode) -> Arc<Config> {
    let endpoint = Endpoint::Tcp { host: "h".into(), addresses: vec![] };
    let tls = Some(pgdyno_wire::tls::TlsSettings::load(SslMode::Require, None, None).unwrap());
    Arc::new(Config { password: Some("secret".into()), ssl_mode: mode, tls, ..Config::plain(endpoint, "u", "d") })
}

/// A server that trusts: everything up to ReadyForQuery.
fn greeting() -> Vec<u8> {
    let mut all = message(b'R', &[0, 0, 0, 0]);
    all.extend(message(b'S', b"server_version\x0018.6\0"));
    all.extend(message(b'N', b"SNOTICE\0C00000\0Mhello\0\0"));
    all.extend(message(b'K', &[0, 0, 0, 7, 1, 2, 3, 4]));
    all.extend(message(b'Z', b"I"));
    all
}

proptest! {
    #[test]
    fn messages_survive_any_cutting(bodies in prop::collection::vec((prop::sample::select(b"CDSTZ12".to_vec()), prop::collection::vec(any::<u8>(), 0..50)), 1..20), cut in 1usize..40) {
        let stream: Vec<u8> = bodies.iter().flat_map(|(t, b)| message(*t, b)).collect();
        let mut buffer = Vec::new();
        let mut found = Vec::new();
        for chunk in stream.chunks(cut) {
            buffer.extend_from_slice(chunk);
            let mut at = 0;
            while let Some((m, length)) = next_message(&buffer[at..]).unwrap() {
                found.push((m.tag, m.body.to_vec()));
                at += length;
            }
            buffer.drain(..at);
        }
        prop_assert!(buffer.is_empty());
        prop_assert_eq!(found, bodies);
    }

    #[test]
    fn noise_never_breaks_the_decoder(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(Some((m, length))) = next_message(&bytes) {
            prop_assert!(length <= bytes.len());
            let _ = backend::data_row(m.body);
            let _ = backend::parameter_status(m.body);
            let _ = backend::backend_key(m.body);
            let _ = backend::ready_for_query(m.body);
            let _ = ServerError::parse(m.body);
        }
        for attempt in [Attempt::Clear, Attempt::Encrypted] {
            let mut h = Handshake::start(config(SslMode::Prefer), attempt, &mut Vec::new());
            let _ = h.feed(&bytes, &mut Vec::new());
        }
    }

    #[test]
    fn a_handshake_survives_any_cutting(cut in 1usize..30) {
        let mut out = Vec::new();
        let mut h = Handshake::start(config(SslMode::Disable), Attempt::Clear, &mut out);
        let mut ready = None;
        for chunk in greeting().chunks(cut) {
            if let Progress::Ready(info) = h.feed(chunk, &mut out).unwrap() {
                ready = Some(info);
            }
        }
        let info = ready.expect("ReadyForQuery ends it");
        prop_assert_eq!((info.process, info.secret), (7, vec![1, 2, 3, 4]));
        prop_assert_eq!(info.parameters, vec![("server_version".to_owned(), "18.6".to_owned())]);
    }

    #[test]
    fn bound_parameters_read_back(values in prop::collection::vec(prop::option::of(prop::collection::vec(any::<u8>(), 0..20)), 0..8)) {
        let mut out = Vec::new();
        frontend::bind(&mut out, "P1", values.len(), |n, o| match &values[n] {
            Some(v) => { o.extend_from_slice(v); true }
            None => false,
        });
        // The same bytes by a library that others use.
        let mut reference = bytes::BytesMut::new();
        let ok = postgres_protocol::message::frontend::bind(
            "", "P1", std::iter::empty(), values.iter(),
            |v, buf| Ok(match v {
                Some(v) => { buf.extend_from_slice(v); postgres_protocol::IsNull::No }
                None => postgres_protocol::IsNull::Yes,
            }),
            std::iter::empty(), &mut reference,
        );
        prop_assert!(ok.is_ok());
        prop_assert_eq!(&out[..], &reference[..]);
    }
}

#[test]
fn cleartext_and_md5_passwords_are_answered() {
    let mut out = Vec::new();
    let mut h = Handshake::start(config(SslMode::Disable), Attempt::Clear, &mut out);
    out.clear();
    h.feed(&message(b'R', &[0, 0, 0, 3]), &mut out).unwrap();
    assert_eq!(out, message(b'p', b"secret\0"));
    out.clear();
    h.feed(&message(b'R', &[0, 0, 0, 5, 1, 2, 3, 4]), &mut out).unwrap();
    assert_eq!((out[0], &out[5..8], out.len()), (b'p', &b"md5"[..], 5 + 35 + 1));
}

#[test]
fn methods_that_are_not_known_are_named() {
    let mut h = Handshake::start(config(SslMode::Disable), Attempt::Clear, &mut Vec::new());
    let e = h.feed(&message(b'R', &[0, 0, 0, 7]), &mut Vec::new()).unwrap_err();
    assert!(matches!(&e, WireError::Auth(m) if m.contains("GSSAPI") && m.contains("pg_hba.conf")), "{e}");
}

#[test]
fn sslmode_decides_what_a_server_without_tls_means() {
    for (mode, goes_on) in [(SslMode::Prefer, true), (SslMode::Require, false), (SslMode::VerifyFull, false)] {
        let mut out = Vec::new();
        let mut h = Handshake::start(config(mode), Attempt::Encrypted, &mut out);
        assert_eq!(out, [0, 0, 0, 8, 4, 210, 22, 47]);
        out.clear();
        match h.feed(b"N", &mut out) {
            Ok(_) => assert!(goes_on && !out.is_empty()),
            Err(e) => assert!(!goes_on && e.to_string().contains("does not offer TLS"), "{e}"),
        }
    }
}

#[test]
fn bytes_slipped_in_before_tls_are_refused() {
    let mut h = Handshake::start(config(SslMode::Require), Attempt::Encrypted, &mut Vec::new());
    let e = h.feed(b"SZ\0\0\0\x05I", &mut Vec::new()).unwrap_err();
    assert!(e.to_string().contains("data behind the answer"), "{e}");
}

#[test]
fn something_else_on_the_port_is_no_postgresql() {
    let mut h = Handshake::start(config(SslMode::Disable), Attempt::Clear, &mut Vec::new());
    let e = h.feed(b"HTTP/1.1 400 Bad Request\r\n\r\n", &mut Vec::new()).unwrap_err();
    assert!(e.to_string().contains("not a PostgreSQL server"), "{e}");
}

#[test]
fn errors_keep_their_code_and_hint() {
    let e = ServerError::parse(b"SFEHLER\0VERROR\0C42P01\0Mno such table\0Dsome detail\0Hsome hint\0\0");
    assert_eq!(e.severity, "ERROR");
    assert_eq!(e.to_string(), "ERROR: no such table (SQLSTATE 42P01); some detail; some hint");
    assert!(e.state().is_permanent());
    let cut = ServerError::parse(b"SERROR\0C42");
    assert_eq!(cut.state().as_str(), "XX000");
}

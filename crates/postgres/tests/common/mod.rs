//! What the tests of conversations share.
#![allow(dead_code)]

use pgdyno_postgres::tls::TlsSettings;
use pgdyno_postgres::{Attempt, Config, Conversation, Endpoint, Event, ProtocolError, SslMode};
use std::sync::Arc;

pub fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    let mut out = vec![tag];
    out.extend_from_slice(&(body.len() as u32 + 4).to_be_bytes());
    out.extend_from_slice(body);
    out
}

pub fn config(mode: SslMode) -> Arc<Config> {
    let endpoint = Endpoint::Tcp { host: "h".into(), addresses: vec![] };
    let tls = Some(TlsSettings::load(SslMode::Require, None, None).unwrap());
    Arc::new(Config { password: Some("secret".into()), ssl_mode: mode, tls, ..Config::plain(endpoint, "u", "d") })
}

/// A server that trusts: everything up to ReadyForQuery.
pub fn greeting() -> Vec<u8> {
    let mut all = message(b'R', &[0, 0, 0, 0]);
    all.extend(message(b'S', b"server_version\x0018.6\0"));
    all.extend(message(b'N', b"SNOTICE\0C00000\0Mhello\0\0"));
    all.extend(message(b'K', &[0, 0, 0, 7, 1, 2, 3, 4]));
    all.extend(message(b'Z', b"I"));
    all
}

/// One that begins, in the clear.
pub fn begin() -> Conversation<u32> {
    Conversation::start(config(SslMode::Disable), Attempt::Clear, &mut Vec::new()).unwrap()
}

/// One whose session has begun.
pub fn begun() -> Conversation<u32> {
    let mut conversation = begin();
    feed(&mut conversation, &greeting()).unwrap();
    assert!(conversation.is_open());
    conversation
}

/// All events of these bytes, in words; what was sent back is thrown away.
pub fn feed(conversation: &mut Conversation<u32>, bytes: &[u8]) -> Result<Vec<String>, ProtocolError> {
    feed_and_reply(conversation, bytes).map(|(events, _)| events)
}

pub fn feed_and_reply(
    conversation: &mut Conversation<u32>,
    bytes: &[u8],
) -> Result<(Vec<String>, Vec<u8>), ProtocolError> {
    let (mut plain, mut reply, mut found) = (Vec::new(), Vec::new(), Vec::new());
    let mut rest = conversation.open(bytes, &mut plain, &mut reply)?;
    while let Some(event) = conversation.next(&mut rest, &mut reply)? {
        found.push(match event {
            Event::Began(info) => format!("began {} {:?}", info.process, info.parameters),
            Event::Prepared(l) => format!("prepared {l}"),
            Event::Columns(l, names) => format!("columns {l} {}", names.join(",")),
            Event::Row(l) => format!("row {l} {:?}", conversation.row()?.collect::<Vec<_>>()),
            Event::Result(l, tag) => format!("result {l} {tag:?}"),
            Event::Refused(r) => {
                format!("refused {:?} {} query {} fatal {}", r.label, r.error.state(), r.query, r.fatal)
            }
            Event::Synchronised(l) => format!("synchronised {l}"),
            Event::CopyIn(l) => format!("copy in {l}"),
            Event::CopyOut(l) => format!("copy out {l}"),
            Event::Notice(n) => format!("notice {}", n.message),
        });
    }
    assert!(rest.is_empty(), "all of it is taken");
    Ok((found, reply))
}

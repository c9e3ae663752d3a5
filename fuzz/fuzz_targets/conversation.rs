//! Whatever a server says, cut wherever it is cut, a conversation goes on, or ends with an error; it keeps little, and what
//! it calls answered was asked for.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pgdyno_postgres::tls::TlsSettings;
use pgdyno_postgres::{Attempt, Config, Conversation, Effect, Endpoint, Event, SslMode};
use std::sync::{Arc, LazyLock};

static CONFIG: LazyLock<Arc<Config>> = LazyLock::new(|| {
    let endpoint = Endpoint::Tcp { host: "localhost".into(), addresses: vec![] };
    let tls = TlsSettings::load(SslMode::Require, None, None).ok();
    let plain = Config::plain(endpoint, "user", "database");
    Arc::new(Config { password: Some("secret".into()), ssl_mode: SslMode::Prefer, tls, ..plain })
});

/// AuthenticationOk and ReadyForQuery.
const GREETING: &[u8] = b"R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I";

/// Requests of each kind, as the bits of `kinds` say.
fn ask(conversation: &mut Conversation<u8>, kinds: u8) -> usize {
    let mut out = Vec::new();
    let mut asked = 0;
    for bit in 0..8u8 {
        let mut ask = conversation.ask(bit, &mut out);
        if kinds & 1 << bit == 0 {
            ask.query("begin; select 1; /* */ commit");
        } else {
            ask.parse("p", "select 1");
            ask.bind("p", 0, |_, _| false);
            ask.describe();
            ask.execute(Effect::of("commit"), bit & 1 == 0);
            ask.sync();
        }
        asked += 1;
    }
    conversation.mark_sent();
    asked
}

fuzz_target!(|data: &[u8]| {
    let [how, kinds, cut, rest @ ..] = data else { return };
    let attempt = if how & 1 == 0 { Attempt::Clear } else { Attempt::Encrypted };
    let mut out = Vec::new();
    let Ok(mut conversation) = Conversation::<u8>::start(CONFIG.clone(), attempt, &mut out) else { return };
    conversation.read_notices(how & 2 != 0);
    let greeted: Vec<u8> = if how & 4 == 0 { [GREETING, rest].concat() } else { rest.to_vec() };
    let (mut plain, mut asked, mut answered) = (Vec::new(), 0, 0);
    // Cut at every byte, or in larger pieces.
    for chunk in greeted.chunks(usize::from(*cut).max(1)) {
        let Ok(mut input) = conversation.open(chunk, &mut plain, &mut out) else { return };
        loop {
            match conversation.next(&mut input, &mut out) {
                Err(_) => return,
                Ok(None) => break,
                Ok(Some(Event::Began(_))) => asked = ask(&mut conversation, *kinds),
                Ok(Some(Event::Synchronised(_))) => answered += 1,
                Ok(Some(Event::Row(_))) => drop(conversation.row()),
                Ok(Some(Event::CopyIn(_))) => conversation.refuse_copy("no", &mut out),
                Ok(Some(_)) => {}
            }
            let _ = conversation.fate();
        }
        assert!(input.is_empty());
        assert!(answered <= asked);
        assert!(conversation.memory() <= 1 << 20);
    }
});

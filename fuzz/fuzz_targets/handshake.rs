//! Whatever a server sends while a session begins, the handshake goes on, ends, or fails with an error.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pgdyno_wire::handshake::Attempt;
use pgdyno_wire::tls::TlsSettings;
use pgdyno_wire::{Config, Endpoint, Handshake, Progress, SslMode};
use std::sync::{Arc, LazyLock};

static CONFIG: LazyLock<Arc<Config>> = LazyLock::new(|| {
    let endpoint = Endpoint::Tcp { host: "localhost".into(), addresses: vec![] };
    let tls = TlsSettings::load(SslMode::Require, None, None).ok();
    let plain = Config::plain(endpoint, "user", "database");
    Arc::new(Config { password: Some("secret".into()), ssl_mode: SslMode::Prefer, tls, ..plain })
});

fuzz_target!(|data: &[u8]| {
    let Some((first, rest)) = data.split_first() else { return };
    let attempt = if first & 1 == 0 { Attempt::Clear } else { Attempt::Encrypted };
    let mut out = Vec::new();
    let mut handshake = Handshake::start(CONFIG.clone(), attempt, &mut out);
    for chunk in rest.chunks(usize::from(first >> 1) + 1) {
        match handshake.feed(chunk, &mut out) {
            Ok(Progress::Pending) => {}
            _ => return,
        }
    }
});

//! PostgreSQL behind the traits of all protocols.

use crate::conn::Config;
use crate::conversation::Conversation;
use crate::frontend;
use crate::opening::Cancel;
use pgdyno_protocol::{
    Attempt, DataRow, Dialect, Endpoint, Event, Fate, Given, ProtocolError, QueryMode, Sending, Statement, Target,
    TransactionStatus,
};
use std::sync::Arc;

/// PostgreSQL, and what speaks its protocol.
pub struct Postgres;

impl Dialect for Postgres {
    type Config = Config;
    type Conversation<L: Copy + Send + 'static> = Conversation<L>;
    type Cancel = Cancel;
    const PIPELINES: bool = true;
}

impl Target for Config {
    fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    fn attempts(&self) -> &'static [Attempt] {
        Attempt::of(&self.endpoint, self.ssl_mode)
    }

    fn wants_writes(&self) -> bool {
        self.read_write
    }
}

impl<L: Copy + Send> pgdyno_protocol::Conversation<L> for Conversation<L> {
    type Config = Config;

    fn start(config: Arc<Config>, attempt: Attempt, out: &mut Vec<u8>) -> Result<Self, ProtocolError> {
        Conversation::start(config, attempt, out)
    }

    fn read_notices(&mut self, read: bool) {
        self.read_notices(read);
    }

    #[inline]
    fn is_open(&self) -> bool {
        self.is_open()
    }

    #[inline]
    fn is_idle(&self) -> bool {
        self.is_idle()
    }

    #[inline]
    fn is_plain(&self) -> bool {
        self.is_plain()
    }

    #[inline]
    fn status(&self) -> TransactionStatus {
        self.status()
    }

    #[inline]
    fn row(&self) -> Result<DataRow<'_>, ProtocolError> {
        self.row()
    }

    #[inline]
    fn statement(
        &mut self,
        s: &Statement<'_>,
        sending: &Sending<L>,
        out: &mut Vec<u8>,
        whole: impl FnOnce(&mut Vec<u8>),
        mut value: impl FnMut(usize, &mut Vec<u8>) -> Given,
    ) {
        if sending.mode == QueryMode::Simple {
            self.ask(sending.end, out).query_with(s.effect, s.reads, whole);
            return;
        }
        let name = if sending.mode == QueryMode::Prepared { s.name } else { "" };
        let tells_kinds = self.tells_kinds();
        let mut ask = self.ask(sending.part, out);
        if sending.prepare {
            ask.parse(name, s.text);
        }
        if tells_kinds {
            ask.bind_of_kinds(name, s.parameters, s.reads, value);
        } else {
            ask.bind(name, s.parameters, |n, o| value(n, o) != Given::Null);
        }
        if s.names {
            ask.describe();
        }
        self.ask(sending.result, out).execute(s.effect, s.reads);
        if !sending.in_pipeline {
            self.ask(sending.end, out).sync();
        }
    }

    fn prepare(&mut self, s: &Statement<'_>, label: L, out: &mut Vec<u8>) {
        self.ask(label, out).parse(s.name, s.text);
    }

    fn sync(&mut self, label: L, out: &mut Vec<u8>) {
        self.ask(label, out).sync();
    }

    fn command(&mut self, label: L, sql: &str, out: &mut Vec<u8>) {
        self.ask(label, out).query(sql);
    }

    fn goodbye(&mut self, out: &mut Vec<u8>) {
        frontend::terminate(out);
    }

    #[inline]
    fn data(&mut self, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
        frontend::copy_data(out, write);
    }

    fn end_data(&mut self, out: &mut Vec<u8>) {
        frontend::copy_done(out);
    }

    fn refuse_data(&mut self, reason: &str, out: &mut Vec<u8>) -> bool {
        self.refuse_copy(reason, out);
        true
    }

    #[inline]
    fn mark_sent(&mut self) {
        self.mark_sent();
    }

    #[inline]
    fn seal(&mut self, plain: &[u8], wire: &mut Vec<u8>) -> Result<(), ProtocolError> {
        self.seal(plain, wire)
    }

    #[inline]
    fn open<'b>(
        &mut self,
        wire: &'b [u8],
        plain: &'b mut Vec<u8>,
        reply: &mut Vec<u8>,
    ) -> Result<&'b [u8], ProtocolError> {
        self.open(wire, plain, reply)
    }

    #[inline(always)]
    fn next(&mut self, input: &mut &[u8], reply: &mut Vec<u8>) -> Result<Option<Event<L>>, ProtocolError> {
        self.next(input, reply)
    }

    #[inline]
    fn forget_commits(&mut self) {
        self.forget_commits();
    }

    fn fate(&self) -> Fate {
        self.fate()
    }
}

impl pgdyno_protocol::Cancel for Cancel {
    type Config = Config;

    fn start(
        config: Arc<Config>,
        encrypted: bool,
        process: u32,
        secret: Vec<u8>,
        out: &mut Vec<u8>,
    ) -> Result<(Cancel, bool), ProtocolError> {
        Ok(Cancel::start(config, encrypted, process, secret, out))
    }

    fn feed(&mut self, wire: &[u8], out: &mut Vec<u8>) -> Result<bool, ProtocolError> {
        self.feed(wire, out)
    }
}

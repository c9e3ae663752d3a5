//! One connection's conversation with a server: requests are queued with what answers them, bytes go in, events come out.
//!
//! ```text
//! Greeting --> TLS --> login --> Open: asked  [prepare] [execute] [query] ...
//!                                               |   each answered to its end before the next
//!                                               v
//!                              OK, ERR, or columns and rows; Result, then Synchronised
//! ```
//!
//! A statement is prepared at its first use: its values wait in the conversation until the server has numbered it, and are
//! sent as the answer to that. Statements that begin or end a transaction have no values and go as text, because MySQL
//! prepares only some of them.

use crate::config::Config;
use crate::errors::{self, Numbered};
use crate::handshake::{Handshake, Outcome, capability};
use crate::packet::{Frames, Payload, Reader, packet};
use crate::values::{self, Column};
use pgdyno_protocol::tls::Link;
use pgdyno_protocol::{
    Attempt, CommandTag, DataRow, Effect, Event, Fate, Given, Lexicon, ProtocolError, QueryMode, Refusal, Sending,
    ServerError, SqlState, Statement, TransactionStatus,
};
use std::collections::VecDeque;
use std::sync::Arc;

/// Commands ("Command Phase").
mod command {
    pub const QUIT: u8 = 0x01;
    pub const QUERY: u8 = 0x03;
    pub const PING: u8 = 0x0e;
    pub const STMT_PREPARE: u8 = 0x16;
    pub const STMT_EXECUTE: u8 = 0x17;
    pub const STMT_CLOSE: u8 = 0x19;
}
/// Flags of the server's status.
const IN_TRANSACTION: u16 = 1;
const MORE_RESULTS: u16 = 8;

/// Kind of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    /// Text.
    Query,
    /// A statement that is being prepared; its values wait.
    Prepare { execute: bool },
    /// A prepared statement.
    Execute,
    /// Nothing but an answer.
    Ping,
}

#[derive(Clone, Copy, Debug)]
struct Asked<L> {
    what: What,
    /// Label of its parts and of its results.
    label: L,
    /// Label of its end.
    end: L,
    effect: Effect,
    slot: usize,
    parameters: usize,
    reads: bool,
    /// Sequence number that its answer begins with.
    sequence: u8,
    /// Results so far.
    results: u32,
    /// It counts rows: an answer of 0 found none.
    counts: bool,
    is_sent: bool,
}

impl<L: Copy> Asked<L> {
    /// A request that no statement stands behind.
    fn new(what: What, label: L, end: L, sequence: u8) -> Asked<L> {
        let effect = Effect::STATEMENT;
        let (slot, parameters, results) = (0, 0, 0);
        let (reads, counts, is_sent) = (false, false, false);
        Asked { what, label, end, effect, slot, parameters, reads, sequence, results, counts, is_sent }
    }

    /// A request for a statement.
    fn of(s: &Statement<'_>, what: What, label: L, end: L, sequence: u8) -> Asked<L> {
        let (reads, counts) = (s.reads, counts_rows(s.text));
        let (effect, slot, parameters) = (s.effect, s.slot, s.parameters);
        Asked { effect, slot, parameters, reads, counts, ..Asked::new(what, label, end, sequence) }
    }
}

/// Returns true for statements that change rows.
#[inline]
fn counts_rows(sql: &str) -> bool {
    let beginning = sql.trim_start().as_bytes().get(..3);
    beginning.is_some_and(|b| [b"ins", b"upd", b"del", b"rep"].iter().any(|word| b.eq_ignore_ascii_case(*word)))
}

/// Returns true for statements that MySQL does not prepare; what begins or ends a transaction is known by its effect.
#[inline]
fn goes_as_text(sql: &str) -> bool {
    let word = sql.trim_start().split(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or_default();
    ["savepoint", "release", "use", "xa", "handler", "lock", "unlock"].iter().any(|w| word.eq_ignore_ascii_case(w))
}

/// Part of the answer at hand that is awaited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Its first packet.
    First,
    /// So many descriptions of columns, and then rows.
    Columns(u64),
    /// EOF behind them, of servers that send it.
    ColumnsEnd,
    Rows,
    /// So many descriptions of parameters and columns of a statement that is prepared, in two groups.
    Definitions(u64, u64),
}

enum Phase {
    Beginning(Box<Handshake>),
    Open,
}

/// See the module.
pub struct Conversation<L> {
    link: Link,
    phase: Phase,
    frames: Frames,
    asked: VecDeque<Asked<L>>,
    stage: Stage,
    /// Number of the next packet from the server.
    sequence: u8,
    /// EOF packets end columns and rows.
    has_eof: bool,
    /// The server may ask for data of a load.
    offers_data: bool,
    in_block: bool,
    committed: bool,
    /// The request that was answered last, whose end is to be told.
    ended: Option<L>,
    columns: Vec<Column>,
    row: Vec<u8>,
    /// Rows of the result at hand.
    rows: u64,
    /// The server's numbers of prepared statements, by slot.
    statements: Vec<Option<u32>>,
    /// Values of statements that are being prepared: what follows the statement's number.
    waiting: VecDeque<Vec<u8>>,
    /// Number of the statement that is being prepared.
    preparing: u32,
    /// Its parameters, if the server finds others than the script has.
    mismatch: Option<u16>,
}

impl<L> Default for Conversation<L> {
    /// One that has not begun: nothing is said, and nothing is understood.
    fn default() -> Self {
        Conversation {
            link: Link::Plain,
            phase: Phase::Open,
            frames: Frames::default(),
            asked: VecDeque::new(),
            stage: Stage::First,
            sequence: 0,
            has_eof: false,
            offers_data: false,
            in_block: false,
            committed: false,
            ended: None,
            columns: Vec::new(),
            row: Vec::new(),
            rows: 0,
            statements: Vec::new(),
            waiting: VecDeque::new(),
            preparing: 0,
            mismatch: None,
        }
    }
}

impl<L: Copy> Conversation<L> {
    /// Bytes that are kept for packets and rows.
    pub fn memory(&self) -> usize {
        self.frames.memory() + self.row.capacity()
    }

    fn ask(&mut self, asked: Asked<L>) {
        if self.asked.is_empty() {
            self.sequence = asked.sequence;
        }
        self.asked.push_back(asked);
    }

    /// Writes a text that is carried out.
    #[allow(clippy::too_many_arguments)]
    fn query(
        &mut self,
        label: L,
        end: L,
        effect: Effect,
        (reads, counts): (bool, bool),
        out: &mut Vec<u8>,
        write: impl FnOnce(&mut Vec<u8>),
    ) {
        let sequence = packet(out, 0, |o| {
            o.push(command::QUERY);
            write(o);
        });
        self.ask(Asked { effect, reads, counts, ..Asked::new(What::Query, label, end, sequence) });
    }

    fn number_of(&self, slot: usize) -> Option<u32> {
        self.statements.get(slot).copied().flatten()
    }

    /// Writes the request that prepares a statement.
    fn ask_to_prepare(&mut self, s: &Statement<'_>, execute: bool, label: L, end: L, out: &mut Vec<u8>) {
        if let Some(old) = self.number_of(s.slot) {
            // It has no answer.
            packet(out, 0, |o| {
                o.push(command::STMT_CLOSE);
                o.extend_from_slice(&old.to_le_bytes());
            });
            self.statements[s.slot] = None;
        }
        let sequence = packet(out, 0, |o| {
            o.push(command::STMT_PREPARE);
            o.extend_from_slice(s.text.as_bytes());
        });
        self.ask(Asked::of(s, What::Prepare { execute }, label, end, sequence));
    }

    /// The answer to a request is complete.
    fn end(&mut self) {
        self.stage = Stage::First;
        if let Some(done) = self.asked.pop_front() {
            self.ended = Some(done.end);
        }
        // What a server says without being asked begins to count anew.
        self.sequence = self.asked.front().map_or(0, |next| next.sequence);
    }

    /// Takes the status that stands at the end of a result, and tells of the result.
    fn result(&mut self, status: u16, found_nothing: bool) -> Result<Option<Event<L>>, ProtocolError> {
        let Some(head) = self.asked.front_mut() else { return Err(unexpected("a result where nothing was asked")) };
        let before = self.in_block;
        let more = status & MORE_RESULTS != 0;
        self.in_block = status & IN_TRANSACTION != 0;
        head.results += 1;
        let (label, effect) = (head.label, head.effect);
        // Outside a block each statement of a text commits by itself; COMMIT AND CHAIN stays in one.
        let is_ping = head.what == What::Ping;
        let commits = !is_ping && effect.may_commit(before) && (!self.in_block || effect.leaves_open(before));
        self.committed |= commits;
        let tag = match () {
            () if before && commits => CommandTag::Commit,
            () if found_nothing => CommandTag::Nothing,
            () => CommandTag::Other,
        };
        self.stage = Stage::First;
        self.rows = 0;
        if !more {
            self.end();
        }
        Ok(Some(Event::Result(label, tag)))
    }

    /// An ERR packet.
    fn refused(&mut self, payload: &[u8]) -> Result<Option<Event<L>>, ProtocolError> {
        let numbered = errors::read(payload)?;
        let fatal = numbered.ends_session();
        let Numbered { error, .. } = numbered;
        let Some(head) = self.asked.front() else {
            if !fatal {
                return Err(unexpected(&format!("an error that nothing asked for: {error}")));
            }
            return Ok(Some(Event::Refused(Box::new(Refusal { label: None, error, query: 0, fatal }))));
        };
        let (label, results, what) = (head.label, head.results, head.what);
        if matches!(what, What::Prepare { execute: true }) {
            self.waiting.pop_front();
        }
        // DDL has committed what was open before it failed.
        if head.effect.commits_first() && self.in_block && !matches!(what, What::Prepare { .. }) {
            (self.in_block, self.committed) = (false, true);
        }
        // A session that is ended within a statement does not tell what became of it: it stays without an answer.
        if !fatal {
            self.end();
        }
        Ok(Some(Event::Refused(Box::new(Refusal { label: Some(label), error, query: results, fatal }))))
    }

    /// Interprets a packet as the answer to the first request.
    #[inline]
    fn answer(&mut self, payload: &[u8], reply: &mut Vec<u8>) -> Result<Option<Event<L>>, ProtocolError> {
        let first = *payload.first().ok_or_else(|| unexpected("an empty packet"))?;
        if first == 0xff && !matches!(self.stage, Stage::Columns(_) | Stage::Definitions(..)) {
            return self.refused(payload);
        }
        let Some(head) = self.asked.front().copied() else {
            return Err(unexpected("a packet where nothing was asked"));
        };
        match self.stage {
            Stage::First => self.first(head, first, payload, reply),
            Stage::Columns(left) => {
                if head.reads {
                    self.columns.push(Column::read(payload)?);
                }
                self.stage = match left {
                    1 if self.has_eof => Stage::ColumnsEnd,
                    1 => Stage::Rows,
                    n => Stage::Columns(n - 1),
                };
                if left == 1 && head.reads {
                    let names = self.columns.iter().map(|c| c.name.clone()).collect();
                    return Ok(Some(Event::Columns(head.label, names)));
                }
                Ok(None)
            }
            Stage::ColumnsEnd => {
                self.stage = Stage::Rows;
                if first == 0xfe && payload.len() < 9 {
                    Ok(None)
                } else {
                    Err(unexpected("rows without EOF before them"))
                }
            }
            Stage::Rows if first == 0xfe && payload.len() < 0xff_ffff => {
                let mut r = Reader::new(payload);
                r.u8()?;
                let status = if self.has_eof {
                    r.u16()?;
                    r.u16()?
                } else {
                    r.length()?;
                    r.length()?;
                    r.u16()?
                };
                let found_nothing = self.rows == 0;
                self.result(status, found_nothing)
            }
            Stage::Rows => {
                self.rows += 1;
                if !head.reads {
                    return Ok(None);
                }
                match head.what {
                    What::Execute => values::binary_row(payload, &self.columns, &mut self.row)?,
                    _ => values::text_row(payload, self.columns.len(), &mut self.row)?,
                }
                Ok(Some(Event::Row(head.label)))
            }
            Stage::Definitions(one, other) => self.definitions(head, one, other, reply),
        }
    }

    fn first(
        &mut self,
        head: Asked<L>,
        first: u8,
        payload: &[u8],
        reply: &mut Vec<u8>,
    ) -> Result<Option<Event<L>>, ProtocolError> {
        let mut r = Reader::new(payload);
        match (first, head.what) {
            (0, What::Prepare { .. }) => {
                r.u8()?;
                self.preparing = r.u32()?;
                let (columns, parameters) = (r.u16()?, r.u16()?);
                self.mismatch = (usize::from(parameters) != head.parameters).then_some(parameters);
                let with_eof = |n: u16| u64::from(n) + u64::from(self.has_eof && n > 0);
                self.definitions_left(head, with_eof(parameters), with_eof(columns), reply)
            }
            (0, _) => {
                r.u8()?;
                let affected = r.length()?;
                r.length()?;
                let status = r.u16()?;
                self.result(status, affected == 0 && head.counts)
            }
            // Of a load: what it is sent comes from memory, whatever file it names.
            (0xfb, What::Query) if self.offers_data => Ok(Some(Event::CopyIn(head.label))),
            (0xfb, _) => Err(unexpected("a request for a file of this machine, which nobody offered")),
            (_, What::Query | What::Execute) => {
                let columns = r.length()?;
                if columns == 0 || columns > 4096 || !r.rest().is_empty() {
                    return Err(unexpected("an answer of an unknown form"));
                }
                self.columns.clear();
                self.rows = 0;
                self.stage = Stage::Columns(columns);
                Ok(None)
            }
            _ => Err(unexpected("an answer of an unknown form")),
        }
    }

    fn definitions(
        &mut self,
        head: Asked<L>,
        one: u64,
        other: u64,
        reply: &mut Vec<u8>,
    ) -> Result<Option<Event<L>>, ProtocolError> {
        if one > 0 {
            self.definitions_left(head, one - 1, other, reply)
        } else {
            self.definitions_left(head, 0, other - 1, reply)
        }
    }

    /// A variable within quotes is no parameter, and a question mark of the script's own is one.
    fn mismatched(&mut self, head: Asked<L>, parameters: u16) -> Event<L> {
        if matches!(head.what, What::Prepare { execute: true }) {
            self.waiting.pop_front();
        }
        self.end();
        let error = ServerError {
            severity: "ERROR".into(),
            code: Some(SqlState::parse("42000")),
            message: format!(
                "the server finds {parameters} parameters where the script has {}: a variable within quotes, or a \
                 question mark? The simple protocol takes both",
                head.parameters
            ),
            ..ServerError::default()
        };
        Event::Refused(Box::new(Refusal { label: Some(head.label), error, query: 0, fatal: false }))
    }

    /// Descriptions of parameters and columns are to come, or none any more: the statement is prepared.
    fn definitions_left(
        &mut self,
        head: Asked<L>,
        one: u64,
        other: u64,
        reply: &mut Vec<u8>,
    ) -> Result<Option<Event<L>>, ProtocolError> {
        if one + other > 0 {
            self.stage = Stage::Definitions(one, other);
            return Ok(None);
        }
        self.stage = Stage::First;
        if let Some(parameters) = self.mismatch.take() {
            return Ok(Some(self.mismatched(head, parameters)));
        }
        if self.statements.len() <= head.slot {
            self.statements.resize(head.slot + 1, None);
        }
        self.statements[head.slot] = Some(self.preparing);
        if head.what == (What::Prepare { execute: false }) {
            self.end();
            return Ok(Some(Event::Prepared(head.label)));
        }
        let values = self.waiting.pop_front().unwrap_or_default();
        let mut plain = Vec::new();
        let sequence = execute(&mut plain, self.preparing, |o| o.extend_from_slice(&values));
        self.link.seal(&plain, reply)?;
        self.sequence = sequence;
        if let Some(front) = self.asked.front_mut() {
            // From here on it may have been carried out.
            (front.what, front.sequence, front.is_sent) = (What::Execute, sequence, true);
        }
        Ok(Some(Event::Prepared(head.label)))
    }
}

/// Writes COM_STMT_EXECUTE; `values` appends what follows the statement's number.
#[inline]
fn execute(out: &mut Vec<u8>, number: u32, values: impl FnOnce(&mut Vec<u8>)) -> u8 {
    packet(out, 0, |o| {
        o.push(command::STMT_EXECUTE);
        o.extend_from_slice(&number.to_le_bytes());
        values(o);
    })
}

impl<L: Copy + Send> pgdyno_protocol::Conversation<L> for Conversation<L> {
    type Config = Config;

    fn start(config: Arc<Config>, attempt: Attempt, _: &mut Vec<u8>) -> Result<Self, ProtocolError> {
        // The server speaks first.
        let offers_data = config.sends_data;
        let phase = Phase::Beginning(Box::new(Handshake::new(config, attempt)));
        Ok(Conversation { phase, offers_data, ..Conversation::default() })
    }

    fn read_notices(&mut self, _: bool) {
        // Warnings are counted in answers, and not sent.
    }

    #[inline]
    fn is_open(&self) -> bool {
        matches!(self.phase, Phase::Open)
    }

    #[inline]
    fn is_idle(&self) -> bool {
        self.asked.is_empty() && self.ended.is_none()
    }

    #[inline]
    fn is_plain(&self) -> bool {
        self.link.is_plain()
    }

    #[inline]
    fn status(&self) -> TransactionStatus {
        if self.in_block { TransactionStatus::InBlock } else { TransactionStatus::Idle }
    }

    #[inline]
    fn row(&self) -> Result<DataRow<'_>, ProtocolError> {
        DataRow::parse(&self.row)
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
        let plain_text = s.parameters == 0 && (s.effect != Effect::STATEMENT || goes_as_text(s.text));
        if sending.mode == QueryMode::Simple || plain_text {
            let reads = (s.reads, counts_rows(s.text));
            return self.query(sending.result, sending.end, s.effect, reads, out, whole);
        }
        let number = self.number_of(s.slot).filter(|_| !sending.prepare);
        let Some(number) = number else {
            let mut values = Vec::new();
            values::parameters(&mut values, s.parameters, value);
            self.waiting.push_back(values);
            return self.ask_to_prepare(s, true, sending.part, sending.end, out);
        };
        let sequence = execute(out, number, |o| values::parameters(o, s.parameters, &mut value));
        self.ask(Asked::of(s, What::Execute, sending.result, sending.end, sequence));
    }

    fn prepare(&mut self, s: &Statement<'_>, label: L, out: &mut Vec<u8>) {
        self.ask_to_prepare(s, false, label, label, out);
    }

    fn sync(&mut self, label: L, out: &mut Vec<u8>) {
        let sequence = packet(out, 0, |o| o.push(command::PING));
        self.ask(Asked::new(What::Ping, label, label, sequence));
    }

    fn command(&mut self, label: L, sql: &str, out: &mut Vec<u8>) {
        let effect = Effect::read(sql, &Lexicon::MYSQL);
        self.query(label, label, effect, (false, false), out, |o| o.extend_from_slice(sql.as_bytes()));
    }

    fn goodbye(&mut self, out: &mut Vec<u8>) {
        packet(out, 0, |o| o.push(command::QUIT));
    }

    #[inline]
    fn data(&mut self, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
        let start = out.len();
        let next = packet(out, self.sequence, write);
        if out.len() == start + 4 {
            // An empty packet is the end.
            out.truncate(start);
        } else {
            self.sequence = next;
        }
    }

    fn end_data(&mut self, out: &mut Vec<u8>) {
        self.sequence = packet(out, self.sequence, |_| {});
    }

    fn refuse_data(&mut self, _: &str, _: &mut Vec<u8>) -> bool {
        false
    }

    #[inline]
    fn mark_sent(&mut self) {
        // What waits to be prepared has not been sent to be carried out.
        for asked in self.asked.iter_mut().rev().take_while(|a| !a.is_sent) {
            asked.is_sent = true;
        }
    }

    #[inline]
    fn seal(&mut self, plain: &[u8], wire: &mut Vec<u8>) -> Result<(), ProtocolError> {
        self.link.seal(plain, wire)
    }

    fn open<'b>(
        &mut self,
        wire: &'b [u8],
        plain: &'b mut Vec<u8>,
        reply: &mut Vec<u8>,
    ) -> Result<&'b [u8], ProtocolError> {
        if self.link.is_plain() {
            return Ok(wire);
        }
        plain.clear();
        self.link.open(wire, plain, reply)?;
        if let Phase::Beginning(handshake) = &mut self.phase
            && handshake.is_opening()
        {
            if !plain.is_empty() {
                return Err(unexpected("data before the login"));
            }
            let is_ready = matches!(&self.link, Link::Tls(conn) if !conn.is_handshaking());
            if is_ready {
                handshake.opened(&mut self.link, reply)?;
            }
        }
        Ok(plain)
    }

    #[inline]
    fn next(&mut self, input: &mut &[u8], reply: &mut Vec<u8>) -> Result<Option<Event<L>>, ProtocolError> {
        if let Some(label) = self.ended.take() {
            return Ok(Some(Event::Synchronised(label)));
        }
        if let Phase::Beginning(handshake) = &mut self.phase {
            return begin(handshake, &mut self.frames, &mut self.link, input, reply).map(|begun| {
                begun.map(|(info, status, capabilities)| {
                    self.phase = Phase::Open;
                    self.in_block = status & IN_TRANSACTION != 0;
                    self.has_eof = capabilities & capability::DEPRECATE_EOF == 0;
                    Event::Began(info)
                })
            });
        }
        // The frames borrow the payload: they are put back behind it.
        let mut frames = std::mem::take(&mut self.frames);
        let result = self.next_of(&mut frames, input, reply);
        self.frames = frames;
        result
    }

    #[inline]
    fn forget_commits(&mut self) {
        self.committed = false;
    }

    fn fate(&self) -> Fate {
        let mut in_block = self.in_block;
        for asked in self.asked.iter().filter(|a| a.is_sent && matches!(a.what, What::Query | What::Execute)) {
            if asked.effect.may_commit(in_block) {
                return Fate::Unknown;
            }
            in_block = asked.effect.leaves_open(in_block);
        }
        if self.committed { Fate::Committed } else { Fate::Nothing }
    }
}

impl<L: Copy> Conversation<L> {
    #[inline]
    fn next_of(
        &mut self,
        frames: &mut Frames,
        input: &mut &[u8],
        reply: &mut Vec<u8>,
    ) -> Result<Option<Event<L>>, ProtocolError> {
        loop {
            let reads = self.asked.front().is_some_and(|a| a.reads);
            let in_rows = self.stage == Stage::Rows && !reads;
            let is_unread =
                |first: u8, length: usize| in_rows && first != 0xff && (first != 0xfe || length >= 0xff_ffff);
            match frames.take(input, &mut self.sequence, is_unread)? {
                None => return Ok(None),
                Some(Payload::Skipped) => self.rows += 1,
                Some(Payload::Whole(payload)) => {
                    if let Some(event) = self.answer(payload, reply)? {
                        return Ok(Some(event));
                    }
                }
            }
        }
    }
}

type Begun = (Box<pgdyno_protocol::SessionInfo>, u16, u32);

/// Takes the packets of a session that begins.
#[cold]
fn begin(
    handshake: &mut Handshake,
    frames: &mut Frames,
    link: &mut Link,
    input: &mut &[u8],
    reply: &mut Vec<u8>,
) -> Result<Option<Begun>, ProtocolError> {
    loop {
        if handshake.is_opening() && !input.is_empty() && link.is_plain() {
            return Err(unexpected("data behind the greeting"));
        }
        let was_greeting = handshake.awaits_greeting();
        let mut sequence = handshake.sequence;
        let outcome = match frames.take(input, &mut sequence, |_, _| false)? {
            None => {
                handshake.sequence = sequence;
                return Ok(None);
            }
            Some(Payload::Skipped) => continue,
            Some(Payload::Whole(payload)) => {
                handshake.sequence = sequence;
                handshake.packet(payload, link, reply)?
            }
        };
        // Anything behind the greeting came before TLS and could have been slipped in (as in CVE-2021-23222).
        if was_greeting && !link.is_plain() && !input.is_empty() {
            return Err(unexpected("data behind the greeting"));
        }
        if let Outcome::Began(info, status) = outcome {
            return Ok(Some((info, status, handshake.capabilities)));
        }
    }
}

fn unexpected(what: &str) -> ProtocolError {
    ProtocolError::Protocol(what.to_owned())
}

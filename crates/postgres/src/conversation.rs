//! One connection's conversation with a server: requests are queued with what answers them, bytes go in, events come
//! out. The only place where messages of a server are framed and get a meaning.
//!
//! ```text
//! Opening ----> Handshaking ----> Open: asked  [Parse] [Bind] [Execute] [Sync] [Query] ...
//!  TLS           authentication,                  |       each message must be one that its first entry expects
//!                parameters                       v
//!                                        Prepared, Row, Result, Refused, Synchronised ...
//! ```
//!
//! A message that nothing asked for, a ReadyForQuery without a result and one too many are failures of the protocol:
//! [`ProtocolError::Protocol`], never a success. Notices, parameters and notifications may come at any time.

use crate::ask::{Ask, Queue, What};
use crate::backend::{self, Message, next_message, tag};
use crate::conn::Config;
use crate::frontend;
use crate::handshake::Handshake;
use crate::opening::Opening;
use pgdyno_protocol::tls::Link;
use pgdyno_protocol::{Attempt, CommandTag, DataRow, Event, Fate, ProtocolError, Refusal, SslMode, TransactionStatus};
use std::sync::Arc;

/// No message but a row that somebody reads is larger; of a longer error or notice the rest is passed over.
const MAX_KEPT: usize = 256 * 1024;
/// Bytes of a buffer that is kept for the next message or row.
const SPARE: usize = 16 * 1024;

enum Phase {
    /// TLS is being asked for.
    Opening(Box<Opening>),
    /// Authentication, parameters.
    Handshaking(Box<Handshake>),
    /// Requests may be made.
    Open,
}

/// See the module.
pub struct Conversation<L> {
    config: Option<Arc<Config>>,
    link: Link,
    phase: Phase,
    asked: Queue<L>,
    /// Transaction status from the last ReadyForQuery.
    status: TransactionStatus,
    /// A transaction block is open behind what has been answered.
    in_block: bool,
    /// A statement was answered whose transaction the next Sync commits.
    pending: bool,
    /// A commit was confirmed since the caller has last called [`Conversation::forget_commits`].
    committed: bool,
    /// A request has failed: everything up to the next Sync is passed over by the server.
    failed: bool,
    notices: bool,
    /// The server is told the kinds of values.
    tells_kinds: bool,
    /// The beginning of a message whose end has not arrived.
    partial: Vec<u8>,
    /// Bytes of a message that nobody reads and that are still to come.
    skip: usize,
    row: Vec<u8>,
}

impl<L: Copy> Default for Conversation<L> {
    /// One that has not begun: nothing is said, and nothing is understood.
    fn default() -> Self {
        Conversation {
            config: None,
            link: Link::Plain,
            phase: Phase::Open,
            asked: Queue::default(),
            status: TransactionStatus::Idle,
            in_block: false,
            pending: false,
            committed: false,
            failed: false,
            notices: false,
            tells_kinds: false,
            partial: Vec::new(),
            skip: 0,
            row: Vec::new(),
        }
    }
}

impl<L: Copy> Conversation<L> {
    /// Begins; what must be sent first is appended to `out`.
    pub fn start(config: Arc<Config>, attempt: Attempt, out: &mut Vec<u8>) -> Result<Conversation<L>, ProtocolError> {
        let mut this = Conversation::default();
        this.phase = match attempt {
            Attempt::Encrypted => {
                let may_be_clear = matches!(config.ssl_mode, SslMode::Prefer | SslMode::Allow);
                Phase::Opening(Box::new(Opening::start(config.clone(), may_be_clear, out)))
            }
            Attempt::Clear => Phase::Handshaking(Box::new(Handshake::start(config.clone(), &mut this.link, out)?)),
        };
        this.tells_kinds = config.tells_kinds;
        this.config = Some(config);
        Ok(this)
    }

    /// Returns true if the server is told the kinds of values.
    #[inline]
    pub fn tells_kinds(&self) -> bool {
        self.tells_kinds
    }

    /// Notices become events; by default they are passed over.
    pub fn read_notices(&mut self, read: bool) {
        self.notices = read;
    }

    /// The session has begun.
    pub fn is_open(&self) -> bool {
        matches!(self.phase, Phase::Open)
    }

    /// Everything that was asked is answered.
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.asked.is_empty() && !self.failed
    }

    /// Returns true if bytes pass to and from the socket unchanged.
    #[inline]
    pub fn is_plain(&self) -> bool {
        self.link.is_plain()
    }

    /// The transaction's status as of the last ReadyForQuery.
    #[inline]
    pub fn status(&self) -> TransactionStatus {
        self.status
    }

    /// The values of the last row that was read; `None` is NULL.
    #[inline]
    pub fn row(&self) -> Result<DataRow<'_>, ProtocolError> {
        DataRow::parse(&self.row)
    }

    /// Bytes that are kept for messages and rows.
    pub fn memory(&self) -> usize {
        self.partial.capacity() + self.row.capacity()
    }

    // ------------------------------------------------------------ what is sent

    /// Makes requests, called `label`; their messages are appended to `out`.
    #[inline]
    pub fn ask<'a>(&'a mut self, label: L, out: &'a mut Vec<u8>) -> Ask<'a, L> {
        Ask { asked: &mut self.asked, out, label }
    }

    /// Marks all requests so far as sent, at least in part: they may have reached the server.
    #[inline]
    pub fn mark_sent(&mut self) {
        self.asked.mark_sent();
    }

    /// Appends to `wire` what must be sent so that the server reads `plain`.
    pub fn seal(&mut self, plain: &[u8], wire: &mut Vec<u8>) -> Result<(), ProtocolError> {
        self.link.seal(plain, wire)
    }

    /// Forgets the commits so far: [`Conversation::fate`] reports only on what follows.
    #[inline]
    pub fn forget_commits(&mut self) {
        self.committed = false;
    }

    /// Refuses the COPY data that a statement wants.
    pub fn refuse_copy(&mut self, reason: &str, out: &mut Vec<u8>) {
        frontend::copy_fail(out, reason);
        // While it copies the server passes over a Sync; this one takes its place.
        if self.asked.front().is_some_and(|a| a.what == What::Execute) {
            frontend::sync(out);
        }
    }

    // ------------------------------------------------------------ what arrives

    /// Takes what arrived from the socket: what it says in the clear, for [`Conversation::next`]. What must be sent back
    /// is appended to `reply`, also where this fails.
    #[inline]
    pub fn open<'b>(
        &mut self,
        wire: &'b [u8],
        plain: &'b mut Vec<u8>,
        reply: &mut Vec<u8>,
    ) -> Result<&'b [u8], ProtocolError> {
        if let Phase::Opening(opening) = &mut self.phase {
            let Some(rest) = opening.feed(&mut self.link, wire, plain, reply)? else { return Ok(&[]) };
            let config = self.config.clone().ok_or_else(|| unexpected("data before the beginning"))?;
            self.phase = Phase::Handshaking(Box::new(Handshake::start(config, &mut self.link, reply)?));
            return Ok(rest);
        }
        if self.link.is_plain() {
            return Ok(wire);
        }
        plain.clear();
        self.link.open(wire, plain, reply)?;
        Ok(plain)
    }

    /// The next event of `input`, which [`Conversation::open`] gave; `None` when all of it is taken. What must be sent
    /// back is appended to `reply`.
    // Inlined, so that what the caller does follows what was answered at once.
    #[inline(always)]
    pub fn next(&mut self, input: &mut &[u8], reply: &mut Vec<u8>) -> Result<Option<Event<L>>, ProtocolError> {
        if self.skip == 0 && self.partial.is_empty() && self.is_open() {
            let mut rest = *input;
            while let Some((message, length)) = next_message(rest)? {
                rest = &rest[length..];
                if let Some(event) = self.answer(message)? {
                    *input = rest;
                    return Ok(Some(event));
                }
            }
            *input = rest;
            if rest.is_empty() {
                return Ok(None);
            }
        }
        self.next_of_parts(input, reply)
    }

    /// Returns the next event like `next`, for messages that arrive in parts and before the session is open.
    #[cold]
    #[inline(never)]
    fn next_of_parts(&mut self, input: &mut &[u8], reply: &mut Vec<u8>) -> Result<Option<Event<L>>, ProtocolError> {
        loop {
            if self.skip == 0 && self.partial.is_empty() {
                let Some((message, length)) = next_message(input)? else {
                    if !self.begin_partial(input, reply)? {
                        return Ok(None);
                    }
                    continue;
                };
                *input = &input[length..];
                if let Some(event) = self.message(message, reply)? {
                    return Ok(Some(event));
                }
            } else if self.skip > 0 {
                let n = self.skip.min(input.len());
                *input = &input[n..];
                self.skip -= n;
                if self.skip > 0 {
                    return Ok(None);
                }
            } else {
                match self.go_on(input, reply)? {
                    Some(found @ Some(_)) => return Ok(found),
                    Some(None) => {}
                    None => return Ok(None),
                }
            }
        }
    }

    /// `input` ends within a message. False: what there is of it is kept, wait for more. True: nobody reads it, and it
    /// is passed over as it comes.
    fn begin_partial(&mut self, input: &mut &[u8], reply: &mut Vec<u8>) -> Result<bool, ProtocolError> {
        if let Some((tag, total)) = header(input) {
            if self.is_unread(tag) {
                self.message(Message { tag, body: &[] }, reply)?;
                self.skip = total - input.len();
                *input = &[];
                return Ok(true);
            }
            self.refuse_large(tag, total)?;
        }
        self.partial.extend_from_slice(input);
        *input = &[];
        Ok(false)
    }

    /// Adds to the message that is kept. `None`: all of `input` is taken and it is not complete.
    fn go_on(&mut self, input: &mut &[u8], reply: &mut Vec<u8>) -> Result<Option<Option<Event<L>>>, ProtocolError> {
        let knows = header(&self.partial).is_some();
        let (tag, total) = loop {
            if let Some(found) = header(&self.partial) {
                break found;
            }
            let Some((first, rest)) = input.split_first() else { return Ok(None) };
            self.partial.push(*first);
            *input = rest;
        };
        if !knows {
            // Refuses a length that cannot be.
            next_message(&self.partial)?;
            if self.is_unread(tag) {
                self.partial.clear();
                self.skip = total - 5;
                return Ok(Some(self.message(Message { tag, body: &[] }, reply)?));
            }
            self.refuse_large(tag, total)?;
        }
        // Half an error is better than none.
        let wanted = if matches!(tag, tag::ERROR | tag::NOTICE) { total.min(MAX_KEPT) } else { total };
        let n = (wanted - self.partial.len()).min(input.len());
        self.partial.extend_from_slice(&input[..n]);
        *input = &input[n..];
        if self.partial.len() < wanted {
            return Ok(None);
        }
        let mut whole = std::mem::take(&mut self.partial);
        self.skip = total - wanted;
        let event = self.message(Message { tag, body: &whole[5..] }, reply)?;
        if whole.capacity() <= SPARE {
            whole.clear();
            self.partial = whole;
        }
        Ok(Some(event))
    }

    /// Messages whose body nobody reads: rows, mostly, of which there may be any number of any size.
    fn is_unread(&self, tag: u8) -> bool {
        match tag {
            tag::DATA_ROW => !self.asked.front().is_some_and(|a| a.reads),
            tag::ROW_DESCRIPTION => !self.asked.front().is_some_and(|a| a.reads),
            tag::COPY_DATA | tag::COPY_DONE => true,
            tag::NOTICE => !self.notices && self.is_open(),
            tag::NOTIFICATION => true,
            _ => false,
        }
    }

    fn refuse_large(&self, tag: u8, total: usize) -> Result<(), ProtocolError> {
        let may_be = matches!(tag, tag::DATA_ROW | tag::ROW_DESCRIPTION | tag::ERROR | tag::NOTICE);
        if total > MAX_KEPT && !(may_be && self.is_open()) {
            return Err(unexpected(&format!("a message '{}' of {total} bytes", tag as char)));
        }
        Ok(())
    }

    fn message(&mut self, message: Message<'_>, reply: &mut Vec<u8>) -> Result<Option<Event<L>>, ProtocolError> {
        match &mut self.phase {
            Phase::Open => self.answer(message),
            Phase::Handshaking(handshake) => {
                let begun = handshake.message(message, &mut self.link, reply)?;
                if begun.is_some() {
                    self.phase = Phase::Open;
                }
                Ok(begun.map(Event::Began))
            }
            Phase::Opening(_) => Err(unexpected("a message before TLS")),
        }
    }

    /// Interprets a message as the answer to the first unanswered request.
    #[inline(always)]
    fn answer(&mut self, message: Message<'_>) -> Result<Option<Event<L>>, ProtocolError> {
        let Some(head) = self.asked.front_mut() else { return self.unasked(message) };
        match (message.tag, head.what) {
            (tag::BIND_COMPLETE, What::Bind) => {
                self.asked.pop_front();
                Ok(None)
            }
            (tag::DATA_ROW, What::Execute | What::Query)
                if !head.copying && (head.what == What::Execute || head.described) =>
            {
                if !head.reads {
                    return Ok(None);
                }
                let label = head.label;
                if self.row.capacity() > SPARE && message.body.len() <= SPARE {
                    self.row = Vec::new();
                }
                self.row.clear();
                self.row.extend_from_slice(message.body);
                Ok(Some(Event::Row(label)))
            }
            (tag::COMMAND_COMPLETE | tag::EMPTY_QUERY, What::Execute) => {
                let (label, effect, in_block) = (head.label, head.effect, self.in_block);
                self.asked.pop_front();
                let found = backend::command_tag(message.body);
                self.in_block = effect.leaves_open(in_block);
                self.committed |= found == CommandTag::Commit;
                // Outside a block it is the Sync that commits.
                // COMMIT and ROLLBACK also end the transaction that a pipeline has without BEGIN.
                self.pending = found.is_within() && (self.pending || effect.may_commit(in_block));
                Ok(Some(Event::Result(label, found)))
            }
            (tag::COMMAND_COMPLETE | tag::EMPTY_QUERY, What::Query) if !head.failed => {
                head.results = head.results.saturating_add(1);
                head.described = false;
                head.copying = false;
                let found = backend::command_tag(message.body);
                let whole = head.effect.is_answered_by(u32::from(head.results));
                // Of the last statement the server says so when its transaction is committed.
                let last = whole && found != CommandTag::Rollback && head.effect.may_commit(self.in_block);
                self.committed |= found == CommandTag::Commit || last;
                if whole {
                    self.in_block = head.effect.leaves_open(self.in_block);
                }
                Ok(Some(Event::Result(head.label, found)))
            }
            (tag::READY_FOR_QUERY, What::Sync | What::Query)
                if head.what == What::Sync || head.results > 0 || head.failed =>
            {
                let label = head.label;
                self.synchronised(label, message.body)
            }
            (tag::PARSE_COMPLETE, What::Parse) => {
                let label = head.label;
                self.asked.pop_front();
                Ok(Some(Event::Prepared(label)))
            }
            (tag::ROW_DESCRIPTION, What::Describe) => {
                let (label, reads) = (head.label, head.reads);
                self.asked.pop_front();
                columns(label, reads, message.body)
            }
            (tag::NO_DATA, What::Describe) => {
                self.asked.pop_front();
                Ok(None)
            }
            (tag::ROW_DESCRIPTION, What::Query) if !head.failed && !head.copying => {
                head.described = true;
                columns(head.label, head.reads, message.body)
            }
            (tag::COPY_IN_RESPONSE, What::Query | What::Execute) if !head.failed => {
                head.copying = true;
                Ok(Some(Event::CopyIn(head.label)))
            }
            (tag::COPY_OUT_RESPONSE, What::Query | What::Execute) if !head.failed => {
                head.copying = true;
                Ok(Some(Event::CopyOut(head.label)))
            }
            (tag::COPY_DATA | tag::COPY_DONE, _) if head.copying => Ok(None),
            (tag::ERROR, _) if !self.failed && !head.failed => {
                let error = backend::server_error(message.body);
                let query = if head.what == What::Sync { 1 } else { u32::from(head.results) };
                let refusal = Refusal::new(Some(head.label), error, query);
                if !proves_rollback(&refusal) {
                    // What was asked stays without an answer.
                    return Ok(Some(Event::Refused(Box::new(refusal))));
                }
                head.failed = true;
                head.copying = false;
                self.pending = false;
                // A COMMIT that is refused ends its block as well.
                self.in_block &= !(head.what == What::Execute && head.effect.may_commit(true));
                if head.what != What::Query {
                    self.failed = true;
                    self.pass_over();
                }
                Ok(Some(Event::Refused(Box::new(refusal))))
            }
            _ => self.unasked(message),
        }
    }

    #[cold]
    #[inline(never)]
    /// A message that no request waits for: something that may come at any time, or a failure of the protocol.
    fn unasked(&mut self, message: Message<'_>) -> Result<Option<Event<L>>, ProtocolError> {
        match message.tag {
            tag::READY_FOR_QUERY if self.failed && self.asked.front().is_some_and(|a| a.what != What::Sync) => {
                // Of a pipeline that is sent in parts: what was asked behind the error was passed over as well.
                self.pass_over();
                self.answer(message)
            }
            tag::PARAMETER_STATUS => backend::parameter_status(message.body).map(|_| None),
            tag::NOTIFICATION => Ok(None),
            tag::NOTICE if self.notices => Ok(Some(Event::Notice(Box::new(backend::server_error(message.body))))),
            tag::NOTICE => Ok(None),
            tag::ERROR => {
                // The server ends a session when it likes; any other error must be an answer.
                let refusal = Refusal::new(None, backend::server_error(message.body), 0);
                if !refusal.fatal {
                    return Err(unexpected(&format!("an error that nothing asked for: {}", refusal.error)));
                }
                Ok(Some(Event::Refused(Box::new(refusal))))
            }
            other => {
                let awaited = match self.asked.front().map(|a| (a.what, a.results + u16::from(a.failed))) {
                    None => "nothing was asked",
                    Some((What::Query, 0)) => "a result was awaited",
                    Some((What::Sync | What::Query, _)) => "ReadyForQuery was awaited",
                    Some(_) => "the answer to a statement was awaited",
                };
                let name = backend::name_of(other).map_or_else(|| format!("message '{}'", other as char), String::from);
                Err(unexpected(&format!("{name} where {awaited}")))
            }
        }
    }

    #[inline]
    fn synchronised(&mut self, label: L, body: &[u8]) -> Result<Option<Event<L>>, ProtocolError> {
        self.status = backend::ready_for_query(body)?;
        self.in_block = self.status != TransactionStatus::Idle;
        self.committed |= self.pending && self.status == TransactionStatus::Idle;
        (self.pending, self.failed) = (false, false);
        self.asked.pop_front();
        Ok(Some(Event::Synchronised(label)))
    }

    /// The server passes over everything up to the next Sync.
    fn pass_over(&mut self) {
        while self.asked.front().is_some_and(|a| a.what != What::Sync) {
            self.asked.pop_front();
        }
    }

    /// Returns the outcome that a loss of the connection now would leave open. It depends on the requests sent and the
    /// answers received.
    pub fn fate(&self) -> Fate {
        let sent = || self.asked.sent();
        if self.pending && sent().any(|a| a.what == What::Sync) {
            return Fate::Unknown;
        }
        let mut in_block = self.in_block;
        // What stands before the Sync that ends a failure is passed over.
        let sent = || sent().skip_while(|a| self.failed && a.what != What::Sync);
        for asked in sent().filter(|a| matches!(a.what, What::Execute | What::Query) && !a.failed) {
            if asked.what == What::Query && asked.effect.is_answered_by(u32::from(asked.results)) {
                continue;
            }
            if asked.effect.may_commit(in_block) {
                return Fate::Unknown;
            }
            in_block = asked.effect.leaves_open(in_block);
        }
        if self.committed { Fate::Committed } else { Fate::Nothing }
    }
}

/// Tag and whole length of the message that `bytes` begin with, once they are there.
fn header(bytes: &[u8]) -> Option<(u8, usize)> {
    let header = bytes.first_chunk::<5>()?;
    Some((header[0], 1 + u32::from_be_bytes([header[1], header[2], header[3], header[4]]) as usize))
}

fn columns<L>(label: L, reads: bool, body: &[u8]) -> Result<Option<Event<L>>, ProtocolError> {
    if reads { backend::column_names(body).map(|names| Some(Event::Columns(label, names))) } else { Ok(None) }
}

fn unexpected(what: &str) -> ProtocolError {
    ProtocolError::Protocol(what.to_owned())
}

/// Returns true if the request has certainly changed nothing.
///
/// An ERROR proves this. A session can also end during a commit: by PANIC, by an I/O error, or by a pooler's
/// message about a lost server. Only a shutdown, a dropped database and a timeout are known to be safe. PostgreSQL
/// checks for them before it commits, not during the commit.
fn proves_rollback<L>(refusal: &Refusal<L>) -> bool {
    let code = refusal.error.state().0;
    !refusal.fatal
        || (refusal.error.severity == "FATAL" && matches!(&code, b"57P01" | b"57P04" | b"57P05" | b"25P03" | b"25P04"))
}

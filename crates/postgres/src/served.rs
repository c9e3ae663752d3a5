//! The server's side of the protocol, without sockets: for programs that carry statements out in another way than a
//! PostgreSQL server does.
//!
//! ```text
//! bytes --> feed --> work: Begin, Group, End   the caller carries the statements of a group out, in order
//!           take <-- began; result or failed for each statement, then end_group
//! ```
//!
//! A group is what the client awaits together: one text, or statements up to a Sync. The statements behind one that failed
//! are not carried out. Statements are numbered by their texts.

use crate::backend::tag;
use crate::frontend::message;
use pgdyno_protocol::{Effect, Given, Lexicon, ProtocolError, QueryMode};
use std::collections::{HashMap, VecDeque};

/// Larger messages than this are taken for noise.
const MAX_LENGTH: usize = 1 << 26;
/// Code of a CancelRequest, and of an SSLRequest.
const CANCEL: u32 = 80_877_102;
const SSL: u32 = 80_877_103;

/// A statement to carry out.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// Number of its text, see [`Served::text`].
    pub statement: usize,
    /// Way in which it was sent: text with its values in it, parsed each time, or once.
    pub mode: QueryMode,
    /// Its values, with their kinds.
    pub values: Vec<(Given, Vec<u8>)>,
    /// Its rows are read.
    pub reads: bool,
}

/// Number of a text with its values in it: only the last one is kept, because each may be another one.
pub const WHOLE: usize = usize::MAX;

/// Something that the client asks for.
#[derive(Clone, Debug, PartialEq)]
pub enum Work {
    /// A session, to be answered by `began` or `failed`.
    Begin,
    /// Statements, to be answered one by one and by `end_group`.
    Group(Vec<Run>),
    /// The end of the session.
    End,
}

/// A statement that is not answered yet.
struct Waiting {
    /// Answers that stand before its result.
    before: Vec<u8>,
    statement: usize,
    /// Its columns are to be named.
    names: bool,
    /// It has named them.
    is_named: bool,
    /// It came as text, which is described by its results alone.
    is_simple: bool,
    /// Its rows are read.
    reads: bool,
}

/// One session.
pub struct Served {
    input: Vec<u8>,
    read: usize,
    out: Vec<u8>,
    started: bool,
    /// Numbers of texts, texts and effects by number, and numbers by name.
    numbers: HashMap<Box<str>, usize>,
    texts: Vec<(Box<str>, Effect)>,
    whole: (String, Effect),
    named: HashMap<Box<str>, usize>,
    bound: Option<Run>,
    names: bool,
    before: Vec<u8>,
    runs: Vec<Run>,
    waiting: VecDeque<Waiting>,
    in_block: bool,
    is_aborted: bool,
}

impl Default for Served {
    fn default() -> Self {
        Served::new()
    }
}

impl Served {
    /// A session whose client has not said anything.
    pub fn new() -> Served {
        Served {
            input: Vec::new(),
            read: 0,
            out: Vec::new(),
            started: false,
            numbers: HashMap::new(),
            texts: Vec::new(),
            whole: (String::new(), Effect::STATEMENT),
            named: HashMap::new(),
            bound: None,
            names: false,
            before: Vec::new(),
            runs: Vec::new(),
            waiting: VecDeque::new(),
            in_block: false,
            is_aborted: false,
        }
    }

    /// Takes bytes that arrived.
    pub fn feed(&mut self, bytes: &[u8]) {
        if self.read == self.input.len() {
            self.input.clear();
            self.read = 0;
        }
        self.input.extend_from_slice(bytes);
    }

    /// Returns what is to be sent.
    pub fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out)
    }

    /// Returns the text of a statement.
    pub fn text(&self, statement: usize) -> Option<&str> {
        match statement {
            WHOLE => Some(&self.whole.0),
            n => self.texts.get(n).map(|(text, _)| &**text),
        }
    }

    fn effect(&self, statement: usize) -> Effect {
        if statement == WHOLE { self.whole.1 } else { self.texts[statement].1 }
    }

    /// Returns the next request, or `None` until more has arrived.
    pub fn work(&mut self) -> Result<Option<Work>, ProtocolError> {
        loop {
            let header = usize::from(self.started);
            let rest = &self.input[self.read..];
            let Some(length) = rest.get(header..header + 4) else { return Ok(None) };
            let length = u32::from_be_bytes([length[0], length[1], length[2], length[3]]) as usize;
            if !(4..=MAX_LENGTH).contains(&length) {
                return Err(unexpected("a message of an impossible length"));
            }
            let Some(message) = rest.get(..header + length) else { return Ok(None) };
            // The buffer is put back behind the message.
            let message = message.to_vec();
            self.read += message.len();
            let work = match self.started {
                true => self.request(message[0], &message[5..])?,
                false => self.startup(&message[4..])?,
            };
            if work.is_some() {
                return Ok(work);
            }
        }
    }

    fn startup(&mut self, body: &[u8]) -> Result<Option<Work>, ProtocolError> {
        match body.first_chunk().map(|b| u32::from_be_bytes(*b)) {
            Some(SSL) => self.out.push(b'N'),
            Some(CANCEL) => return Ok(Some(Work::End)),
            Some(code) if code >> 16 == 3 => {
                self.started = true;
                return Ok(Some(Work::Begin));
            }
            _ => return Err(unexpected("a startup of an unknown form")),
        }
        Ok(None)
    }

    fn request(&mut self, kind: u8, body: &[u8]) -> Result<Option<Work>, ProtocolError> {
        let mut r = Body(body);
        match kind {
            b'X' => return Ok(Some(Work::End)),
            b'S' => return Ok(Some(Work::Group(std::mem::take(&mut self.runs)))),
            b'Q' => {
                let text = r.text()?;
                self.whole = (text.to_owned(), Effect::read(text, &Lexicon::POSTGRES));
                self.wait(WHOLE, true, true, true);
                let run = Run { statement: WHOLE, mode: QueryMode::Simple, values: Vec::new(), reads: true };
                return Ok(Some(Work::Group(vec![run])));
            }
            b'P' => {
                let name = r.text()?;
                let number = self.number(r.text()?);
                self.named.insert(name.into(), number);
                message(&mut self.before, tag::PARSE_COMPLETE, |_| {});
            }
            b'B' => {
                r.text()?;
                let name = r.text()?;
                let Some(&statement) = self.named.get(name) else {
                    return Err(unexpected("a statement that was not parsed"));
                };
                let kinds: Vec<Given> = (0..r.u16()?).map(|_| r.u16().map(given)).collect::<Result<_, _>>()?;
                let mut values = Vec::new();
                for n in 0..usize::from(r.u16()?) {
                    let value = r.value()?;
                    let kind = if value.is_none() { Given::Null } else { kinds.get(n).copied().unwrap_or(Given::Text) };
                    values.push((kind, value.unwrap_or_default().to_vec()));
                }
                let mode = if name.is_empty() { QueryMode::Extended } else { QueryMode::Prepared };
                let reads = r.u16()? > 0;
                self.bound = Some(Run { statement, mode, values, reads });
                message(&mut self.before, tag::BIND_COMPLETE, |_| {});
            }
            b'D' => self.names = true,
            b'E' => {
                let run = self.bound.take().ok_or_else(|| unexpected("an Execute of nothing"))?;
                let names = std::mem::take(&mut self.names);
                self.wait(run.statement, names, false, run.reads);
                self.runs.push(run);
            }
            _ => return Err(unexpected("a request of an unknown kind")),
        }
        Ok(None)
    }

    fn wait(&mut self, statement: usize, names: bool, is_simple: bool, reads: bool) {
        let before = std::mem::take(&mut self.before);
        self.waiting.push_back(Waiting { before, statement, names, is_named: false, is_simple, reads });
    }

    fn number(&mut self, text: &str) -> usize {
        if let Some(&known) = self.numbers.get(text) {
            return known;
        }
        let number = self.texts.len();
        self.texts.push((text.into(), Effect::read(text, &Lexicon::POSTGRES)));
        self.numbers.insert(text.into(), number);
        number
    }

    /// Answers that the session has begun.
    pub fn began(&mut self, version: &str, process: u32) {
        message(&mut self.out, tag::AUTHENTICATION, |o| o.extend_from_slice(&[0; 4]));
        message(&mut self.out, tag::PARAMETER_STATUS, |o| {
            o.extend_from_slice(b"server_version\0");
            cstr(o, version);
        });
        message(&mut self.out, tag::BACKEND_KEY_DATA, |o| {
            o.extend_from_slice(&process.to_be_bytes());
            o.extend_from_slice(&[0; 4]);
        });
        self.ready();
    }

    /// Answers with a result of the first statement that waits: its columns where it has rows, its rows, which `rows`
    /// appends, and its tag. A text with several statements has several results; the last one is told by `is_last`.
    pub fn result<E>(
        &mut self,
        columns: Option<&[String]>,
        tag_text: &str,
        is_last: bool,
        rows: impl FnOnce(&mut Rows<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let Some(head) = self.waiting.front_mut() else { return Ok(()) };
        self.out.append(&mut head.before);
        match columns {
            Some(columns) if head.names => message(&mut self.out, tag::ROW_DESCRIPTION, |o| {
                o.extend_from_slice(&(columns.len() as u16).to_be_bytes());
                for name in columns {
                    cstr(o, name);
                    // Its table and its number in it; the type text, of any length; no modifier; as text.
                    o.extend_from_slice(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 25, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0]);
                }
            }),
            None if head.names && !head.is_named && !head.is_simple => message(&mut self.out, tag::NO_DATA, |_| {}),
            _ => {}
        }
        head.is_named = true;
        let statement = head.statement;
        if head.reads || head.names {
            rows(&mut Rows { out: &mut self.out })?;
        }
        message(&mut self.out, tag::COMMAND_COMPLETE, |o| cstr(o, tag_text));
        if is_last {
            self.waiting.pop_front();
            let effect = self.effect(statement);
            // COMMIT of a transaction that failed is answered by ROLLBACK.
            self.in_block = effect.leaves_open(self.in_block);
            self.is_aborted &= self.in_block;
        }
        Ok(())
    }

    /// Answers that a statement, or the beginning of the session, failed; `is_fatal`: the session ends.
    pub fn failed(&mut self, code: &str, text: &str, is_fatal: bool) {
        if let Some(head) = self.waiting.front_mut() {
            self.out.append(&mut head.before);
        }
        self.waiting.clear();
        self.before.clear();
        let severity = if is_fatal { "FATAL" } else { "ERROR" };
        message(&mut self.out, tag::ERROR, |o| {
            for (field, value) in [(b'S', severity), (b'V', severity), (b'C', code), (b'M', text)] {
                o.push(field);
                cstr(o, value);
            }
            o.push(0);
        });
        self.is_aborted = self.in_block;
    }

    /// Ends a group. `status` is the driver's own word on its transaction, where it has one: b'I', b'T' or b'E'.
    pub fn end_group(&mut self, status: Option<u8>) {
        self.out.append(&mut self.before);
        if let Some(status) = status {
            (self.in_block, self.is_aborted) = (status != b'I', status == b'E');
        }
        self.ready();
    }

    fn ready(&mut self) {
        let status = match (self.in_block, self.is_aborted) {
            (false, _) => b'I',
            (true, false) => b'T',
            (true, true) => b'E',
        };
        message(&mut self.out, tag::READY_FOR_QUERY, |o| o.push(status));
    }
}

/// Appends rows to a result.
pub struct Rows<'a> {
    out: &'a mut Vec<u8>,
}

impl Rows<'_> {
    /// Appends a row of `columns` values; `write` appends value `n` as text, or returns false for NULL.
    pub fn row<E>(
        &mut self,
        columns: usize,
        mut write: impl FnMut(usize, &mut Vec<u8>) -> Result<bool, E>,
    ) -> Result<(), E> {
        let mut outcome = Ok(());
        message(self.out, tag::DATA_ROW, |o| {
            o.extend_from_slice(&(columns as u16).to_be_bytes());
            for n in 0..columns {
                let start = o.len();
                o.extend_from_slice(&[0xff; 4]);
                match write(n, o) {
                    Ok(true) => {
                        let length = (o.len() - start - 4) as u32;
                        o[start..start + 4].copy_from_slice(&length.to_be_bytes());
                    }
                    Ok(false) => o.truncate(start + 4),
                    Err(e) => {
                        o.truncate(start + 4);
                        outcome = Err(e);
                    }
                }
            }
        });
        outcome
    }
}

/// Kind of a value by its format code, in which [`crate::frontend::bind_of_kinds`] tells it.
fn given(code: u16) -> Given {
    match code {
        2 => Given::Boolean,
        3 => Given::Integer,
        4 => Given::Double,
        _ => Given::Text,
    }
}

/// Appends a text and its end; a zero within it would end it earlier.
fn cstr(out: &mut Vec<u8>, text: &str) {
    out.extend(text.bytes().filter(|b| *b != 0));
    out.push(0);
}

fn unexpected(what: &str) -> ProtocolError {
    ProtocolError::Protocol(what.to_owned())
}

/// Reads the body of a message.
struct Body<'a>(&'a [u8]);

impl<'a> Body<'a> {
    fn bytes(&mut self, n: usize) -> Result<&'a [u8], ProtocolError> {
        let (head, rest) = self.0.split_at_checked(n).ok_or_else(|| unexpected("a message that is cut off"))?;
        self.0 = rest;
        Ok(head)
    }

    fn u16(&mut self) -> Result<u16, ProtocolError> {
        self.bytes(2).map(|b| u16::from_be_bytes([b[0], b[1]]))
    }

    fn value(&mut self) -> Result<Option<&'a [u8]>, ProtocolError> {
        let b = self.bytes(4)?;
        let length = i32::from_be_bytes([b[0], b[1], b[2], b[3]]);
        usize::try_from(length).ok().map(|n| self.bytes(n)).transpose()
    }

    fn text(&mut self) -> Result<&'a str, ProtocolError> {
        let end = self.0.iter().position(|b| *b == 0).ok_or_else(|| unexpected("a text without an end"))?;
        let text = std::str::from_utf8(&self.0[..end]).map_err(|_| unexpected("a text that is not UTF-8"))?;
        self.0 = &self.0[end + 1..];
        Ok(text)
    }
}

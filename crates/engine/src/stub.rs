//! A server that speaks the protocol and does nothing: for the simulator, for tests over real sockets, and for
//! benchmarks of the client alone. Bytes in, replies out; no sockets and no clock, so that what carries it decides how
//! long an answer takes.

use pgdyno_protocol::Effect;

/// Complete request of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// The session was begun.
    Startup,
    /// Statements up to a Sync, or a Query; the answer to them.
    Statements,
    /// The client says goodbye.
    Terminate,
    /// A CancelRequest, with the process id that it names.
    Cancel(u32),
}

/// One answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// To what.
    pub request: Request,
    /// The bytes to send.
    pub bytes: Vec<u8>,
}

/// A RowDescription: one column "a" of type int4.
const COLUMN: &[u8] = b"\0\x01a\0\0\0\0\0\0\0\0\0\0\x17\0\x04\xff\xff\xff\xff\0\0";

/// The server's side of one connection.
#[derive(Clone, Debug, Default)]
pub struct StubSession {
    input: Vec<u8>,
    started: bool,
    in_block: bool,
    answer: Vec<u8>,
    copies_in: bool,
    /// The first Execute of each part is refused at once, with this code, and the rest up to Sync passed over.
    pub early_error: Option<&'static str>,
    skipping: bool,
    /// Process id that BackendKeyData names.
    pub process: u32,
}

fn starts(text: &[u8], word: &[u8]) -> bool {
    text.get(..word.len()).is_some_and(|w| w.eq_ignore_ascii_case(word))
}

fn message(out: &mut Vec<u8>, tag: u8, body: &[u8]) {
    out.push(tag);
    out.extend_from_slice(&(body.len() as u32 + 4).to_be_bytes());
    out.extend_from_slice(body);
}

/// The bytes of an ErrorResponse.
pub fn error_response(severity: &str, code: &str, text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    message(&mut out, b'E', format!("S{severity}\0V{severity}\0C{code}\0M{text}\0\0").as_bytes());
    out
}

impl StubSession {
    /// A connection just accepted; `process` is its backend's id.
    pub fn new(process: u32) -> StubSession {
        StubSession { process, ..StubSession::default() }
    }

    /// Takes bytes; returns the answers to what is complete.
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<Reply> {
        self.input.extend_from_slice(bytes);
        let mut replies = Vec::new();
        while let Some(reply) = self.next() {
            replies.extend(reply);
        }
        replies
    }

    /// Takes one message: `None` when none is complete, `Some(None)` when it needs no answer yet.
    fn next(&mut self) -> Option<Option<Reply>> {
        let header = if self.started { 1 } else { 0 };
        let length = u32::from_be_bytes(self.input.get(header..header + 4)?.try_into().ok()?) as usize;
        if self.input.len() < header + length {
            return None;
        }
        let message: Vec<u8> = self.input.drain(..header + length).collect();
        Some(if self.started { self.request(message[0], &message[5..]) } else { self.startup(&message[4..]) })
    }

    fn startup(&mut self, body: &[u8]) -> Option<Reply> {
        let code = u32::from_be_bytes(body.first_chunk().copied().unwrap_or_default());
        match code {
            80_877_103 => return Some(Reply { request: Request::Startup, bytes: b"N".to_vec() }),
            80_877_102 => {
                let process = u32::from_be_bytes(body[4..8].try_into().unwrap_or_default());
                return Some(Reply { request: Request::Cancel(process), bytes: Vec::new() });
            }
            _ => {}
        }
        self.started = true;
        let mut out = Vec::new();
        message(&mut out, b'R', &[0; 4]);
        message(&mut out, b'S', b"server_version\x0018.0 (stub)\0");
        let mut key = self.process.to_be_bytes().to_vec();
        key.extend_from_slice(&[1, 2, 3, 4]);
        message(&mut out, b'K', &key);
        message(&mut out, b'Z', b"I");
        Some(Reply { request: Request::Startup, bytes: out })
    }

    fn request(&mut self, tag: u8, body: &[u8]) -> Option<Reply> {
        match (tag, self.early_error) {
            (b'S', _) => self.skipping = false,
            (_, Some(_)) if self.skipping => return None,
            (b'E', Some(code)) => {
                self.skipping = true;
                self.answer.extend(error_response("ERROR", code, "at once"));
                return Some(Reply { request: Request::Statements, bytes: std::mem::take(&mut self.answer) });
            }
            _ => {}
        }
        match tag {
            b'P' => {
                let sql = body.split(|b| *b == 0).nth(1).unwrap_or_default();
                self.track(sql);
                message(&mut self.answer, b'1', &[]);
            }
            b'B' => message(&mut self.answer, b'2', &[]),
            b'D' => {
                if body.first() == Some(&b'S') {
                    message(&mut self.answer, b't', &[0, 0]);
                }
                message(&mut self.answer, b'T', COLUMN);
            }
            b'E' => {
                message(&mut self.answer, b'D', b"\0\x01\0\0\0\x012");
                message(&mut self.answer, b'C', b"SELECT 1\0");
            }
            b'Q' if starts(body, b"copy") => {
                self.copies_in = body.windows(10).any(|w| w.eq_ignore_ascii_case(b"from stdin"));
                if self.copies_in {
                    message(&mut self.answer, b'G', &[0, 0, 0]);
                    // The rest comes when the data has.
                    return Some(Reply { request: Request::Statements, bytes: std::mem::take(&mut self.answer) });
                }
                message(&mut self.answer, b'H', &[0, 0, 0]);
                message(&mut self.answer, b'd', b"1\n");
                message(&mut self.answer, b'c', &[]);
                message(&mut self.answer, b'C', b"COPY 1\0");
                return Some(self.ready());
            }
            b'f' if std::mem::take(&mut self.copies_in) => {
                self.answer.extend(error_response("ERROR", "57014", "COPY from stdin failed"));
                return Some(self.ready());
            }
            b'c' if std::mem::take(&mut self.copies_in) => {
                message(&mut self.answer, b'C', b"COPY 1\0");
                return Some(self.ready());
            }
            b'Q' => {
                self.track(body);
                // As many results as statements; a statement that names a column has one row of it.
                for sql in body.split(|b| *b == b';').filter(|s| s.iter().any(u8::is_ascii_alphabetic)) {
                    if sql.windows(4).any(|w| w.eq_ignore_ascii_case(b" as ")) {
                        message(&mut self.answer, b'T', COLUMN);
                        message(&mut self.answer, b'D', b"\0\x01\0\0\0\x012");
                    }
                    message(&mut self.answer, b'C', b"SELECT 0\0");
                }
                return Some(self.ready());
            }
            b'S' => return Some(self.ready()),
            b'X' => return Some(Reply { request: Request::Terminate, bytes: Vec::new() }),
            _ => {}
        }
        None
    }

    /// Follows transaction blocks.
    fn track(&mut self, sql: &[u8]) {
        let sql = sql.split(|b| *b == 0).next().unwrap_or_default();
        self.in_block = Effect::of(&String::from_utf8_lossy(sql)).leaves_open(self.in_block);
    }

    fn ready(&mut self) -> Reply {
        message(&mut self.answer, b'Z', if self.in_block { b"T" } else { b"I" });
        Reply { request: Request::Statements, bytes: std::mem::take(&mut self.answer) }
    }
}

//! Bytes in, messages out; bytes out.

use super::{READ_BUFFER, Worker};
use crate::client::{Answer, Awaited, Refusal, State};
use crate::driver::{Driver, Event, Token};
use crate::error::EngineError;
use crate::plan::Protocol;
use crate::workload::StatementEffect;
use pgdyno_base::Nanos;
use pgdyno_wire::backend::{self, next_message, tag};
use pgdyno_wire::{ServerError, frontend};

impl<D: Driver> Worker<D> {
    pub(super) fn handle(&mut self, event: Event) -> Result<(), EngineError> {
        let i = event.token;
        if i >= self.clients.len() {
            return Ok(());
        }
        if matches!(self.clients[i].state, State::Connecting) {
            if event.writable {
                let now = self.driver.now();
                self.begin_session(i, now)?;
            }
            return Ok(());
        }
        if event.writable && !self.clients[i].unsent.is_empty() {
            self.flush(i)?;
        }
        if event.readable { self.read(i, event.closed) } else { Ok(()) }
    }

    /// Reads all that is there; to the end, when it may have come.
    #[inline]
    pub(super) fn read(&mut self, i: Token, to_the_end: bool) -> Result<(), EngineError> {
        loop {
            if matches!(self.clients[i].state, State::Offline | State::Finished | State::Connecting) {
                return Ok(());
            }
            let mut buffer = std::mem::take(&mut self.buffer);
            let received = self.driver.recv(i, &mut buffer);
            let drained = !matches!(received, Ok(Some(READ_BUFFER)));
            let result = match received {
                Ok(None) => {
                    self.buffer = buffer;
                    return Ok(());
                }
                Ok(Some(0)) => {
                    let now = self.driver.now();
                    self.lost(i, now, "the server closed the connection")
                }
                Ok(Some(n)) => self.bytes(i, &buffer[..n]),
                Err(e) => {
                    let now = self.driver.now();
                    self.lost(i, now, &e.to_string())
                }
            };
            self.buffer = buffer;
            result?;
            // Fewer bytes than asked for: the socket is empty, and its next edge will tell when it no longer is.
            if drained && !to_the_end {
                return Ok(());
            }
        }
    }

    #[inline]
    pub(super) fn bytes(&mut self, i: Token, bytes: &[u8]) -> Result<(), EngineError> {
        let client = &mut self.clients[i];
        if matches!(client.state, State::Handshaking(_)) {
            let now = self.driver.now();
            return self.shake_hands(i, bytes, now);
        }
        if client.link.is_plain() {
            return self.plain_bytes(i, bytes);
        }
        let mut plain = std::mem::take(&mut self.plain);
        plain.clear();
        let mut reply = Vec::new();
        let opened = client.link.open(bytes, &mut plain, &mut reply);
        let result = match opened {
            Ok(()) => self.put_raw(i, &reply).and_then(|()| self.plain_bytes(i, &plain)),
            Err(e) => {
                let now = self.driver.now();
                self.lost(i, now, &e.to_string())
            }
        };
        self.plain = plain;
        result
    }

    #[inline]
    pub(super) fn plain_bytes(&mut self, i: Token, bytes: &[u8]) -> Result<(), EngineError> {
        if self.clients[i].partial.is_empty() {
            let used = self.messages(i, bytes)?;
            if used < bytes.len() && self.clients[i].has_session() {
                self.clients[i].partial.extend_from_slice(&bytes[used..]);
            }
            return Ok(());
        }
        let mut whole = std::mem::take(&mut self.clients[i].partial);
        whole.extend_from_slice(bytes);
        let used = self.messages(i, &whole)?;
        if used < whole.len() && self.clients[i].has_session() {
            whole.drain(..used);
            self.clients[i].partial = whole;
        }
        Ok(())
    }

    /// Takes the complete messages; returns how many bytes they were.
    #[inline]
    pub(super) fn messages(&mut self, i: Token, bytes: &[u8]) -> Result<usize, EngineError> {
        let mut at = 0;
        loop {
            match next_message(&bytes[at..]) {
                Ok(Some((message, length))) => {
                    at += length;
                    if !self.message(i, message)? {
                        return Ok(bytes.len());
                    }
                }
                Ok(None) => return Ok(at),
                Err(e) => {
                    let now = self.driver.now();
                    self.lost(i, now, &e.to_string())?;
                    return Ok(bytes.len());
                }
            }
        }
    }

    /// Takes one message; false when the connection is gone.
    #[inline]
    pub(super) fn message(&mut self, i: Token, message: backend::Message<'_>) -> Result<bool, EngineError> {
        let client = &mut self.clients[i];
        match message.tag {
            tag::BIND_COMPLETE => {}
            tag::DATA_ROW if client.captured.is_none() => {}
            tag::DATA_ROW => return self.captured(i, message),
            tag::COMMAND_COMPLETE | tag::EMPTY_QUERY => {
                client.answer.rolled_back |= message.body.starts_with(b"ROLLBACK");
                if client.captured.is_some() {
                    self.captured(i, message)?;
                }
                let client = &mut self.clients[i];
                client.answer.results += 1;
                if client.pipeline.is_some() {
                    self.pipeline_result(i);
                }
            }
            tag::READY_FOR_QUERY => match backend::ready_for_query(message.body) {
                Ok(status) => {
                    client.status = status;
                    self.ready(i)?;
                    // What was sent next may have found the connection gone: the rest of these bytes is of the old one.
                    return Ok(self.clients[i].has_session());
                }
                Err(e) => {
                    let now = self.driver.now();
                    self.lost(i, now, &e.to_string())?;
                    return Ok(false);
                }
            },
            tag::PARSE_COMPLETE => {
                client.answer.parsed = true;
                if let Some(command) = client.preparing.pop_front() {
                    client.prepared[command] = true;
                } else if let State::Busy { command, .. } = client.state {
                    client.prepared[command] = true;
                }
            }
            tag::ERROR => {
                let error = ServerError::parse(message.body);
                // libpq hands out a pipeline's results one by one.
                let query = if client.pipeline.is_some() { 0 } else { client.answer.results };
                let fatal = matches!(error.severity.as_str(), "FATAL" | "PANIC");
                // In a pipeline, the statement that has no result yet.
                let command = client.pipeline.as_ref().and_then(|p| match p.awaited.front() {
                    Some(Awaited::Command { command, .. }) => Some(*command),
                    _ => None,
                });
                client.answer.error.get_or_insert_with(|| Box::new(Refusal { error, query, command }));
                if fatal {
                    // The session is over. Whatever else is in these bytes was written by somebody who did not know.
                    let now = self.driver.now();
                    self.lost(i, now, "the server closed the connection")?;
                    return Ok(false);
                }
            }
            tag::NOTICE if self.is_classic => {
                let sql = match client.state {
                    State::Busy { command, .. } if client.pipeline.is_none() => {
                        client.actor.text(command, self.plan.protocol, !client.answer.parsed)
                    }
                    _ => None,
                };
                let now = self.driver.now();
                self.say("output", i, now, ServerError::parse(message.body).classic(sql.as_deref()));
            }
            tag::ROW_DESCRIPTION if client.captured.is_some() => return self.captured(i, message),
            tag::COPY_IN_RESPONSE | tag::COPY_OUT_RESPONSE | tag::COPY_BOTH_RESPONSE
                if self.plan.on_error.ends_clients() =>
            {
                let now = self.driver.now();
                self.say("error", i, now, "COPY is not supported in pgbench, aborting".into());
                self.abort(i)?;
                return Ok(false);
            }
            tag::COPY_IN_RESPONSE => {
                let mut out = Vec::new();
                frontend::copy_fail(&mut out, "COPY FROM STDIN is not supported in a script");
                if self.plan.protocol != Protocol::Simple {
                    frontend::sync(&mut out);
                }
                let now = self.driver.now();
                self.put(i, &out, now)?;
                return Ok(self.clients[i].has_session());
            }
            _ => {}
        }
        Ok(true)
    }

    /// ReadyForQuery: the statement, the pipeline or the roll-back is over.
    #[inline]
    pub(super) fn ready(&mut self, i: Token) -> Result<(), EngineError> {
        let now = self.driver.now();
        let client = &mut self.clients[i];
        match client.state {
            State::Busy { command, .. } if client.pipeline.is_some() => {
                if !self.pipeline_synced(i) {
                    return Ok(());
                }
                let client = &mut self.clients[i];
                client.pipeline = None;
                client.preparing.clear();
                if client.answer.error.is_some() {
                    return self.statement_failed(i, command, now);
                }
                client.answer = Answer::default();
                self.drive(i, now)
            }
            State::Busy { command, sent_at } => {
                let rolled_back = std::mem::take(&mut client.answer.rolled_back);
                // To the script's own ROLLBACK that answer is success, to its COMMIT it is failure.
                let undone = rolled_back && self.workload.commands()[command].effect == StatementEffect::Commits;
                if client.answer.error.is_some() || (undone && !self.plan.on_error.ends_clients()) {
                    return self.statement_failed(i, command, now);
                }
                let results = std::mem::take(&mut client.answer.results);
                client.answer.parsed = false;
                if let Some((name, query)) = client.answer.unstorable.take() {
                    return self.cannot_store(i, command, query, &name, now);
                }
                client.transaction.statements += 1;
                if self.plan.command_latency {
                    self.interval.command_latency[command].record(now - sent_at);
                }
                if client.captured.is_some() && !self.capture_last(i, command, results, now)? {
                    return Ok(());
                }
                self.drive(i, now)
            }
            State::Preparing => {
                let parsing = client.preparing.front().copied();
                client.preparing.clear();
                if client.answer.error.is_some() {
                    let command = parsing.unwrap_or_else(|| client.actor.here());
                    return self.statement_failed(i, command, now);
                }
                client.answer = Answer::default();
                self.drive(i, now)
            }
            State::RollingBack => {
                let answer = std::mem::take(&mut client.answer);
                match answer.error {
                    Some(refusal) => self.rollback_failed(i, &refusal, now),
                    None => self.after_rollback(i, now),
                }
            }
            _ => {
                // A pipeline that is still being filled.
                if client.pipeline.is_some() {
                    self.pipeline_synced(i);
                }
                Ok(())
            }
        }
    }

    /// Sends protocol bytes.
    #[inline]
    pub(super) fn put(&mut self, i: Token, bytes: &[u8], now: Nanos) -> Result<(), EngineError> {
        if self.clients[i].link.is_plain() {
            return self.put_raw(i, bytes);
        }
        let mut wire = Vec::new();
        match self.clients[i].link.seal(bytes, &mut wire) {
            Ok(()) => self.put_raw(i, &wire),
            Err(e) => self.lost(i, now, &e.to_string()),
        }
    }

    /// Sends socket bytes; keeps what the socket does not take.
    #[inline]
    pub(super) fn put_raw(&mut self, i: Token, bytes: &[u8]) -> Result<(), EngineError> {
        if bytes.is_empty() {
            return Ok(());
        }
        if !self.clients[i].unsent.is_empty() {
            self.clients[i].unsent.extend_from_slice(bytes);
            return Ok(());
        }
        match self.driver.send(i, bytes) {
            Ok(n) if n == bytes.len() => Ok(()),
            Ok(n) => {
                self.clients[i].unsent.extend_from_slice(&bytes[n..]);
                self.driver.watch_writable(i, true).map_err(|e| EngineError::System(e.to_string()))
            }
            // The answer that says why (a FATAL error) may still be in the socket: let reading find the end.
            Err(_) if self.running => {
                let now = self.driver.now();
                self.read_last_words(i);
                // Nothing of this statement has reached the server, so it cannot have committed anything. Of a pipeline
                // an earlier part may have.
                if matches!(self.clients[i].state, State::Busy { .. }) && self.clients[i].pipeline.is_none() {
                    self.clients[i].state = State::Idle;
                }
                self.lost(i, now, "the server closed the connection")
            }
            Err(e) => {
                let now = self.driver.now();
                self.lost(i, now, &e.to_string())
            }
        }
    }

    pub(super) fn flush(&mut self, i: Token) -> Result<(), EngineError> {
        let client = &mut self.clients[i];
        match self.driver.send(i, &client.unsent[client.taken..]) {
            Ok(n) if client.taken + n == client.unsent.len() => {
                client.unsent = Vec::new();
                client.taken = 0;
                self.driver.watch_writable(i, false).map_err(|e| EngineError::System(e.to_string()))
            }
            Ok(n) => {
                client.taken += n;
                // Edge-triggered: asking again makes the driver look again.
                self.driver.watch_writable(i, true).map_err(|e| EngineError::System(e.to_string()))
            }
            Err(e) => {
                let now = self.driver.now();
                self.lost(i, now, &e.to_string())
            }
        }
    }

    /// What a server that has closed said before, if it is in the clear.
    pub(super) fn read_last_words(&mut self, i: Token) {
        let mut buffer = [0u8; 4096];
        if let (true, Ok(Some(n))) = (self.clients[i].link.is_plain(), self.driver.recv(i, &mut buffer)) {
            let mut at = 0;
            while let Ok(Some((message, length))) = next_message(&buffer[at..n]) {
                at += length;
                if message.tag == tag::ERROR {
                    let error = ServerError::parse(message.body);
                    self.clients[i].answer.error = Some(Box::new(Refusal { error, query: 0, command: None }));
                }
            }
        }
    }
}

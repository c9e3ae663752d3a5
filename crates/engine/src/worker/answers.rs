//! What servers say, and what it means to their clients.

use super::sockets::Received;
use super::{Worker, ask_policy};
use crate::client::State;
use crate::driver::{self, Driver, Token};
use crate::error::EngineError;
use crate::policy::Decision;
use crate::workload::{Ends, Label, Piece};
use pgdyno_base::Nanos;
use pgdyno_protocol::{CommandTag, Conversation, Dialect, Event, Refusal};

impl<P: Dialect, D: Driver> Worker<P, D> {
    /// A socket can be read or written.
    pub(super) fn handle(&mut self, event: driver::Event) -> Result<(), EngineError> {
        let i = event.token;
        if i >= self.clients.len() {
            return Ok(());
        }
        if self.clients[i].state == State::Connecting {
            if event.writable {
                let now = self.sockets.now();
                self.begin_session(i, now)?;
            }
            return Ok(());
        }
        if event.writable && !self.clients[i].connection.unsent.is_empty() {
            if let Err(reason) = self.sockets.flush(i, &mut self.clients[i].connection) {
                self.broken(i, &reason)?;
            }
        }
        if event.readable { self.read(i, event.closed) } else { Ok(()) }
    }

    /// Reads all that is there; to the end, when it may have come.
    #[inline]
    fn read(&mut self, i: Token, to_the_end: bool) -> Result<(), EngineError> {
        loop {
            if matches!(self.clients[i].state, State::Offline | State::Finished | State::Connecting) {
                return Ok(());
            }
            match self.sockets.receive(i) {
                Received::Nothing => return Ok(()),
                Received::Gone(reason) => {
                    let now = self.sockets.now();
                    self.lost(i, now, &reason)?;
                }
                Received::Bytes(n, may_be_more) => {
                    let buffer = std::mem::take(&mut self.sockets.buffer);
                    let taken = self.take(i, &buffer[..n]);
                    self.sockets.buffer = buffer;
                    taken?;
                    // Fewer bytes than asked for: the socket is empty, and its next edge will tell when it no longer is.
                    if !may_be_more && !to_the_end {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// Takes what arrived.
    #[inline]
    fn take(&mut self, i: Token, wire: &[u8]) -> Result<(), EngineError> {
        let conversation = &self.clients[i].connection.conversation;
        if conversation.is_plain() && conversation.is_open() {
            return self.take_events(i, wire, &mut Vec::new());
        }
        self.take_sealed(i, wire)
    }

    /// Takes what arrived under TLS, or before the session is open.
    fn take_sealed(&mut self, i: Token, wire: &[u8]) -> Result<(), EngineError> {
        let mut plain = std::mem::take(&mut self.sockets.plain);
        let mut reply = Vec::new();
        let opened = self.clients[i].connection.conversation.open(wire, &mut plain, &mut reply);
        let result = match opened {
            Ok(rest) => self.take_events(i, rest, &mut reply),
            Err(error) => {
                // An alert that tells the server why must go out even when we give up.
                let _ = self.sockets.send_raw(i, &mut self.clients[i].connection, &reply);
                let now = self.sockets.now();
                self.violated(i, now, error)
            }
        };
        self.sockets.plain = plain;
        result
    }

    #[inline]
    fn take_events(&mut self, i: Token, mut rest: &[u8], reply: &mut Vec<u8>) -> Result<(), EngineError> {
        let connection = self.clients[i].connection.number;
        loop {
            let next = self.clients[i].connection.conversation.next(&mut rest, reply);
            if !reply.is_empty() {
                self.send_raw(i, reply)?;
                reply.clear();
                // What was sent may have found the connection gone: the rest of these bytes is of the old one.
                if self.clients[i].connection.number != connection {
                    return Ok(());
                }
            }
            match next {
                Ok(Some(event)) => self.happened(i, event)?,
                Ok(None) => return Ok(()),
                Err(error) => {
                    let now = self.sockets.now();
                    return self.violated(i, now, error);
                }
            }
            if self.clients[i].connection.number != connection || self.clients[i].state == State::Finished {
                return Ok(());
            }
        }
    }

    #[inline]
    fn happened(&mut self, i: Token, event: Event<Label>) -> Result<(), EngineError> {
        match event {
            Event::Result(label, tag) => self.result(i, label, tag),
            Event::Synchronised(label) => self.synchronised(i, label),
            Event::Prepared(label) => {
                self.clients[i].connection.prepared[label.slot as usize] = true;
                Ok(())
            }
            Event::Columns(label, names) => self.read_piece(i, label, Some(names)),
            Event::Row(label) => self.read_piece(i, label, None),
            Event::Refused(refusal) => self.refused(i, refusal),
            Event::Began(info) => {
                let now = self.sockets.now();
                self.session_began(i, &info, now)
            }
            Event::CopyIn(_) | Event::CopyOut(_) => {
                let now = self.sockets.now();
                if let Decision::EndClient = ask_policy!(self, i, now, copies) {
                    return self.abort(i);
                }
                if matches!(event, Event::CopyOut(_)) {
                    return Ok(());
                }
                let mut out = Vec::new();
                let reason = "COPY FROM STDIN is not supported in a script";
                self.clients[i].connection.conversation.refuse_data(reason, &mut out);
                self.send(i, &out)
            }
            Event::Notice(notice) => {
                let now = self.sockets.now();
                let client = &self.clients[i];
                // Of a pipeline nobody knows which statement a notice is of.
                let command = match client.state {
                    State::Busy { command, .. } if self.workload.commands()[command].is_sql => Some(command),
                    _ => None,
                };
                ask_policy!(self, i, now, noticed, command, &notice);
                self.clients[i].actor.noticed(&notice);
                Ok(())
            }
        }
    }

    /// A command is carried out.
    #[inline]
    fn result(&mut self, i: Token, label: Label, tag: CommandTag) -> Result<(), EngineError> {
        let client = &mut self.clients[i];
        let Some(info) = self.workload.commands().get(label.command as usize) else { return Ok(()) };
        // To the script's own ROLLBACK that answer is success, to its COMMIT it is failure.
        client.undone |= tag == CommandTag::Rollback && !info.effect.rolls_back();
        if tag == CommandTag::Nothing {
            self.tally.command_found_nothing(label.command as usize);
        }
        if info.reads {
            if let Err(e) = client.actor.read(label.command as usize, Piece::End) {
                let now = self.sockets.now();
                return self.violated(i, now, e);
            }
        }
        if label.ends == Ends::AtResult {
            client.transaction.statements += 1;
            if label.since > Nanos::ZERO {
                let now = self.sockets.now();
                self.tally.command(label.command as usize, now - label.since);
            }
        }
        Ok(())
    }

    /// A row of a result that is read, or the names of its columns.
    fn read_piece(&mut self, i: Token, label: Label, columns: Option<Vec<String>>) -> Result<(), EngineError> {
        let client = &mut self.clients[i];
        let piece = match columns {
            Some(names) => Ok(Piece::Columns(names)),
            None => client.connection.conversation.row().map(Piece::Row),
        };
        match piece.and_then(|piece| client.actor.read(label.command as usize, piece)) {
            Ok(()) => Ok(()),
            Err(error) => {
                let now = self.sockets.now();
                self.violated(i, now, error)
            }
        }
    }

    fn refused(&mut self, i: Token, refusal: Box<Refusal<Label>>) -> Result<(), EngineError> {
        let fatal = refusal.fatal;
        // The first counts: what follows it is its consequence.
        self.clients[i].refusal.get_or_insert(refusal);
        if fatal {
            // Whatever else is in these bytes was written by somebody who did not know.
            let now = self.sockets.now();
            return self.lost(i, now, "the server closed the connection");
        }
        Ok(())
    }

    /// A request is answered to its end. When all are, the client goes on.
    #[inline]
    fn synchronised(&mut self, i: Token, label: Label) -> Result<(), EngineError> {
        if !self.clients[i].connection.conversation.is_idle() {
            return Ok(());
        }
        let now = self.sockets.now();
        match self.clients[i].state {
            State::Busy { command, sent_at } => {
                self.answered(i, command, (label.ends == Ends::AtSync).then_some(sent_at), now)
            }
            State::RollingBack => match self.clients[i].refusal.take() {
                Some(refusal) => self.rollback_refused(i, &refusal.error, now),
                None => self.rolled_back(i, now),
            },
            // A pipeline that is still being filled.
            _ => Ok(()),
        }
    }

    /// All that the client waited for is there; of a single statement, which was sent at `since`, too.
    #[inline]
    fn answered(&mut self, i: Token, command: usize, since: Option<Nanos>, now: Nanos) -> Result<(), EngineError> {
        let client = &mut self.clients[i];
        if let Some(refusal) = client.refusal.take() {
            client.undone = false;
            return self.statement_refused(i, command, &refusal, now);
        }
        if std::mem::take(&mut client.undone) {
            let decision = ask_policy!(self, i, now, undone);
            if !matches!(decision, Decision::GoOn) {
                return self.carry_out(i, command, decision, now);
            }
        }
        if let Some(since) = since {
            let client = &mut self.clients[i];
            if self.workload.commands()[command].reads {
                if let Err(failure) = client.actor.answered(command) {
                    return self.script_failed(i, &failure, now);
                }
            }
            client.transaction.statements += 1;
            self.tally.command(command, now - since);
        }
        self.drive(i, now)
    }
}

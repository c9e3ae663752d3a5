//! Pipelines: statements that are sent without waiting for the answers of those before them.

use super::Worker;
use crate::client::{Awaited, State};
use crate::driver::{Driver, Token};
use crate::error::EngineError;
use crate::plan::Protocol;
use crate::workload::{Capturing, Encoding, ScriptFailure};
use pgdyno_base::Nanos;
use pgdyno_wire::frontend;

/// What is put into a pipeline is sent when it is more than this, as libpq has it.
const FLUSH_AT: usize = 64 * 1024;

type Misuse = Box<ScriptFailure>;

impl<D: Driver> Worker<D> {
    /// A pipeline's command that cannot be carried out where it stands.
    fn misuse(&self, i: Token, name: &str, message: &str) -> Misuse {
        let command = self.clients[i].actor.here();
        let info = &self.workload.commands()[command];
        Box::new(ScriptFailure {
            place: self.workload.locate(command, message),
            script: info.script,
            number: info.number,
            name: name.into(),
            stage: "pipeline",
            message: message.into(),
        })
    }

    /// Opens a pipeline. True: its statements are being prepared first, wait for that.
    pub(super) fn start_pipeline(
        &mut self,
        i: Token,
        first: usize,
        end: usize,
        now: Nanos,
    ) -> Result<Result<bool, Misuse>, EngineError> {
        if self.plan.protocol == Protocol::Simple {
            let why = "cannot use pipeline mode with the simple query protocol";
            return Ok(Err(self.misuse(i, "startpipeline", why)));
        }
        if self.clients[i].pipeline.is_some() {
            return Ok(Err(self.misuse(i, "startpipeline", "already in pipeline mode")));
        }
        let client = &mut self.clients[i];
        client.pipeline = Some(Box::default());
        if self.plan.protocol != Protocol::Prepared {
            return Ok(Ok(false));
        }
        // Before the pipeline, not within it: BEGIN ISOLATION LEVEL SERIALIZABLE must be the first to need a snapshot.
        let mut out = Vec::new();
        for command in client.actor.pipelined(first, end) {
            if !client.prepared[command] {
                client.actor.encode_prepare(command, &mut out);
                client.preparing.push_back(command);
            }
        }
        if out.is_empty() {
            return Ok(Ok(false));
        }
        frontend::sync(&mut out);
        client.state = State::Preparing;
        self.put(i, &out, now)?;
        Ok(Ok(true))
    }

    /// Puts a statement into the pipeline.
    pub(super) fn enqueue(&mut self, i: Token, command: usize) -> Result<Result<(), Misuse>, EngineError> {
        let name = match self.workload.commands()[command].capture {
            Capturing::Nothing => "",
            Capturing::Last => "gset",
            Capturing::Each => "aset",
        };
        if !name.is_empty() {
            return Ok(Err(self.misuse(i, name, &format!("\\{name} is not allowed in pipeline mode"))));
        }
        let now = self.driver.now();
        let protocol = self.plan.protocol;
        let client = &mut self.clients[i];
        let how = Encoding {
            protocol,
            prepare: protocol == Protocol::Prepared && !client.prepared[command],
            sync: false,
            describe: false,
        };
        let Some(pipeline) = &mut client.pipeline else { return Ok(Ok(())) };
        if how.prepare {
            client.preparing.push_back(command);
        }
        client.actor.encode(command, how, &mut pipeline.out);
        let since = client.marked.is_none().then_some(now);
        pipeline.awaited.push_back(Awaited::Command { command, since });
        client.transaction.last = Some(command);
        let full = pipeline.out.len() >= FLUSH_AT;
        if self.is_talkative {
            let sent = self.clients[i].actor.sent(command, protocol);
            self.debug(i, now, || format!("sending {sent}"));
        }
        if full {
            self.flush_pipeline(i, now)?;
        }
        Ok(Ok(()))
    }

    fn flush_pipeline(&mut self, i: Token, now: Nanos) -> Result<(), EngineError> {
        let Some(pipeline) = &mut self.clients[i].pipeline else { return Ok(()) };
        let out = std::mem::take(&mut pipeline.out);
        pipeline.sent = true;
        self.put(i, &out, now)
    }

    /// Puts a synchronisation into the pipeline.
    pub(super) fn sync_pipeline(&mut self, i: Token) -> Result<(), Misuse> {
        let Some(pipeline) = &mut self.clients[i].pipeline else {
            return Err(self.misuse(i, "syncpipeline", "not in pipeline mode"));
        };
        frontend::sync(&mut pipeline.out);
        pipeline.awaited.push_back(Awaited::Sync);
        Ok(())
    }

    /// Sends the rest of the pipeline and waits for its answers.
    pub(super) fn end_pipeline(&mut self, i: Token) -> Result<Result<(), Misuse>, EngineError> {
        let now = self.driver.now();
        let client = &mut self.clients[i];
        let command = client.actor.here();
        let Some(pipeline) = &mut client.pipeline else {
            return Ok(Err(self.misuse(i, "endpipeline", "not in pipeline mode")));
        };
        frontend::sync(&mut pipeline.out);
        pipeline.awaited.push_back(Awaited::Sync);
        pipeline.ended = true;
        client.state = State::Busy { command, sent_at: now };
        self.debug(i, now, || "receiving".into());
        self.flush_pipeline(i, now)?;
        Ok(Ok(()))
    }

    /// A statement of the pipeline has its result.
    pub(super) fn pipeline_result(&mut self, i: Token) {
        let now = self.driver.now();
        let client = &mut self.clients[i];
        let Some(pipeline) = &mut client.pipeline else { return };
        if let Some(Awaited::Command { command, since }) = pipeline.awaited.front().copied() {
            pipeline.awaited.pop_front();
            client.transaction.statements += 1;
            if let (Some(since), true) = (since, self.plan.command_latency) {
                self.interval.command_latency[command].record(now - since);
            }
        }
    }

    /// The server has synchronised. True: the pipeline is over.
    pub(super) fn pipeline_synced(&mut self, i: Token) -> bool {
        let Some(pipeline) = &mut self.clients[i].pipeline else { return true };
        // After an error the server has skipped what came before this.
        while pipeline.awaited.pop_front().is_some_and(|a| a != Awaited::Sync) {}
        pipeline.ended && pipeline.awaited.is_empty()
    }
}

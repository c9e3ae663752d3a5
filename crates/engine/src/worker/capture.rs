//! Results that go into variables: `\\gset` and `\\aset`.

use super::Worker;
use crate::client::Captured;
use crate::driver::{Driver, Token};
use crate::error::EngineError;
use crate::workload::{Capturing, ScriptFailure};
use pgdyno_base::Nanos;
use pgdyno_wire::backend::{self, Message, tag};

impl<D: Driver> Worker<D> {
    /// Takes a message of a result that is wanted; false when the connection or the client is gone.
    pub(super) fn captured(&mut self, i: Token, message: Message<'_>) -> Result<bool, EngineError> {
        let now = self.driver.now();
        let client = &mut self.clients[i];
        let Some(captured) = &mut client.captured else { return Ok(true) };
        if captured.complete {
            **captured = Captured::default();
        }
        let read = match message.tag {
            tag::ROW_DESCRIPTION => backend::column_names(message.body).map(|names| captured.columns = Some(names)),
            tag::DATA_ROW => backend::data_row(message.body).map(|row| {
                captured.rows += 1;
                captured.row = row.into_iter().map(|v| v.map(<[u8]>::to_vec)).collect();
            }),
            _ => {
                captured.complete = true;
                Ok(())
            }
        };
        if let Err(e) = read {
            self.lost(i, now, &e.to_string())?;
            return Ok(false);
        }
        let crate::client::State::Busy { command, .. } = client.state else { return Ok(true) };
        let each = self.workload.commands()[command].capture == Capturing::Each;
        if each && captured.complete && captured.rows > 0 {
            let taken = std::mem::take(&mut **captured);
            captured.complete = true;
            let stored = client.actor.capture(command, taken.columns.as_deref().unwrap_or_default(), &taken.row);
            // Acted upon when the answer is complete: the session must not be left in the middle of it.
            if let Err(name) = stored {
                client.answer.unstorable.get_or_insert((name, client.answer.results));
            }
        }
        Ok(true)
    }

    /// The statement is over: stores the row of its last query. False: the client cannot go on.
    pub(super) fn capture_last(
        &mut self,
        i: Token,
        command: usize,
        results: u32,
        now: Nanos,
    ) -> Result<bool, EngineError> {
        let client = &mut self.clients[i];
        let Some(captured) = client.captured.take() else { return Ok(true) };
        let info = &self.workload.commands()[command];
        if info.capture != Capturing::Last {
            return Ok(true);
        }
        let query = results.max(1) - 1;
        let rows = if captured.columns.is_some() { captured.rows } else { 0 };
        if rows != 1 {
            let (script, number) = (info.script, info.number);
            let what = format!("expected one row, got {rows}");
            let classic =
                format!("client {} script {script} command {number} query {query}: {what}", self.first_client + i);
            self.result_failed(i, command, vec![classic], &what, now)?;
            return Ok(false);
        }
        let stored = client.actor.capture(command, captured.columns.as_deref().unwrap_or_default(), &captured.row);
        match stored {
            Ok(()) => Ok(true),
            Err(name) => self.cannot_store(i, command, query, &name, now).map(|()| false),
        }
    }

    pub(super) fn cannot_store(
        &mut self,
        i: Token,
        command: usize,
        query: u32,
        name: &str,
        now: Nanos,
    ) -> Result<(), EngineError> {
        let info = &self.workload.commands()[command];
        let what = if info.capture == Capturing::Each { "aset" } else { "gset" };
        let (script, number) = (info.script, info.number);
        let classic = format!(
            "client {} script {script} command {number} query {query}: error storing into variable {name}",
            self.first_client + i
        );
        let first = format!("{what}: invalid variable name: \"{name}\"");
        let ours = format!("no variable can be called \"{name}\": give the column a name (AS)");
        self.result_failed(i, command, vec![first, classic], &ours, now)
    }

    fn result_failed(
        &mut self,
        i: Token,
        command: usize,
        classic: Vec<String>,
        ours: &str,
        now: Nanos,
    ) -> Result<(), EngineError> {
        if self.plan.on_error.ends_clients() {
            for line in classic {
                self.say("error", i, now, line);
            }
            return self.abort(i);
        }
        let info = &self.workload.commands()[command];
        let failure = ScriptFailure {
            place: self.workload.locate(command, ours),
            script: info.script,
            number: info.number,
            name: info.name.clone(),
            stage: "evaluation",
            message: ours.to_owned(),
        };
        self.script_failed(i, &failure, now)
    }
}

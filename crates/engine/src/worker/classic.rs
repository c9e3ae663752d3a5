//! What is told in pgbench's words: its messages on standard error, which scripts and people read.

use super::{Report, RunEvent, Worker};
use crate::client::{Refusal, State, Transaction};
use crate::driver::{Driver, Token};
use crate::error::EngineError;
use crate::plan::{OnError, Voice};
use crate::workload::CommandInfo;
use pgdyno_base::Nanos;
use pgdyno_wire::SqlState;

impl<D: Driver> Worker<D> {
    /// Tells a message of a level: `error`, `info`, `debug`, or `output` for what stands alone.
    pub(super) fn say(&mut self, level: &'static str, i: Token, now: Nanos, text: String) {
        if self.is_classic {
            let at = now - self.origin;
            (self.report)(Report::Event(RunEvent { at, kind: level, client: self.first_client + i, text }));
        }
    }

    /// Tells what a client is doing, where that is wanted.
    #[inline]
    pub(super) fn debug(&mut self, i: Token, now: Nanos, text: impl FnOnce() -> String) {
        if self.is_talkative {
            let text = format!("client {} {}", self.first_client + i, text());
            self.say("debug", i, now, text);
        }
    }

    /// A meta-command begins: its words, but for expressions.
    pub(super) fn debug_command(&mut self, i: Token, command: usize, now: Nanos) {
        let info = &self.workload.commands()[command];
        if info.is_sql {
            return;
        }
        let words = match info.name.to_ascii_lowercase().as_str() {
            "set" => 2,
            "if" | "elif" => 1,
            _ => usize::MAX,
        };
        let shown: Vec<&str> = info.text.split_ascii_whitespace().take(words).collect();
        let shown = shown.join(" ");
        self.debug(i, now, || format!("executing {shown}"));
    }

    /// What the script's `debug()` has shown.
    #[inline]
    pub(super) fn show_debug(&mut self, i: Token, now: Nanos) {
        for line in self.clients[i].actor.take_debug() {
            self.say("output", i, now, line);
        }
    }

    fn is_verbose(&self) -> bool {
        matches!(self.plan.voice, Voice::Pgbench { verbose: true, .. })
    }

    /// An error of the server, where errors end clients.
    pub(super) fn classic_error(
        &mut self,
        i: Token,
        command: usize,
        refusal: &Refusal,
        parsed: bool,
        now: Nanos,
    ) -> Result<(), EngineError> {
        let protocol = self.plan.protocol;
        let client = &self.clients[i];
        let info = &self.workload.commands()[command];
        let (script, mut number) = (info.script, info.number);
        if matches!(client.state, State::Preparing) {
            // libpq finds out when the pipeline ends.
            let ends = |c: &&CommandInfo| c.script == script && c.name.eq_ignore_ascii_case("endpipeline");
            number = self.workload.commands()[command..].iter().find(ends).map_or(number, |c| c.number);
        }
        let failed = refusal.command.unwrap_or(command);
        let is_sql = self.workload.commands()[failed].is_sql;
        let sql = if is_sql { client.actor.text(failed, protocol, !parsed) } else { None };
        // libpq prepares in a step of its own: its failure is told, and then that the statement is not there.
        let unprepared = protocol == crate::plan::Protocol::Prepared
            && info.is_sql
            && !parsed
            && !client.prepared[command]
            && !refusal.error.state().is_retryable();
        let mut text = refusal.error.classic(sql.as_deref());
        let mut code = refusal.error.state();
        if unprepared {
            self.say("error", i, now, text);
            let name = self.clients[i].actor.sent(command, protocol);
            text = format!("ERROR:  prepared statement \"{name}\" does not exist");
            code = SqlState(*b"26000");
        }
        if code.is_retryable() || self.plan.on_error == OnError::EndClientUnlessSql {
            if self.is_verbose() {
                let client = self.first_client + i;
                let said = format!("client {client} got an error in command {number} (SQL) of script {script}; {text}");
                self.say("info", i, now, said);
            }
            return self.recover(i, code, command, now);
        }
        let (client, query) = (self.first_client + i, refusal.query);
        let said = format!("client {client} script {script} aborted in command {number} query {query}: {text}");
        self.say("error", i, now, said);
        self.abort(i)
    }

    /// What happens after an error, where that is wanted.
    pub(super) fn tell_try(&mut self, i: Token, t: &Transaction, again: bool, now: Nanos) {
        if !self.is_verbose() {
            return;
        }
        let what = if again { "repeats the transaction after the error" } else { "ends the failed transaction" };
        let mut text = format!("client {} {what} (try {}", self.first_client + i, t.retries + 1);
        if self.plan.max_tries > 0 {
            text.push_str(&format!("/{}", self.plan.max_tries));
        }
        if let Some(limit) = self.plan.latency_limit {
            let used = 100.0 * (now - t.due).0 as f64 / limit.0 as f64;
            text.push_str(&format!(", {used:.3}% of the maximum time of tries was used"));
        }
        text.push(')');
        self.say("info", i, now, text);
    }

    /// The connection is gone, where that ends the client.
    pub(super) fn classic_loss(&mut self, i: Token, command: usize, said: Option<&Refusal>, reason: &str, now: Nanos) {
        let info = &self.workload.commands()[command];
        let (number, script, client) = (info.number, info.script, self.first_client + i);
        let text = match said {
            Some(refusal) => {
                let text = refusal.error.classic(None);
                let query = refusal.query;
                format!("client {client} script {script} aborted in command {number} query {query}: {text}")
            }
            None => {
                // What the operating system or the protocol says of it, where that is more than that it is closed.
                let why = if reason.contains("closed") { String::new() } else { format!(" ({reason})") };
                format!(
                    "client {client} aborted in command {number} (SQL) of script {script}; perhaps the backend died while \
                     processing{why}"
                )
            }
        };
        self.say("error", i, now, text);
    }
}

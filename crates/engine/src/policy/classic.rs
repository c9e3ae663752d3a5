//! pgbench's policy: an error that is not retried ends its client. What is said of it is said in pgbench's words, which
//! scripts and people read on standard error.

use super::{Decision, Policy, Scene};
use crate::client::Transaction;
use crate::error::EngineError;
use crate::events::{EventKind, Events};
use crate::plan::{OnError, Plan, Voice};
use crate::workload::{Cause, Failure, Label};
use pgdyno_protocol::{QueryMode, Refusal, ServerError};

/// See the module.
pub(crate) struct Classic;

fn is_verbose(plan: &Plan) -> bool {
    matches!(plan.voice, Voice::Pgbench { verbose: true, .. })
}

fn why(error: &EngineError) -> String {
    error.classic().map_or_else(|| error.to_string(), str::to_owned)
}

impl Policy for Classic {
    fn refused(&self, scene: &Scene<'_>, events: &mut Events, command: usize, refusal: &Refusal<Label>) -> Decision {
        let (client, protocol) = (scene.client, scene.plan.protocol);
        let commands = scene.workload.commands();
        let info = &commands[command];
        let (script, number) = (info.script, info.number);
        let failed = scene.refused_statement(refusal).unwrap_or(command);
        let parsed = scene.prepared[failed];
        let sql = scene.script.and_then(|s| s.text(failed, protocol, !parsed));
        let text = refusal.error.classic(sql.as_deref());
        let code = refusal.error.state();
        // pgbench prepares in a step of its own, tells of its failure, and executes: the statement may be there all the
        // same (behind a pooler, or prepared by the script).
        if protocol == QueryMode::Prepared && commands[failed].is_sql && !parsed {
            events.say(EventKind::Error, client, scene.now, text);
            return Decision::ExecuteAllTheSame(failed);
        }
        if code.is_retryable() || scene.plan.on_error == OnError::EndClientUnlessSql {
            if is_verbose(scene.plan) {
                let said = format!("client {client} got an error in command {number} (SQL) of script {script}; {text}");
                events.say(EventKind::Info, client, scene.now, said);
            }
            return Decision::Recover(code);
        }
        // libpq hands out a pipeline's results one by one.
        let query = if info.is_sql { refusal.query } else { 0 };
        let said = format!("client {client} script {script} aborted in command {number} query {query}: {text}");
        events.say(EventKind::Error, client, scene.now, said);
        Decision::EndClient
    }

    fn undone(&self, _: &Scene<'_>, _: &mut Events) -> Decision {
        Decision::GoOn
    }

    fn rollback_refused(&self, scene: &Scene<'_>, events: &mut Events, error: &ServerError) -> Decision {
        let (client, why) = (scene.client, error.classic(None));
        let what = "aborted while rolling back the transaction after an error";
        events.say(EventKind::Error, client, scene.now, format!("client {client} {what}; {why}"));
        Decision::EndClient
    }

    fn script_failed(&self, scene: &Scene<'_>, events: &mut Events, f: &Failure) -> Decision {
        let (client, number, name, script) = (scene.client, f.number, &f.name, f.script);
        let mut lines = Vec::new();
        let aborted =
            |why: &str| format!("client {client} aborted in command {number} ({name}) of script {script}; {why}");
        let at = |query: u32| format!("client {client} script {script} command {number} query {query}");
        match &f.cause {
            Cause::MetaCommand(step) => {
                if !f.message.is_empty() {
                    lines.push(f.message.clone());
                }
                lines.push(aborted(&format!("{step} of meta-command failed")));
            }
            Cause::Pipeline => lines.push(aborted(&f.message)),
            Cause::LeftInPipeline => {
                lines.push(format!("client {client} aborted: end of script reached with pipeline open"));
            }
            Cause::Rows(query) => lines.push(format!("{}: {}", at(*query), f.message)),
            Cause::Name(query, what, variable) => {
                lines.push(format!("{what}: invalid variable name: \"{variable}\""));
                lines.push(format!("{}: error storing into variable {variable}", at(*query)));
            }
        }
        for line in lines {
            events.say(EventKind::Error, client, scene.now, line);
        }
        Decision::EndClient
    }

    fn left_open(&self, scene: &Scene<'_>, events: &mut Events, _: usize) -> Decision {
        let why = "end of script reached without completing the last transaction";
        events.say(EventKind::Error, scene.client, scene.now, format!("client {} aborted: {why}", scene.client));
        // pgbench has counted it when it complains.
        Decision::CommitAndEndClient
    }

    fn copies(&self, scene: &Scene<'_>, events: &mut Events) -> Decision {
        events.say(EventKind::Error, scene.client, scene.now, "COPY is not supported in pgbench, aborting".into());
        Decision::EndClient
    }

    fn loss_ends_client(&self, plan: &Plan) -> bool {
        !plan.reconnect
    }

    fn lost(
        &self,
        scene: &Scene<'_>,
        events: &mut Events,
        command: usize,
        said: Option<&Refusal<Label>>,
        reason: &str,
    ) {
        let info = &scene.workload.commands()[command];
        let (number, script, client) = (info.number, info.script, scene.client);
        let text = match said {
            Some(refusal) => {
                let (text, query) = (refusal.error.classic(None), refusal.query);
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
        events.say(EventKind::Error, client, scene.now, text);
    }

    fn unreachable(&self, scene: &Scene<'_>, events: &mut Events, error: &EngineError) -> Decision {
        if scene.plan.reconnect {
            return Decision::Reconnect(String::new());
        }
        events.say(EventKind::Error, scene.client, scene.now, why(error));
        let text = format!("client {} aborted while establishing connection", scene.client);
        events.say(EventKind::Error, scene.client, scene.now, text);
        Decision::EndClient
    }

    fn cannot_begin(&self, scene: &Scene<'_>, events: &mut Events, error: &EngineError) {
        events.say(EventKind::Error, scene.client, scene.now, why(error));
        let text = format!("could not create connection for client {}", scene.client);
        events.say(EventKind::Error, scene.client, scene.now, text);
    }

    fn end_forgets_errors(&self) -> bool {
        true
    }

    fn tried(&self, scene: &Scene<'_>, events: &mut Events, t: &Transaction, again: bool) {
        if !is_verbose(scene.plan) {
            return;
        }
        let what = if again { "repeats the transaction after the error" } else { "ends the failed transaction" };
        let mut text = format!("client {} {what} (try {}", scene.client, t.retries + 1);
        if scene.plan.max_tries > 0 {
            text.push_str(&format!("/{}", scene.plan.max_tries));
        }
        if let Some(limit) = scene.plan.latency_limit {
            let used = 100.0 * (scene.now - t.due).0 as f64 / limit.0 as f64;
            text.push_str(&format!(", {used:.3}% of the maximum time of tries was used"));
        }
        text.push(')');
        events.say(EventKind::Info, scene.client, scene.now, text);
    }

    fn noticed(&self, scene: &Scene<'_>, events: &mut Events, command: Option<usize>, notice: &ServerError) {
        let sql = command.and_then(|c| scene.script?.text(c, scene.plan.protocol, !scene.prepared[c]));
        events.say(EventKind::Output, scene.client, scene.now, notice.classic(sql.as_deref()));
    }
}

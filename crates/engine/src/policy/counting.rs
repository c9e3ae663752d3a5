//! pgdyno's own policy: what went wrong is counted and the load goes on; what can never succeed ends the run at once.

use super::{Decision, Policy, Scene};
use crate::error::EngineError;
use crate::events::Events;
use crate::plan::{OnError, Plan};
use crate::workload::{Cause, Failure, Label};
use pgdyno_protocol::{Refusal, ServerError, SqlState};

/// See the module.
pub(crate) struct Counting;

impl Policy for Counting {
    fn refused(&self, scene: &Scene<'_>, events: &mut Events, command: usize, refusal: &Refusal<Label>) -> Decision {
        let (code, text) = (refusal.error.state(), refusal.error.to_string());
        // Of a pipeline, the statement itself.
        let command = scene.refused_statement(refusal).unwrap_or(command);
        if code.is_permanent() && scene.plan.on_error == OnError::EndRun {
            let place = scene.workload.locate(command, &format!("the server refuses this statement: {text}"));
            return Decision::EndRun(code, EngineError::Script(Box::new(place)));
        }
        events.first_error(scene.client, scene.now, code, &text);
        Decision::Recover(code)
    }

    fn undone(&self, scene: &Scene<'_>, events: &mut Events) -> Decision {
        let code = SqlState::TRANSACTION_ROLLBACK;
        let text = "COMMIT was answered by ROLLBACK: the transaction had failed";
        events.first_error(scene.client, scene.now, code, text);
        Decision::Recover(code)
    }

    fn rollback_refused(&self, _: &Scene<'_>, _: &mut Events, error: &ServerError) -> Decision {
        Decision::Reconnect(format!("the server refuses ROLLBACK: {error}"))
    }

    fn script_failed(&self, scene: &Scene<'_>, events: &mut Events, failure: &Failure) -> Decision {
        let place = failure.place.clone();
        if scene.plan.on_error == OnError::EndRun || failure.cause == Cause::LeftInPipeline {
            return Decision::EndRun(SqlState::SCRIPT, EngineError::Script(Box::new(place)));
        }
        events.first_error(scene.client, scene.now, SqlState::SCRIPT, &place.to_string());
        Decision::Recover(SqlState::SCRIPT)
    }

    fn left_open(&self, scene: &Scene<'_>, events: &mut Events, command: usize) -> Decision {
        let code = SqlState::ACTIVE_TRANSACTION;
        let what = "the script ends inside a transaction block: nothing is committed";
        if scene.plan.on_error == OnError::EndRun {
            let mut place = scene.workload.locate(command, what);
            place.hint = "End the block with END (or ROLLBACK).".into();
            return Decision::EndRun(code, EngineError::Script(Box::new(place)));
        }
        events.first_error(scene.client, scene.now, code, what);
        Decision::Recover(code)
    }

    fn copies(&self, _: &Scene<'_>, _: &mut Events) -> Decision {
        Decision::GoOn
    }

    fn loss_ends_client(&self, _: &Plan) -> bool {
        false
    }

    fn lost(&self, _: &Scene<'_>, _: &mut Events, _: usize, _: Option<&Refusal<Label>>, _: &str) {}

    fn unreachable(&self, _: &Scene<'_>, _: &mut Events, _: &EngineError) -> Decision {
        Decision::Reconnect(String::new())
    }
}

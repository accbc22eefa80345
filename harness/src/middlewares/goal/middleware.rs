//! Looks at the thread's goal when a run is about to end, and sends the agent on while there is something to do.

use async_trait::async_trait;
use serde_json::{Value, json};

use super::evaluate::{Standing, progress_key, question, read, standing};
use super::state::{Blocker, Evaluation, GOAL, Goal, Judged};
use crate::messages::marks::escaped;
use crate::middlewares::answers::reminder;
use crate::middlewares::middleware::{HookOutcome, HookResult, Hooks, Jump, Middleware};
use crate::models::{AsideModels, Asker};
use crate::runtime::agent::{AgentEvent, RunContext};
use crate::state::{StateUpdate, ThreadState};

/// The name under which evaluations count.
const CALLER: &str = "middleware:goal";
/// The name of the message that sends an agent on.
const CONTINUATION: &str = "goal_continuation";

/// Works towards the goal of a thread.
///
/// A continuation is part of the run that led to it: whoever follows or stops the one follows and stops the other, and what it costs
/// is booked there. The goal's figures are in the thread's state, so a run that another process takes over counts on.
#[derive(Debug, Clone)]
pub struct GoalMiddleware {
    models: AsideModels,
    model: String,
}

impl GoalMiddleware {
    /// One that asks the entry `model` how a goal stands.
    pub fn new(models: AsideModels, model: impl Into<String>) -> Self {
        Self {
            models,
            model: model.into(),
        }
    }

    async fn evaluate(
        &self,
        goal: &Goal,
        state: &ThreadState,
        ctx: &RunContext,
    ) -> Option<Evaluation> {
        let found = match standing(state.messages()) {
            Standing::Unchanged => return None,
            Standing::Blocked(blocker, reason) => rests(blocker, reason),
            Standing::Open => {
                let answer = self
                    .models
                    .ask(
                        &question(goal, state, &self.model),
                        Asker::within(ctx, CALLER),
                    )
                    .await;
                let unusable = || Evaluation {
                    stand_down_reason: Some("evaluation_failed".to_owned()),
                    ..rests(
                        Blocker::MissingEvidence,
                        "How the goal stands could not be found out.",
                    )
                };
                answer
                    .ok()
                    .and_then(|answer| read(&answer.text))
                    .unwrap_or_else(unusable)
            }
        };
        let (run_id, evaluated_at) = (Some(ctx.run_id.clone()), Some(ctx.clock.now()));
        Some(Evaluation {
            run_id,
            evaluated_at,
            progress_key: Some(progress_key(state)),
            ..found
        })
    }
}

#[async_trait]
impl Middleware for GoalMiddleware {
    fn name(&self) -> &str {
        "GoalMiddleware"
    }

    fn hooks(&self) -> Hooks {
        Hooks::AFTER_AGENT
    }

    async fn after_agent(&self, state: &ThreadState, ctx: &RunContext) -> HookResult {
        let Some(goal) = Goal::of(state) else {
            return Ok(HookOutcome::default());
        };
        let Some(evaluation) = self.evaluate(&goal, state, ctx).await else {
            return Ok(HookOutcome::default());
        };
        let objective = goal.objective.clone();
        let judged = goal.judged(evaluation, ctx.clock.now());
        ctx.sink.emit(AgentEvent::Custom(event(&judged)));
        Ok(match judged {
            Judged::Reached(_) => StateUpdate::channel(GOAL, Value::Null).into(),
            Judged::StandsDown(goal, _) => StateUpdate::channel(GOAL, json!(goal)).into(),
            Judged::GoesOn(goal, evaluation) => {
                let word = reminder(CONTINUATION, &continuation(&objective, &evaluation.reason));
                HookOutcome::from(StateUpdate::messages([word]).and(GOAL, json!(goal)))
                    .jump(Jump::Again)
            }
        })
    }
}

fn rests(blocker: Blocker, reason: &str) -> Evaluation {
    Evaluation {
        satisfied: false,
        blocker,
        reason: reason.to_owned(),
        evidence_summary: None,
        run_id: None,
        evaluated_at: None,
        progress_key: None,
        stand_down_reason: None,
    }
}

/// What the agent reads when it is sent on.
fn continuation(objective: &str, reason: &str) -> String {
    let missing = if reason.trim().is_empty() {
        String::new()
    } else {
        format!("What is missing: {}\n", escaped(reason.trim()))
    };
    format!(
        "The user has set a goal for this conversation, and it is not reached yet.\n<goal>\n{}\n</goal>\n{missing}Go on with the work \
         now, from where it stands, and do not repeat what is done. If only the user can help you on, say what you need and stop.",
        escaped(objective.trim())
    )
}

/// What viewers learn.
fn event(judged: &Judged) -> Value {
    let (evaluation, goal) = match judged {
        Judged::Reached(evaluation) => (evaluation, None),
        Judged::GoesOn(goal, evaluation) | Judged::StandsDown(goal, evaluation) => {
            (evaluation, Some(goal))
        }
    };
    json!({
        "type": "goal_evaluated",
        "satisfied": evaluation.satisfied,
        "blocker": evaluation.blocker,
        "reason": evaluation.reason,
        "continues": matches!(judged, Judged::GoesOn(..)),
        "stand_down_reason": evaluation.stand_down_reason,
        "continuation_count": goal.map(|goal| goal.continuation_count),
        "max_continuations": goal.map(|goal| goal.max_continuations),
    })
}

#[cfg(test)]
#[path = "goal_tests.rs"]
mod tests;

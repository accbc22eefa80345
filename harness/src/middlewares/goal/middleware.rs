//! Evaluates the thread's goal before a run ends, and continues the agent while it makes progress.

use async_trait::async_trait;
use serde_json::{Value, json};

use super::evaluate::{Precheck, evaluation_request, precheck, progress_key, read};
use super::state::{Blocker, Evaluation, GOAL, Goal, GoalDecision};
use crate::messages::marks::escaped;
use crate::middlewares::answers::reminder;
use crate::middlewares::hooks::{HookOutcome, HookResult, Hooks, Jump};
use crate::middlewares::middleware::Middleware;
use crate::models::{AuxiliaryModels, Caller};
use crate::runtime::agent::{AgentEvent, RunContext};
use crate::state::{StateUpdate, ThreadState};

/// Caller name under which usage for evaluations is recorded.
const CALLER: &str = "middleware:goal";
/// Name of the message that continues an agent.
const CONTINUATION: &str = "goal_continuation";

/// Continues an agent until the goal of its thread is reached.
///
/// A continuation is part of the same run: viewers and cancel requests of the run include it, and
/// its usage is recorded there. The goal's counters are in the thread's state, so they survive
/// failover.
#[derive(Debug, Clone)]
pub struct GoalMiddleware {
    models: AuxiliaryModels,
    model: String,
}

impl GoalMiddleware {
    /// Creates the middleware; the model entry `model` evaluates the goal.
    pub fn new(models: AuxiliaryModels, model: impl Into<String>) -> Self {
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
        let outcome = match precheck(state.messages()) {
            Precheck::Unchanged => return None,
            Precheck::Blocked(blocker, reason) => blocked(blocker, reason),
            Precheck::Open => {
                let answer = self
                    .models
                    .ask(
                        &evaluation_request(goal, state, &self.model),
                        Caller::within(ctx, CALLER),
                    )
                    .await;
                let unusable = || Evaluation {
                    stand_down_reason: Some("evaluation_failed".to_owned()),
                    ..blocked(Blocker::MissingEvidence, "The goal could not be evaluated.")
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
            ..outcome
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
        let decision = goal.decide(evaluation, ctx.clock.now());
        ctx.sink.emit(AgentEvent::Custom(event(&decision)));
        Ok(match decision {
            GoalDecision::Reached(_) => StateUpdate::channel(GOAL, Value::Null).into(),
            GoalDecision::StandDown(goal, _) => StateUpdate::channel(GOAL, json!(goal)).into(),
            GoalDecision::Continue(goal, evaluation) => {
                let message = reminder(CONTINUATION, &continuation(&objective, &evaluation.reason));
                HookOutcome::from(StateUpdate::messages([message]).and(GOAL, json!(goal)))
                    .jump(Jump::Again)
            }
        })
    }
}

fn blocked(blocker: Blocker, reason: &str) -> Evaluation {
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

/// Builds the message that continues the agent.
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

/// Builds the event for viewers.
fn event(decision: &GoalDecision) -> Value {
    let (evaluation, goal) = match decision {
        GoalDecision::Reached(evaluation) => (evaluation, None),
        GoalDecision::Continue(goal, evaluation) | GoalDecision::StandDown(goal, evaluation) => {
            (evaluation, Some(goal))
        }
    };
    json!({
        "type": "goal_evaluated",
        "satisfied": evaluation.satisfied,
        "blocker": evaluation.blocker,
        "reason": evaluation.reason,
        "continues": matches!(decision, GoalDecision::Continue(..)),
        "stand_down_reason": evaluation.stand_down_reason,
        "continuation_count": goal.map(|goal| goal.continuation_count),
        "max_continuations": goal.map(|goal| goal.max_continuations),
    })
}

#[cfg(test)]
#[path = "goal_tests.rs"]
mod tests;

//! Result of a turn, from the end of the nested agent. Pure.

use serde_json::Value;

use super::KIND;
use crate::flow::adapter::{
    AgentInvocation, AgentTurnResult, ErrorCategory, FlowError, TurnMode, TurnStatus,
};
use crate::flow::structured_output::{final_text, structured_output};
use crate::messages::{Message, MessageKind, kwargs};
use crate::runtime::agent::{AgentError, NestedOutcome};
use crate::state::ThreadState;
use crate::tools::builtins::ASK_CLARIFICATION;

/// Returns the result of a turn, without its usage.
pub(super) fn result_of(
    ended: Result<NestedOutcome, AgentError>,
    turn: &AgentInvocation,
) -> AgentTurnResult {
    match ended {
        Ok(NestedOutcome::Asks(question)) => interrupted(question.question),
        Ok(NestedOutcome::Done(state)) => match clarification(state.messages()) {
            Some(question) => interrupted(question.clone()),
            None => answered(&state, turn),
        },
        Err(error) => {
            let category = match &error {
                AgentError::Model { .. } => ErrorCategory::Model,
                AgentError::RecursionLimit(_) => ErrorCategory::Budget,
                _ => ErrorCategory::Adapter,
            };
            let retryable = category == ErrorCategory::Model;
            let failure = failure("turn_failed", category, error.to_string());
            failed(
                failure
                    .retryable(retryable)
                    .with_detail("name", error.name()),
            )
        }
    }
}

/// Returns the question of `ask_clarification`, if the agent ended with one.
pub(super) fn clarification(messages: &[Message]) -> Option<&Value> {
    let results = messages.iter().rev().take_while(|message| !message.is_ai());
    let mut questions = results.filter_map(|message| match &message.kind {
        MessageKind::Tool { artifact, .. } => artifact.get("human_input"),
        _ => None,
    });
    questions.find(|question| question["source"] == ASK_CLARIFICATION)
}

fn answered(state: &ThreadState, turn: &AgentInvocation) -> AgentTurnResult {
    let Some(last) = state
        .messages()
        .iter()
        .rev()
        .find(|message| message.is_ai())
    else {
        let message = "the agent ended without an answer";
        return failed(failure("turn_failed", ErrorCategory::Adapter, message));
    };
    let text = last.content.text();
    if last.flag(kwargs::ERROR_FALLBACK) {
        let detail = last.additional_kwargs.get("error_detail");
        let detail = detail.and_then(Value::as_str).unwrap_or(&text);
        return failed(failure("turn_failed", ErrorCategory::Model, detail).retryable(true));
    }
    let is_structured = turn.turn_mode != TurnMode::Normal || turn.expected_output.is_some();
    let structured = is_structured
        .then(|| structured_output(&text, turn.turn_mode))
        .flatten();
    AgentTurnResult {
        structured_output: structured.clone(),
        ..AgentTurnResult::completed(final_text(&text, structured.as_ref(), turn.turn_mode))
    }
}

fn interrupted(question: Value) -> AgentTurnResult {
    AgentTurnResult {
        status: TurnStatus::Interrupted,
        interrupt: Some(question),
        ..AgentTurnResult::completed("")
    }
}

pub(super) fn failed(error: FlowError) -> AgentTurnResult {
    AgentTurnResult::ended(TurnStatus::Failed, error)
}

pub(super) fn failure(
    code: &str,
    category: ErrorCategory,
    message: impl Into<String>,
) -> FlowError {
    FlowError {
        adapter_kind: Some(KIND.to_owned()),
        ..FlowError::new(code, category, message)
    }
}

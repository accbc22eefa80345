//! Handles the last answer of a run if a safety filter stopped it, if it was truncated at its
//! maximum length, or if it has no text.

use async_trait::async_trait;
use serde_json::{Value, json};

use super::answers::{begins_run, is_final, last_answer, of_run, reminder, stop_answer};
use super::hooks::{HookOutcome, HookResult, Hooks, Jump};
use super::middleware::{Middleware, ModelNext};
use crate::messages::{Message, MessageKind, kwargs};
use crate::models::{ModelError, ModelRequest};
use crate::runtime::agent::{AgentEvent, RunContext};
use crate::state::{StateUpdate, ThreadState};

/// Stop reason of a run that a safety filter ended.
const SAFETY_CAPPED: &str = "safety_capped";
/// Stop reason of a run whose last answer was truncated.
const LENGTH_CAPPED: &str = "model_length_capped";
/// Name of the reminder that requests an answer from the model.
const RECOVERY: &str = "terminal_response_recovery";
/// Finish reasons of Gemini's safety filter.
const GEMINI_FILTERS: [&str; 5] = [
    "SAFETY",
    "BLOCKLIST",
    "PROHIBITED_CONTENT",
    "SPII",
    "RECITATION",
];
/// Text for the user that replaces a filtered answer.
const FILTERED: &str = "The model's provider stopped this answer with its content filter. Nothing more was done. Please put the request in other words.";
/// Text for the user if the model returned two empty answers.
const NO_ANSWER: &str = "The model did the work above but gave no answer, even after a second request. Please ask for the result again.";
/// Reminder for the model after an empty answer.
const ANSWER_REQUEST: &str = "Your last answer was empty. The user sees nothing of your tool calls: answer now, with what you found and what is still open.";

/// Ensures that every run ends with an answer for the user.
#[derive(Debug, Clone, Copy)]
pub struct FinishGuardMiddleware {
    /// `true` if safety filters are detected.
    pub safety: bool,
}

#[async_trait]
impl Middleware for FinishGuardMiddleware {
    fn name(&self) -> &str {
        "FinishGuardMiddleware"
    }

    fn hooks(&self) -> Hooks {
        Hooks::WRAP_MODEL | Hooks::AFTER_MODEL
    }

    /// Removes empty answers from the request. If the last answer is empty and only reminders
    /// follow it, adds a reminder that requests an answer.
    async fn wrap_model_call(
        &self,
        mut request: ModelRequest,
        _ctx: &RunContext,
        next: ModelNext<'_>,
    ) -> Result<Message, ModelError> {
        let unanswered = request
            .messages
            .iter()
            .rfind(|message| !message.is_human() || begins_run(message))
            .is_some_and(is_empty);
        request.messages.retain(|message| !is_empty(message));
        if unanswered {
            request.messages.push(reminder(RECOVERY, ANSWER_REQUEST));
        }
        next.run(request).await
    }

    async fn after_model(&self, state: &ThreadState, ctx: &RunContext) -> HookResult {
        let run = of_run(state.messages());
        let Some(answer) = last_answer(run) else {
            return Ok(HookOutcome::default());
        };
        let empty: Vec<&Message> = run.iter().filter(|message| is_empty(message)).collect();
        if let Some(filter) = filter(answer).filter(|_| self.safety) {
            tracing::warn!(run_id = %ctx.run_id, thread_id = %ctx.thread_id, filter, "a provider's safety filter stopped an answer");
            ctx.sink.emit(AgentEvent::Custom(
                json!({ "type": SAFETY_EVENT, "reason": filter, "message_id": answer.id }),
            ));
            return Ok(HookOutcome {
                stop_reason: Some(SAFETY_CAPPED.to_owned()),
                ..replace_empty(&empty, filtered(answer, filter)).into()
            });
        }
        let was_retried = empty.len() > 1
            || run
                .iter()
                .any(|message| message.flag(kwargs::ANSWER_RECOVERED));
        let worked = run.iter().any(|message| message.tool_call_id().is_some());
        match (is_empty(answer), worked) {
            (true, false) => Ok(HookOutcome::default()),
            (true, true) if was_retried => Ok(replace_empty(&empty, no_answer(answer)).into()),
            (true, true) => Ok(HookOutcome::default().jump(Jump::Model)),
            (false, _) if empty.is_empty() => Ok(HookOutcome {
                stop_reason: cut(answer),
                ..HookOutcome::default()
            }),
            // The non-empty answer replaces the earlier empty one; only a mark on the message
            // records that there was one.
            (false, _) => Ok(HookOutcome {
                stop_reason: cut(answer),
                ..replace_empty(&empty, recovered(answer)).into()
            }),
        }
    }
}

/// Type of the event that reports a safety filter to viewers.
const SAFETY_EVENT: &str = "safety_termination";

/// Reports whether the model returned a final answer without text.
fn is_empty(answer: &Message) -> bool {
    // The cheaper test first: most messages of a request have a text.
    answer.is_blank() && is_final(answer)
}

fn metadata<'a>(answer: &'a Message, key: &str) -> Option<&'a str> {
    answer.response_metadata.get(key).and_then(Value::as_str)
}

/// Returns the safety filter that stopped the answer, if the answer has calls to remove or has no
/// text.
fn filter(answer: &Message) -> Option<&str> {
    let reason = metadata(answer, "finish_reason").filter(|reason| {
        *reason == "content_filter"
            || GEMINI_FILTERS.contains(reason)
            || reason.starts_with("IMAGE_")
    });
    let refusal = metadata(answer, "stop_reason").filter(|reason| *reason == "refusal");
    let matters = called(answer).next().is_some() || answer.is_blank();
    reason.or(refusal).filter(|_| matters)
}

/// Names of the tools that an answer calls, including calls that cannot be parsed.
fn called(answer: &Message) -> impl Iterator<Item = &str> {
    let unreadable = match &answer.kind {
        MessageKind::Ai {
            invalid_tool_calls, ..
        } => invalid_tool_calls.as_slice(),
        _ => &[],
    };
    let readable = answer.tool_calls().iter().map(|call| call.name.as_str());
    readable.chain(
        unreadable
            .iter()
            .map(|call| call.name.as_deref().unwrap_or_default()),
    )
}

fn filtered(answer: &Message, filter: &str) -> Message {
    let calls: Vec<&str> = called(answer).collect();
    let mark = json!({ "reason": filter, "suppressed_tool_calls": calls });
    stop_answer(answer, SAFETY_CAPPED, FILTERED).with(|body| {
        body.additional_kwargs
            .insert(kwargs::SAFETY_TERMINATION.to_owned(), mark);
    })
}

/// Returns the stop reason if the final answer was truncated at its maximum length.
fn cut(answer: &Message) -> Option<String> {
    let reason = metadata(answer, "finish_reason").or_else(|| metadata(answer, "stop_reason"));
    let cut = reason.is_some_and(|reason| matches!(reason, "length" | "max_tokens" | "MAX_TOKENS"));
    (cut && is_final(answer)).then(|| LENGTH_CAPPED.to_owned())
}

/// Removes all empty answers except this one, and adds their token usage to it.
fn replace_empty(empty: &[&Message], answer: Message) -> StateUpdate {
    let superseded: Vec<&Message> = empty
        .iter()
        .copied()
        .filter(|message| message.id != answer.id)
        .collect();
    let cost = superseded
        .iter()
        .filter_map(|message| message.usage().cloned())
        .reduce(|sum, usage| sum.and(&usage));
    let removed = superseded
        .iter()
        .filter_map(|message| message.id.clone())
        .map(Message::remove);
    let answer = match cost {
        Some(cost) => answer.with(|body| {
            body.additional_kwargs
                .insert(kwargs::FORGOTTEN_USAGE.to_owned(), json!(cost));
        }),
        None => answer,
    };
    StateUpdate::messages(removed.chain([answer]))
}

fn recovered(answer: &Message) -> Message {
    answer.with(|body| {
        body.additional_kwargs
            .insert(kwargs::ANSWER_RECOVERED.to_owned(), json!(true));
    })
}

fn no_answer(answer: &Message) -> Message {
    answer.with(|body| {
        body.content = NO_ANSWER.into();
        for (key, value) in [
            (kwargs::ERROR_FALLBACK, json!(true)),
            ("error_type", json!("EmptyAnswer")),
            ("error_reason", json!("empty_answer")),
            (
                "error_detail",
                json!("the model answered twice without text"),
            ),
        ] {
            body.additional_kwargs.insert(key.to_owned(), value);
        }
    })
}

#[cfg(test)]
#[path = "finish_guard_tests.rs"]
mod tests;

//! Looks at how an answer ended: broken off by a safety filter, cut at its length, or without a word for the user.

use async_trait::async_trait;
use serde_json::{Value, json};

use super::answers::{begins_run, is_final, last_answer, of_run, reminder, stopped};
use super::middleware::{HookOutcome, HookResult, Hooks, Jump, Middleware};
use super::next::ModelNext;
use crate::messages::{Message, MessageKind, kwargs};
use crate::models::{ModelError, ModelRequest};
use crate::runtime::agent::{AgentEvent, RunContext};
use crate::state::{StateUpdate, ThreadState};

/// Why a run ended that a safety filter stopped.
const SAFETY_CAPPED: &str = "safety_capped";
/// Why a run ended whose last answer was cut.
const LENGTH_CAPPED: &str = "model_length_capped";
/// The name of the message that asks for an answer.
const RECOVERY: &str = "terminal_response_recovery";
/// Reasons by which Gemini says that its filter spoke.
const GEMINI_FILTERS: [&str; 5] = [
    "SAFETY",
    "BLOCKLIST",
    "PROHIBITED_CONTENT",
    "SPII",
    "RECITATION",
];
/// What the user reads of an answer that was broken off.
const FILTERED: &str = "The model's provider stopped this answer with its content filter. Nothing more was done. Please put the request in other words.";
/// What the user reads when the model had nothing to say, twice.
const SPEECHLESS: &str = "The model did the work above but gave no answer, also when asked again. Please ask for the result once more.";
/// What the model reads when it had nothing to say.
const SAY_SOMETHING: &str = "Your last answer was empty. The user sees nothing of your tool calls: answer now, with what you found and what is still open.";

/// Gives every run a last word.
#[derive(Debug, Clone, Copy)]
pub struct FinishGuardMiddleware {
    /// Whether safety filters are recognized.
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

    /// No empty answer is sent. One that only reminders came after is the last there is because the model is to be asked again.
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
            request.messages.push(reminder(RECOVERY, SAY_SOMETHING));
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
                ..instead_of(&empty, filtered(answer, filter)).into()
            });
        }
        let asked_again = empty.len() > 1
            || run
                .iter()
                .any(|message| message.flag(kwargs::ANSWER_RECOVERED));
        let worked = run.iter().any(|message| message.tool_call_id().is_some());
        match (is_empty(answer), worked) {
            (true, false) => Ok(HookOutcome::default()),
            (true, true) if asked_again => Ok(instead_of(&empty, speechless(answer)).into()),
            (true, true) => Ok(HookOutcome::default().jump(Jump::Model)),
            (false, _) if empty.is_empty() => Ok(HookOutcome {
                stop_reason: cut(answer),
                ..HookOutcome::default()
            }),
            // What was empty before has been said after all; the mark is what is left of it.
            (false, _) => Ok(HookOutcome {
                stop_reason: cut(answer),
                ..instead_of(&empty, recovered(answer)).into()
            }),
        }
    }
}

/// The event by which viewers learn of a safety filter.
const SAFETY_EVENT: &str = "safety_termination";

/// Whether a model gave an answer without a word in it.
fn is_empty(answer: &Message) -> bool {
    is_final(answer) && answer.content.text().trim().is_empty()
}

fn said<'a>(answer: &'a Message, key: &str) -> Option<&'a str> {
    answer.response_metadata.get(key).and_then(Value::as_str)
}

/// The filter that stopped the answer, if there is something to take back or nothing to read.
fn filter(answer: &Message) -> Option<&str> {
    let reason = said(answer, "finish_reason").filter(|reason| {
        *reason == "content_filter"
            || GEMINI_FILTERS.contains(reason)
            || reason.starts_with("IMAGE_")
    });
    let refusal = said(answer, "stop_reason").filter(|reason| *reason == "refusal");
    let matters = called(answer).next().is_some() || answer.content.text().trim().is_empty();
    reason.or(refusal).filter(|_| matters)
}

/// The tools that an answer calls, also by what cannot be read.
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
    stopped(answer, SAFETY_CAPPED, FILTERED).with(|body| {
        body.additional_kwargs
            .insert(kwargs::SAFETY_TERMINATION.to_owned(), mark);
    })
}

/// Why the run ends, when its last answer was cut at its length.
fn cut(answer: &Message) -> Option<String> {
    let reason = said(answer, "finish_reason").or_else(|| said(answer, "stop_reason"));
    let cut = reason.is_some_and(|reason| matches!(reason, "length" | "max_tokens" | "MAX_TOKENS"));
    (cut && is_final(answer)).then(|| LENGTH_CAPPED.to_owned())
}

/// Takes back empty answers other than this one, which stands for what they cost too.
fn instead_of(empty: &[&Message], answer: Message) -> StateUpdate {
    let gone: Vec<&Message> = empty
        .iter()
        .copied()
        .filter(|message| message.id != answer.id)
        .collect();
    let cost = gone
        .iter()
        .filter_map(|message| message.usage().cloned())
        .reduce(|sum, usage| sum.and(&usage));
    let removed = gone
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

fn speechless(answer: &Message) -> Message {
    answer.with(|body| {
        body.content = SPEECHLESS.into();
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

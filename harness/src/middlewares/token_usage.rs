//! Annotates each answer with the purpose of its tokens, for the interface.

use async_trait::async_trait;
use serde_json::{Value, json};

use super::delegation::TASK;
use super::hooks::Hooks;
use super::middleware::{Middleware, ModelNext};
use crate::messages::{Message, ToolCall, kwargs};
use crate::models::{ModelError, ModelRequest};
use crate::runtime::agent::RunContext;
use crate::tools::builtins::{ASK_CLARIFICATION, WRITE_TODOS};

/// Adds `token_usage_attribution` to every answer.
#[derive(Debug, Clone, Copy, Default)]
pub struct TokenUsageMiddleware;

#[async_trait]
impl Middleware for TokenUsageMiddleware {
    fn name(&self) -> &str {
        "TokenUsageMiddleware"
    }

    fn hooks(&self) -> Hooks {
        Hooks::WRAP_MODEL
    }

    async fn wrap_model_call(
        &self,
        request: ModelRequest,
        _ctx: &RunContext,
        next: ModelNext<'_>,
    ) -> Result<Message, ModelError> {
        Ok(attributed(&next.run(request).await?))
    }
}

/// Updates the annotation after a guard has changed the answer, so that removed calls are not
/// counted.
pub(super) fn with_updated_attribution(answer: Message) -> Message {
    match answer
        .additional_kwargs
        .contains_key(kwargs::TOKEN_USAGE_ATTRIBUTION)
    {
        true => attributed(&answer),
        false => answer,
    }
}

fn attributed(answer: &Message) -> Message {
    answer.with(|body| {
        body.additional_kwargs.insert(
            kwargs::TOKEN_USAGE_ATTRIBUTION.to_owned(),
            attribution(answer),
        );
    })
}

fn attribution(answer: &Message) -> Value {
    let calls = answer.tool_calls();
    let all = |name: &str| !calls.is_empty() && calls.iter().all(|call| call.name == name);
    let kind = match calls {
        [] if answer.is_blank() => "thinking",
        [] => "final_answer",
        _ if all(WRITE_TODOS) => "todo_update",
        _ if all(TASK) => "subagent_dispatch",
        _ => "tool_batch",
    };
    let ids: Vec<&str> = calls.iter().map(|call| call.id.as_str()).collect();
    json!({
        "version": 1,
        "kind": kind,
        "shared_attribution": calls.len() > 1,
        "tool_call_ids": ids,
        "actions": calls.iter().map(action).collect::<Vec<_>>(),
    })
}

fn action(call: &ToolCall) -> Value {
    let kind = match call.name.as_str() {
        ASK_CLARIFICATION => "clarification",
        WRITE_TODOS => "todo_update",
        TASK => "subagent",
        _ => "tool",
    };
    match call
        .args
        .get("description")
        .filter(|description| description.is_string())
    {
        Some(description) => {
            json!({ "kind": kind, "tool_name": call.name, "description": description, "tool_call_id": call.id })
        }
        None => json!({ "kind": kind, "tool_name": call.name, "tool_call_id": call.id }),
    }
}

#[cfg(test)]
#[path = "token_usage_tests.rs"]
mod tests;

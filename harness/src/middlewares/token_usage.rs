//! Notes on each answer what its tokens were spent on, as the interface shows it.

use async_trait::async_trait;
use serde_json::{Value, json};

use super::middleware::{Hooks, Middleware};
use super::next::ModelNext;
use super::subagent_limit::TASK;
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

/// The answer after a guard has changed it: its tokens are not noted as spent on calls that nobody makes.
pub(super) fn attributed_anew(answer: Message) -> Message {
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
        [] if answer.content.text().trim().is_empty() => "thinking",
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
mod tests {
    use super::*;
    use crate::agents::AgentBuilder;
    use crate::agents::test_support::{ReplayModel, Reply, ask, calls};

    #[test]
    fn an_answer_whose_calls_a_guard_took_says_so() {
        let call = ToolCall::new("a", "bash", Default::default());
        let calling = Message::ai("").with(|body| {
            if let crate::messages::MessageKind::Ai { tool_calls, .. } = &mut body.kind {
                tool_calls.push(call);
            }
        });
        let kind = |answer: &Message| {
            answer.additional_kwargs[kwargs::TOKEN_USAGE_ATTRIBUTION]["kind"].clone()
        };
        let noted = attributed(&calling);
        let stopped = super::super::answers::stopped(&noted, "loop_capped", "I stop here.");
        assert_eq!(
            (kind(&noted), kind(&stopped)),
            (json!("tool_batch"), json!("final_answer"))
        );
        assert!(
            !super::super::answers::stopped(&calling, "x", "y")
                .additional_kwargs
                .contains_key(kwargs::TOKEN_USAGE_ATTRIBUTION)
        );
    }

    #[tokio::test]
    async fn answers_say_what_they_were_for() {
        let edit = ("a", "write_file", json!({"description": "write"}));
        let replies = [
            calls([edit, ("b", "ask_clarification", json!({}))]),
            calls([("c", "write_todos", json!({}))]),
            calls([("d", "task", json!({})), ("e", "task", json!({}))]),
            Reply::Say("done"),
        ];
        let said = ask(
            &AgentBuilder::new(ReplayModel::new(replies))
                .middleware(TokenUsageMiddleware)
                .build(),
            "go",
        )
        .await;
        let answers = said
            .state()
            .messages()
            .iter()
            .filter(|message| message.is_ai());
        let noted: Vec<&Value> = answers
            .map(|answer| &answer.additional_kwargs[kwargs::TOKEN_USAGE_ATTRIBUTION])
            .collect();
        let kinds: Vec<&str> = noted
            .iter()
            .map(|note| note["kind"].as_str().unwrap())
            .collect();
        assert_eq!(
            kinds,
            [
                "tool_batch",
                "todo_update",
                "subagent_dispatch",
                "final_answer"
            ]
        );
        let actions = json!([
            {"kind": "tool", "tool_name": "write_file", "description": "write", "tool_call_id": "a"},
            {"kind": "clarification", "tool_name": "ask_clarification", "tool_call_id": "b"},
        ]);
        assert_eq!(
            (&noted[0]["actions"], &noted[0]["shared_attribution"]),
            (&actions, &json!(true))
        );
        assert_eq!(
            noted[3],
            &json!({"version": 1, "kind": "final_answer", "shared_attribution": false, "tool_call_ids": [], "actions": []})
        );
    }
}

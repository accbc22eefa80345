//! Tests of runs over an in-memory runtime.

use std::sync::Arc;

use futures_util::StreamExt;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::*;
use crate::agents::{AgentBuilder, StaticResolver};
use crate::ids::ThreadId;
use crate::models::ScriptedModel;
use crate::runtime::in_memory::runtime_in_memory;
use crate::runtime::runs::{RunLimits, RunsFacade};
use crate::tools::{Tool, ToolContext, ToolError, ToolOutput};

#[derive(Debug, Deserialize, JsonSchema)]
struct NoArgs {}

struct LookTool;

impl Tool for LookTool {
    type Args = NoArgs;

    fn name(&self) -> &str {
        "look"
    }

    fn description(&self) -> &str {
        "Looks."
    }

    async fn call(&self, _args: NoArgs, _ctx: &ToolContext) -> Result<ToolOutput, ToolError> {
        Ok("a garden".into())
    }
}

fn client() -> Client {
    let agent = AgentBuilder::new(Arc::new(ScriptedModel::default()))
        .tool(LookTool)
        .build();
    let parts = runtime_in_memory(Arc::new(
        StaticResolver::new().with_agent("gardener", agent),
    ))
    .unwrap();
    Client::new(Arc::new(RunsFacade::new(parts, RunLimits::default()))).assistant("gardener")
}

async fn collect_events(client: &Client, thread: &ThreadId, words: &str) -> Vec<StreamEvent> {
    client
        .stream(words, thread)
        .await
        .unwrap()
        .map(|event| event.unwrap())
        .collect()
        .await
}

#[tokio::test]
async fn chat_returns_only_the_last_text() {
    let (client, thread) = (client(), ThreadId::parse("t").unwrap());
    assert_eq!(
        client
            .chat("[[tool:look {}]] then say It is green.", &thread)
            .await
            .unwrap(),
        "It is green."
    );
    assert_eq!(
        client.chat("then say Still green.", &thread).await.unwrap(),
        "Still green."
    );
}

#[tokio::test]
async fn events_match_the_state_and_end_once() {
    let (client, thread) = (client(), ThreadId::parse("t").unwrap());
    collect_events(&client, &thread, "then say before").await;
    let events = collect_events(&client, &thread, "[[tool:look {}]] then say It is green.").await;
    let of = |kind| events.iter().filter(move |event| event.kind == kind);
    let text: String = events
        .iter()
        .filter_map(|event| event.text())
        .map(|(_, text)| text)
        .collect();
    assert_eq!(text, "It is green.");
    let calls: Vec<&Value> = of(EventKind::MessagesTuple)
        .flat_map(|event| event.data["tool_calls"].as_array().into_iter().flatten())
        .collect();
    assert_eq!(calls.len(), 1);
    let results: Vec<&Value> = of(EventKind::MessagesTuple)
        .map(|event| &event.data)
        .filter(|data| data["type"] == "tool")
        .collect();
    assert_eq!(
        (
            results.len(),
            &results[0]["content"],
            &results[0]["tool_call_id"]
        ),
        (1, &"a garden".into(), &calls[0]["id"])
    );
    let last = of(EventKind::Values).next_back().unwrap();
    assert_eq!(last.data["messages"].as_array().unwrap().len(), 6);
    assert_eq!(of(EventKind::End).count(), 1);
    let end = events.last().unwrap();
    assert_eq!(end.kind, EventKind::End);
    assert!(end.data["usage"]["total_tokens"].as_u64().unwrap() > 0);
}

#[tokio::test]
async fn failed_run_reports_error_and_thread_stays_usable() {
    let (client, thread) = (client(), ThreadId::parse("t").unwrap());
    let options = ChatOptions {
        recursion_limit: 1,
        ..ChatOptions::default()
    };
    let conversation = client
        .stream_with("[[tool:look {}]] then say on", &thread, &options)
        .await
        .unwrap();
    let last = conversation.collect::<Vec<_>>().await.pop().unwrap();
    assert!(
        matches!(&last, Err(ClientError::Failed { name, .. }) if name.contains("Recursion")),
        "{last:?}"
    );
    assert_eq!(client.chat("then say on", &thread).await.unwrap(), "on");
}

#[tokio::test]
async fn cancelled_run_keeps_its_output() {
    let (client, thread) = (client(), ThreadId::parse("t").unwrap());
    let mut conversation = client
        .stream("[[slow 1000x20ms]] then say a long story", &thread)
        .await
        .unwrap();
    let mut received = String::new();
    while received.is_empty() {
        received.extend(
            conversation
                .next()
                .await
                .unwrap()
                .unwrap()
                .text()
                .map(|(_, text)| text.to_owned()),
        );
    }
    client
        .cancel(&thread, &conversation.run_id.clone())
        .await
        .unwrap();
    let rest: Vec<_> = conversation.map(|event| event.unwrap()).collect().await;
    assert_eq!(rest.last().unwrap().kind, EventKind::End);
}

#[tokio::test]
async fn unknown_assistant_fails_before_the_run() {
    let refused = client()
        .assistant("unknown")
        .chat("then say hi", &ThreadId::parse("t").unwrap())
        .await;
    assert!(matches!(refused, Err(ClientError::Run(_))), "{refused:?}");
}

//! Tests of tool calls that need approval, and of cancelled runs.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::*;
use crate::agents::{AgentBuilder, NestedEnd, StaticResolver, run_nested};
use crate::config::GuardrailProviderConfig;
use crate::ids::ThreadId;
use crate::messages::{Content, Message};
use crate::middlewares::guardrail::{GuardrailMiddleware, policy_of};
use crate::models::ScriptedModel;
use crate::runtime::agent::Agent;
use crate::runtime::in_memory::runtime_in_memory;
use crate::runtime::runs::{RunLimits, RunQueries, RunsFacade};
use crate::runtime::stream_bridge::ResumeFrom;
use crate::tools::builtins::WriteTodos;
use crate::tools::{Effect, Tool, ToolContext, ToolError, ToolOutput};

const ONE_CALL: &str = r#"[[tool:write_todos {"todos":[]}]] then say done"#;
const TWO_CALLS: &str = r#"[[tools:[{"name":"write_todos","args":{"todos":[]}},{"name":"write_todos","args":{"todos":[]}}]]] then say done"#;

/// Returns an agent whose calls all need approval.
fn guarded() -> Arc<dyn Agent> {
    let section: GuardrailProviderConfig =
        serde_json::from_value(json!({"use": "rules", "config": {"default": "ask"}})).unwrap();
    let guard = GuardrailMiddleware::new(policy_of(Some(&section)), true, None);
    AgentBuilder::new(Arc::new(ScriptedModel::default()))
        .tool(WriteTodos)
        .middleware(guard)
        .build()
}

/// Tool that runs a guarded agent and returns the results of its calls.
struct Delegate;

#[derive(Debug, Deserialize, JsonSchema)]
struct NoArgs {}

impl Tool for Delegate {
    type Args = NoArgs;

    fn name(&self) -> &str {
        "delegate"
    }

    fn description(&self) -> &str {
        "Hands a task on."
    }

    fn effect(&self, _args: &NoArgs) -> Effect {
        Effect::Pure
    }

    async fn call(&self, _args: NoArgs, ctx: &ToolContext) -> Result<ToolOutput, ToolError> {
        match run_nested(&*guarded(), [Message::human(ONE_CALL)], ctx).await {
            Ok(NestedEnd::Done(state)) => {
                let results = state
                    .messages()
                    .iter()
                    .filter(|message| message.tool_call_id().is_some());
                Ok(results
                    .map(|message| message.content.text())
                    .collect::<Vec<_>>()
                    .join("; ")
                    .into())
            }
            Ok(NestedEnd::Asks(control)) => Ok(ToolOutput::only(control)),
            Err(error) => Err(ToolError::for_model(error.to_string())),
        }
    }
}

/// Returns a client of an agent whose calls all need approval.
fn client() -> Client {
    client_of(guarded())
}

fn client_of(agent: Arc<dyn Agent>) -> Client {
    let parts =
        runtime_in_memory(Arc::new(StaticResolver::new().with_agent("guarded", agent))).unwrap();
    Client::new(Arc::new(RunsFacade::new(parts, RunLimits::default()))).assistant("guarded")
}

async fn collect_events(conversation: Conversation) -> Vec<StreamEvent> {
    conversation.map(|event| event.unwrap()).collect().await
}

/// Returns the results of calls in these events.
fn results(events: &[StreamEvent]) -> Vec<String> {
    let results = events
        .iter()
        .filter(|event| event.kind == EventKind::MessagesTuple && event.data["type"] == "tool");
    results
        .map(|event| Content::text_in(&event.data["content"]))
        .collect()
}

#[tokio::test]
async fn guarded_call_runs_only_after_approval() {
    for (answer, expected) in [
        (json!(true), "The todo list"),
        (json!({"decisions": [{"type": "approve"}]}), "The todo list"),
        (
            json!({"decisions": [{"type": "reject"}]}),
            "Error: the call of write_todos was denied",
        ),
        (json!("yes"), "The todo list"),
        (json!("no"), "Error: the call of write_todos was denied"),
    ] {
        let (client, thread) = (client(), ThreadId::parse("t").unwrap());
        let interrupted = collect_events(client.stream(ONE_CALL, &thread).await.unwrap()).await;
        let end = interrupted.last().unwrap();
        let questions = end.questions();
        assert_eq!(
            (
                results(&interrupted).len(),
                questions.len(),
                &end.data["status"]
            ),
            (0, 1, &json!("success"))
        );
        assert_eq!(
            questions[0].value["action_requests"][0]["name"],
            "write_todos"
        );
        let resumed = collect_events(client.resume(answer.clone(), &thread).await.unwrap()).await;
        assert!(
            results(&resumed)[0].starts_with(expected),
            "{answer}: {:?}",
            results(&resumed)
        );
        let end = resumed.last().unwrap();
        assert_eq!(
            (end.data.get("questions"), &end.data["status"]),
            (None, &json!("success"))
        );
    }
}

#[tokio::test]
async fn invalid_answer_keeps_the_interrupt_open() {
    let (client, thread) = (client(), ThreadId::parse("t").unwrap());
    collect_events(client.stream(ONE_CALL, &thread).await.unwrap()).await;
    let repeated = collect_events(client.resume(json!("maybe"), &thread).await.unwrap()).await;
    let questions = repeated.last().unwrap().questions();
    assert_eq!((results(&repeated).len(), questions.len()), (0, 1));
    assert!(
        questions[0]
            .error()
            .unwrap()
            .contains("\"maybe\" is not a decision"),
        "{questions:?}"
    );
    let resumed = collect_events(client.resume(json!("yes"), &thread).await.unwrap()).await;
    assert!(
        results(&resumed)[0].starts_with("The todo list"),
        "{:?}",
        results(&resumed)
    );
}

#[tokio::test]
async fn nested_agent_repeats_interrupt_and_accepts_edit() {
    let outer = AgentBuilder::new(Arc::new(ScriptedModel::default()))
        .tool(Delegate)
        .build();
    let (client, thread) = (client_of(outer), ThreadId::parse("t").unwrap());
    let interrupted = collect_events(
        client
            .stream("[[tool:delegate {}]] then say done", &thread)
            .await
            .unwrap(),
    )
    .await;
    let first = interrupted.last().unwrap().questions();
    let repeated = collect_events(
        client
            .resume(json!({"decisions": []}), &thread)
            .await
            .unwrap(),
    )
    .await;
    let questions = repeated.last().unwrap().questions();
    assert_eq!(
        (questions.len(), &questions[0].id),
        (1, &first[0].id),
        "{questions:?}"
    );
    assert!(
        questions[0].error().unwrap().contains("0 decisions"),
        "{questions:?}"
    );
    let todos = json!([{"content": "rest", "status": "pending"}]);
    let edit =
        json!([{"type": "edit", "args": {"action": "write_todos", "args": {"todos": todos}}}]);
    let resumed = collect_events(client.resume(edit, &thread).await.unwrap()).await;
    let result = results(&resumed).pop().unwrap();
    assert!(
        result.starts_with("Note: the user changed this call") && result.contains("The todo list"),
        "{result}"
    );
}

#[tokio::test]
async fn interrupts_are_answered_by_id_and_others_stay_open() {
    let (client, thread) = (client(), ThreadId::parse("t").unwrap());
    let Err(ClientError::Asked { said, questions }) = client.chat(TWO_CALLS, &thread).await else {
        panic!("the run has no open interrupt")
    };
    assert_eq!((said.as_str(), questions.len()), ("", 2));
    let partial = collect_events(
        client
            .resume(json!({ questions[0].id.as_str(): true }), &thread)
            .await
            .unwrap(),
    )
    .await;
    assert_eq!(partial.last().unwrap().questions(), questions[1..]);
    let remaining: Map<String, Value> = questions[1..]
        .iter()
        .map(|question| (question.id.clone(), json!(false)))
        .collect();
    let resumed = collect_events(client.resume(remaining.into(), &thread).await.unwrap()).await;
    let results = results(&resumed);
    assert_eq!(
        results
            .iter()
            .filter(|result| result.contains("approval.rejected"))
            .count(),
        1,
        "{results:?}"
    );
    assert!(resumed.last().unwrap().questions().is_empty());
}

#[tokio::test]
async fn resume_rejects_ambiguous_answer_and_unknown_thread() {
    let (client, thread) = (client(), ThreadId::parse("t").unwrap());
    collect_events(client.stream(TWO_CALLS, &thread).await.unwrap()).await;
    let refused = client
        .resume(json!(true), &thread)
        .await
        .unwrap()
        .collect::<Vec<_>>()
        .await
        .pop();
    assert!(
        matches!(&refused, Some(Err(ClientError::Failed { message, .. })) if message.contains("2 questions")),
        "{refused:?}"
    );
    let unknown = client
        .resume(json!(true), &ThreadId::parse("nowhere").unwrap())
        .await;
    assert!(matches!(unknown, Err(ClientError::Run(_))), "{unknown:?}");
}

#[tokio::test]
async fn cancelled_run_returns_error_and_ends_as_interrupted() {
    let (client, thread) = (client(), ThreadId::parse("t").unwrap());
    let queries = RunQueries::new(client.runs().runtime());
    let stopping = async {
        let run = loop {
            match queries.unfinished(Some(&thread)).await.unwrap().pop() {
                Some(run) => break run.run_id,
                None => tokio::task::yield_now().await,
            }
        };
        let watched = client
            .runs()
            .join_stream(
                Some(&thread),
                &run,
                ResumeFrom::Start,
                Duration::from_secs(60),
            )
            .await
            .unwrap();
        client.cancel(&thread, &run).await.unwrap();
        collect_events(Conversation::of(watched)).await
    };
    let (answer, events) = tokio::join!(
        client.chat("[[slow 1000x20ms]] then say a long story", &thread),
        stopping
    );
    assert!(
        matches!(answer, Err(ClientError::Cancelled { .. })),
        "{answer:?}"
    );
    let end = events.last().unwrap();
    assert!(
        end.is_cancelled() && end.data["status"] == "interrupted",
        "{end:?}"
    );
}

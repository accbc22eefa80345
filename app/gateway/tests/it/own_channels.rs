//! An assistant with channels and an input of its own, on every route that reads or writes channels.

use std::sync::Arc;

use async_trait::async_trait;
use harness::runtime::agent::{
    Agent, AgentError, AgentEvent, AgentInput, AgentOutcome, AgentResolver, AgentStream,
    AssistantInfo, EventReceiver, InputError, RunContext, StepEvent, StopKind, UnknownAssistant,
};
use harness::state::{Channels, Reducer, StateUpdate};
use serde_json::{Map, Value, json};

use crate::support::Gateway;

/// Copies its channel `input` into `ports`.
#[derive(Debug)]
struct Copying;

impl Agent for Copying {
    fn channels(&self) -> Channels {
        [
            ("input", Reducer::LastWrite),
            ("ports", Reducer::MergeKeys),
            ("title", Reducer::LastWrite),
        ]
        .into_iter()
        .try_fold(Channels::empty(), |channels, (name, reducer)| {
            channels.with(name, reducer)
        })
        .expect("valid channels")
    }

    fn read_input(&self, mut input: Map<String, Value>) -> Result<Map<String, Value>, InputError> {
        let prompt = input.get("prompt").cloned();
        if let Some(value) = prompt.clone().filter(|prompt| !prompt.is_string()) {
            return Err(InputError::Invalid {
                path: vec!["prompt".to_owned()],
                reason: "Input should be a valid string".to_owned(),
                value,
            });
        }
        let mut values = Map::new();
        values.extend(prompt.map(|prompt| ("messages".to_owned(), prompt)));
        values.extend(input.shift_remove_entry("messages"));
        values.insert("input".to_owned(), input.into());
        Ok(values)
    }

    fn stream(&self, input: AgentInput, ctx: RunContext, events: EventReceiver) -> AgentStream {
        AgentStream::new(events, Box::pin(copy(input, ctx)))
    }

    fn nodes(&self) -> Vec<String> {
        vec!["copy".to_owned()]
    }
}

async fn copy(input: AgentInput, ctx: RunContext) -> Result<AgentOutcome, AgentError> {
    let mut state = input.state;
    let sent = state.channel("input").cloned().unwrap_or_default();
    let update = StateUpdate::channel("ports", json!({ "copy": sent }));
    state.apply(update.clone(), &*ctx.ids)?;
    ctx.sink.emit(AgentEvent::Step(StepEvent {
        node: "copy".to_owned(),
        update: Some(update),
        state: Arc::new(state),
        next: vec![],
        machine: Value::Null,
        steps: 1,
        checkpoint: true,
    }));
    Ok(AgentOutcome {
        kind: StopKind::Completed,
        stop_reason: None,
    })
}

#[derive(Debug)]
struct OnlyCopying;

#[async_trait]
impl AgentResolver for OnlyCopying {
    async fn resolve(
        &self,
        assistant: &str,
        _options: &Map<String, Value>,
    ) -> Result<Arc<dyn Agent>, UnknownAssistant> {
        match assistant {
            "copying" => Ok(Arc::new(Copying)),
            other => Err(UnknownAssistant::NotFound(other.to_owned())),
        }
    }

    async fn list(&self) -> Vec<AssistantInfo> {
        vec![AssistantInfo {
            name: "copying".to_owned(),
            description: None,
        }]
    }
}

/// Returns a gateway, and the id of a thread whose last run has copied `{"a": 1}`.
async fn after_run() -> (Gateway, String) {
    let gateway = Gateway::with_assistants(Arc::new(OnlyCopying));
    let thread = gateway.post("/threads", json!({})).await.json();
    let thread = thread["thread_id"].as_str().expect("an id").to_owned();
    let run = json!({ "assistant_id": "copying", "input": { "a": 1, "prompt": "Copy" } });
    let path = format!("/threads/{thread}/runs/wait");
    let values = gateway.post(&path, run).await.json();
    assert_eq!(values["messages"][0]["content"], "Copy");
    assert_eq!(values["input"], json!({ "a": 1, "prompt": "Copy" }));
    assert_eq!(values["ports"]["copy"], values["input"]);
    (gateway, thread)
}

#[tokio::test]
async fn own_channels_are_stored_and_served() {
    let (gateway, thread) = after_run().await;
    for prefix in ["", "/api"] {
        let path = format!("{prefix}/threads/{thread}/state");
        let state = gateway.get(&path).await.json();
        assert_eq!(state["values"]["ports"]["copy"]["a"], 1, "{path}");
    }
}

#[tokio::test]
async fn external_update_follows_the_channels_of_the_agent() {
    let (gateway, thread) = after_run().await;
    let path = format!("/threads/{thread}/state");
    let update = json!({ "values": { "ports": { "copy": null, "other": 2 } } });
    assert_eq!(gateway.post(&path, update).await.code(), 200);
    let state = gateway.get(&path).await.json();
    assert_eq!(state["values"]["ports"], json!({ "other": 2 }));
    for path in [path.clone(), format!("/api{path}")] {
        let foreign = json!({ "values": { "todos": [] } });
        let response = gateway.post(&path, foreign).await;
        assert_eq!(response.code(), 422);
        let text = response.json().to_string();
        assert!(
            text.contains("Unknown thread-state field(s): todos"),
            "{text}"
        );
    }
}

#[tokio::test]
async fn input_refused_by_the_agent_is_422_with_its_place() {
    let (gateway, thread) = after_run().await;
    let run = json!({ "assistant_id": "copying", "input": { "prompt": 1 } });
    for path in [format!("/threads/{thread}/runs"), "/runs/wait".to_owned()] {
        let response = gateway.post(&path, run.clone()).await;
        assert_eq!(response.code(), 422, "{path}");
        assert_eq!(
            response.json()["detail"],
            "value_error: Input should be a valid string\n\nOn body[\"input\"][\"prompt\"]:\n    1"
        );
    }
    let path = format!("/api/threads/{thread}/runs/stream");
    let response = gateway.post(&path, run).await;
    assert_eq!(response.code(), 422);
    let issue = &response.json()["detail"][0];
    assert_eq!(issue["loc"], json!(["body", "input", "prompt"]));
    assert_eq!(issue["input"], 1);
}

#[tokio::test]
async fn schemas_have_the_channels_of_the_agent() {
    let gateway = Gateway::with_assistants(Arc::new(OnlyCopying));
    let assistants = gateway.post("/assistants/search", json!({})).await.json();
    let id = assistants[0]["assistant_id"].as_str().expect("an id");
    let schemas = gateway.get(&format!("/assistants/{id}/schemas")).await;
    let schemas = schemas.json();
    let names: Vec<_> = schemas["state_schema"]["properties"]
        .as_object()
        .expect("an object")
        .keys()
        .collect();
    assert_eq!(names, ["messages", "input", "ports", "title"]);
}

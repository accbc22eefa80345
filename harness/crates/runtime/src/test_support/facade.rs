//! Runtimes over in-memory stores, requests to them, and readers of their results.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use serde_json::{Value, json};

use super::scripted_agents::Agents;
use crate::in_memory::runtime_in_memory;
use crate::runs::*;
use crate::stream_bridge::{ResumeFrom, StreamItem};
use deerflow_core::actor_context::{ActorContext, scope};
use deerflow_core::ids::{RunId, ThreadId};
use deerflow_core::messages::Message;

pub(crate) const BEAT: Duration = Duration::from_secs(15);

pub(crate) fn facade() -> RunsFacade {
    over(runtime_in_memory(Arc::new(Agents::default())).unwrap())
}

/// Creates another process over the same stores.
pub(crate) fn over(ports: RuntimePorts) -> RunsFacade {
    RunsFacade::new(
        RuntimePorts {
            tasks: Default::default(),
            ..ports
        },
        RunLimits::default(),
    )
}

/// Returns the startup and shutdown operations of a process.
pub(crate) fn lifecycle(process: &RunsFacade) -> NodeLifecycle {
    NodeLifecycle::new(process.runtime())
}

pub(crate) fn thread() -> ThreadId {
    ThreadId::parse("t1").unwrap()
}

pub(crate) fn spec(assistant: &str) -> RunRequest {
    let request_echo =
        json!({ "input": { "messages": [{ "type": "human", "content": "hello" }] } });
    RunRequest {
        stream_modes: [
            StreamMode::Values,
            StreamMode::MessagesTuple,
            StreamMode::Updates,
        ]
        .into_iter()
        .collect(),
        presentation: RunPresentation {
            echo_input: true,
            request_echo: request_echo.into(),
            ..RunPresentation::default()
        },
        ..RunRequest::ask(assistant, thread(), Message::human("hello"))
    }
}

pub(crate) async fn as_user<F: Future>(work: F) -> F::Output {
    scope(ActorContext::user("ann"), work).await
}

/// Reads a stream to its end. Returns the names of its events, and its end.
pub(crate) async fn drain(stream: RunStream) -> (Vec<String>, Option<StreamItem>) {
    let mut names = Vec::new();
    let mut last = None;
    let mut items = stream.items;
    while let Some(item) = items.next().await {
        match item {
            StreamItem::Event(event) => names.push(event.event.into_owned()),
            StreamItem::Heartbeat => {}
            end => last = Some(end),
        }
    }
    (names, last)
}

pub(crate) async fn wait_for_tokens(facade: &RunsFacade, run: &RunId) {
    let stream = facade
        .join_stream(None, run, ResumeFrom::Start, BEAT)
        .await
        .unwrap();
    let mut items = stream.items;
    let mut tokens = 0;
    while tokens < 2 {
        if let Some(StreamItem::Event(event)) = items.next().await
            && event.event == "messages"
        {
            tokens += 1;
        }
    }
}

pub(crate) fn texts(outcome: &WaitOutcome) -> Vec<String> {
    let values = match outcome {
        WaitOutcome::Values(values) => values,
        WaitOutcome::Failed { values, .. } => values.as_ref().unwrap(),
    };
    let values: Value = serde_json::from_slice(&values.clone().into_bytes()).unwrap();
    values["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["content"].as_str().unwrap().to_owned())
        .collect()
}

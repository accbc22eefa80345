//! Agents in a full in-memory runtime: the contents of a thread after its runs.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::sync::Notify;

use crate::agents::lead::{LEAD_AGENT, LeadAgentSpec, LeadAgents};
use crate::agents::{AgentBuilder, StaticResolver};
use crate::clock::SystemClock;
use crate::ids::ThreadId;
use crate::messages::Message;
use crate::models::{ModelCatalog, ScriptedModel};
use crate::runtime::actor_context::{ActorContext, DEFAULT_USER_ID, scope};
use crate::runtime::checkpoint::Snapshot;
use crate::runtime::in_memory::runtime_in_memory;
use crate::runtime::runs::{
    CancelAction, NodeSelector, RunInput, RunLimits, RunRequest, RunStatus, RunsFacade, WaitOutcome,
};
use crate::runtime::stream_bridge::StreamItem;
use crate::tools::{Tool, ToolContext, ToolControl, ToolError, ToolOutput, ToolRegistry};

#[derive(Debug, Deserialize, JsonSchema)]
struct NoArgs {}

/// Tool that notifies about its call and never ends.
struct HangingTool(Arc<Notify>);

impl Tool for HangingTool {
    type Args = NoArgs;

    fn name(&self) -> &str {
        "stuck"
    }

    fn description(&self) -> &str {
        "Never ends."
    }

    async fn call(&self, _args: NoArgs, _ctx: &ToolContext) -> Result<ToolOutput, ToolError> {
        self.0.notify_one();
        std::future::pending().await
    }
}

/// Tool that asks the user once.
struct AskTool;

impl Tool for AskTool {
    type Args = NoArgs;

    fn name(&self) -> &str {
        "asking"
    }

    fn description(&self) -> &str {
        "Asks."
    }

    async fn call(&self, _args: NoArgs, ctx: &ToolContext) -> Result<ToolOutput, ToolError> {
        Ok(match ctx.answers.first() {
            None => ToolOutput::only(ToolControl::Ask(json!("which?"))),
            Some(answer) => answer.to_string().into(),
        })
    }
}

struct Rig {
    runs: RunsFacade,
    stuck: Arc<Notify>,
}

fn rig() -> Rig {
    let stuck = Arc::new(Notify::new());
    let models =
        ModelCatalog::new([], Arc::new(SystemClock)).with_model(Arc::new(ScriptedModel::default()));
    let spec = LeadAgentSpec {
        tools: ToolRegistry::new()
            .with(HangingTool(stuck.clone()))
            .with(AskTool),
        ..LeadAgentSpec::new(Arc::new(models))
    };
    let plain = AgentBuilder::new(Arc::new(ScriptedModel::default()))
        .tool(AskTool)
        .build();
    let agents = StaticResolver::new()
        .with(LEAD_AGENT, LeadAgents::new(spec))
        .with_agent("plain", plain);
    Rig {
        runs: RunsFacade::new(
            runtime_in_memory(Arc::new(agents)).unwrap(),
            RunLimits::default(),
        ),
        stuck,
    }
}

impl Rig {
    async fn thread(&self) -> Snapshot {
        self.runs
            .runtime()
            .ports()
            .checkpointer
            .get(&thread(), None)
            .await
            .unwrap()
            .unwrap()
    }

    async fn texts(&self) -> Vec<String> {
        super::test_support::transcript(self.thread().await.state.messages())
    }

    async fn wait(&self, spec: RunRequest) -> WaitOutcome {
        self.runs.create_and_wait(spec).await.unwrap().1
    }
}

fn thread() -> ThreadId {
    ThreadId::parse("t").unwrap()
}

fn say(text: &str) -> RunRequest {
    RunRequest::ask(LEAD_AGENT, thread(), Message::human(text))
}

#[tokio::test]
async fn tool_run_stores_each_message_once_and_leaves_no_task() {
    let rig = rig();
    rig.wait(say("then say fine")).await;
    assert_eq!(rig.texts().await, ["human:then say fine", "ai:fine"]);
    rig.wait(say("[[tool:ask_clarification {\"question\":\"which?\",\"clarification_type\":\"missing_info\"}]]")).await;
    let after = rig.thread().await;
    assert!(after.meta.next.is_empty() && after.meta.machine.is_none());
    assert_eq!(
        after.state.messages().last().unwrap().content.text(),
        "❓ which?"
    );
    let places: Vec<Option<u64>> = (1..=after.log_tail).map(Some).collect();
    assert_eq!(
        after.state.log_places(),
        places,
        "the journal has each message once, in order"
    );
    let questions = after
        .state
        .messages()
        .iter()
        .filter(|message| message.is_human());
    assert!(
        questions
            .clone()
            .all(|message| message.additional_kwargs.contains_key("run_id")),
        "{questions:?}"
    );
    assert!(after.state.title().is_some());
}

#[tokio::test]
async fn run_succeeds_after_a_cancel_in_a_tool() {
    let rig = rig();
    let record = rig
        .runs
        .create_background(say("[[tool:stuck {}]]"))
        .await
        .unwrap();
    rig.stuck.notified().await;
    let cancel = rig
        .runs
        .cancel(None, &record.run_id, CancelAction::Interrupt, true);
    let ended = scope(ActorContext::user(DEFAULT_USER_ID), cancel)
        .await
        .unwrap();
    assert_eq!(ended.status, RunStatus::Interrupted);
    let cut = rig.thread().await;
    assert_eq!(cut.meta.next[0].name, "tools");
    assert!(
        cut.state.title().is_some(),
        "an interrupted conversation gets a title as well"
    );
    rig.wait(say("then say better")).await;
    assert_eq!(
        rig.texts().await.last().map(String::as_str),
        Some("ai:better")
    );
    assert!(rig.thread().await.meta.next.is_empty());
}

#[tokio::test]
async fn interrupt_survives_its_run_and_resumes_with_the_answer() {
    let rig = rig();
    rig.wait(RunRequest {
        assistant: "plain".to_owned(),
        ..say("[[tool:asking {}]] then say thanks")
    })
    .await;
    let waiting = rig.thread().await;
    assert_eq!(waiting.meta.next[0].interrupts[0]["value"], "which?");
    let resume = RunRequest {
        assistant: "plain".to_owned(),
        input: RunInput::Resume(json!("red")),
        ..say("")
    };
    rig.wait(resume).await;
    assert_eq!(rig.texts().await[1..], ["ai:", "tool:\"red\"", "ai:thanks"]);
    assert!(rig.thread().await.meta.next.is_empty());
}

#[tokio::test]
async fn next_run_resumes_from_a_saved_breakpoint() {
    let rig = rig();
    let stop = NodeSelector::Named(vec!["tools".to_owned()]);
    rig.wait(RunRequest {
        assistant: "plain".to_owned(),
        interrupt_before: stop,
        ..say("[[tool:asking {}]]")
    })
    .await;
    assert_eq!(rig.thread().await.meta.next[0].name, "tools");
    rig.wait(RunRequest {
        assistant: "plain".to_owned(),
        input: RunInput::Continue,
        ..say("")
    })
    .await;
    assert_eq!(rig.thread().await.meta.next[0].interrupts.len(), 1);
}

#[tokio::test]
async fn message_subscribers_receive_tokens_and_results() {
    let rig = rig();
    let (_, mut stream) = rig
        .runs
        .create_and_stream(say("then say a b c"), Duration::from_secs(15))
        .await
        .unwrap();
    let mut texts = Vec::new();
    while let Some(item) = stream.items.next().await {
        if let StreamItem::Event(event) = item
            && event.event == "messages"
        {
            let (chunk, meta): (Value, Map<String, Value>) =
                serde_json::from_slice(&event.data.into_bytes()).unwrap();
            assert_eq!(meta["langgraph_node"], "model");
            texts.push(chunk["content"].as_str().unwrap().to_owned());
        }
    }
    assert_eq!(texts.concat(), "a b c");
}

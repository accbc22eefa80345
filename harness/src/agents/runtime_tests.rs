//! Agents under the whole runtime, in memory: what a thread holds after its runs.

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
use crate::runtime::memory::runtime_in_memory;
use crate::runtime::runs::{
    CancelAction, NodeSelector, RunInput, RunLimits, RunSpec, RunStatus, RunsFacade, WaitOutcome,
};
use crate::runtime::stream_bridge::StreamItem;
use crate::tools::{Tool, ToolContext, ToolControl, ToolError, ToolOutput, ToolRegistry};

#[derive(Debug, Deserialize, JsonSchema)]
struct Nothing {}

/// Says that it was called, then never ends.
struct Stuck(Arc<Notify>);

impl Tool for Stuck {
    type Args = Nothing;

    fn name(&self) -> &str {
        "stuck"
    }

    fn description(&self) -> &str {
        "Never ends."
    }

    async fn call(&self, _args: Nothing, _ctx: &ToolContext) -> Result<ToolOutput, ToolError> {
        self.0.notify_one();
        std::future::pending().await
    }
}

/// Asks a person once.
struct Asking;

impl Tool for Asking {
    type Args = Nothing;

    fn name(&self) -> &str {
        "asking"
    }

    fn description(&self) -> &str {
        "Asks."
    }

    async fn call(&self, _args: Nothing, ctx: &ToolContext) -> Result<ToolOutput, ToolError> {
        Ok(match ctx.answers.first() {
            None => ToolOutput::only(ToolControl::Ask(json!("which?"))),
            Some(answer) => answer.to_string().into(),
        })
    }
}

struct House {
    runs: RunsFacade,
    stuck: Arc<Notify>,
}

fn house() -> House {
    let stuck = Arc::new(Notify::new());
    let models =
        ModelCatalog::new([], Arc::new(SystemClock)).with_model(Arc::new(ScriptedModel::default()));
    let spec = LeadAgentSpec {
        tools: ToolRegistry::new().with(Stuck(stuck.clone())).with(Asking),
        ..LeadAgentSpec::new(Arc::new(models))
    };
    let plain = AgentBuilder::new(Arc::new(ScriptedModel::default()))
        .tool(Asking)
        .build();
    let agents = StaticResolver::new()
        .with(LEAD_AGENT, LeadAgents::new(spec))
        .with_agent("plain", plain);
    House {
        runs: RunsFacade::new(
            runtime_in_memory(Arc::new(agents)).unwrap(),
            RunLimits::default(),
        ),
        stuck,
    }
}

impl House {
    async fn thread(&self) -> Snapshot {
        self.runs
            .parts()
            .checkpointer
            .get(&thread(), None)
            .await
            .unwrap()
            .unwrap()
    }

    async fn texts(&self) -> Vec<String> {
        super::test_support::transcript(self.thread().await.state.messages())
    }

    async fn wait(&self, spec: RunSpec) -> WaitOutcome {
        self.runs.create_and_wait(spec).await.unwrap().1
    }
}

fn thread() -> ThreadId {
    ThreadId::parse("t").unwrap()
}

fn say(text: &str) -> RunSpec {
    RunSpec::ask(LEAD_AGENT, thread(), Message::human(text))
}

#[tokio::test]
async fn a_run_with_a_tool_stores_each_message_once_and_leaves_nothing_due() {
    let house = house();
    house.wait(say("then say fine")).await;
    assert_eq!(house.texts().await, ["human:then say fine", "ai:fine"]);
    house.wait(say("[[tool:ask_clarification {\"question\":\"which?\",\"clarification_type\":\"missing_info\"}]]")).await;
    let after = house.thread().await;
    assert!(after.meta.next.is_empty() && after.meta.machine.is_none());
    assert_eq!(
        after.state.messages().last().unwrap().content.text(),
        "❓ which?"
    );
    let places: Vec<Option<u64>> = (1..=after.log_tail).map(Some).collect();
    assert_eq!(
        after.state.log_places(),
        places,
        "the log holds each message once, in order"
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
async fn a_cancel_in_a_tool_leaves_a_thread_whose_next_run_works() {
    let house = house();
    let record = house
        .runs
        .create_background(say("[[tool:stuck {}]]"))
        .await
        .unwrap();
    house.stuck.notified().await;
    let cancel = house
        .runs
        .cancel(None, &record.run_id, CancelAction::Interrupt, true);
    let ended = scope(ActorContext::user(DEFAULT_USER_ID), cancel)
        .await
        .unwrap();
    assert_eq!(ended.status, RunStatus::Interrupted);
    let cut = house.thread().await;
    assert_eq!(cut.meta.next[0].name, "tools");
    assert!(
        cut.state.title().is_some(),
        "a conversation that was cut off is named too"
    );
    house.wait(say("then say better")).await;
    assert_eq!(
        house.texts().await.last().map(String::as_str),
        Some("ai:better")
    );
    assert!(house.thread().await.meta.next.is_empty());
}

#[tokio::test]
async fn a_question_survives_its_run_and_its_answer_goes_on() {
    let house = house();
    house
        .wait(RunSpec {
            assistant: "plain".to_owned(),
            ..say("[[tool:asking {}]] then say thanks")
        })
        .await;
    let waiting = house.thread().await;
    assert_eq!(waiting.meta.next[0].interrupts[0]["value"], "which?");
    let resume = RunSpec {
        assistant: "plain".to_owned(),
        input: RunInput::Resume(json!("red")),
        ..say("")
    };
    house.wait(resume).await;
    assert_eq!(
        house.texts().await[1..],
        ["ai:", "tool:\"red\"", "ai:thanks"]
    );
    assert!(house.thread().await.meta.next.is_empty());
}

#[tokio::test]
async fn a_breakpoint_is_saved_and_the_next_run_goes_on_from_it() {
    let house = house();
    let stop = NodeSelector::Named(vec!["tools".to_owned()]);
    house
        .wait(RunSpec {
            assistant: "plain".to_owned(),
            interrupt_before: stop,
            ..say("[[tool:asking {}]]")
        })
        .await;
    assert_eq!(house.thread().await.meta.next[0].name, "tools");
    house
        .wait(RunSpec {
            assistant: "plain".to_owned(),
            input: RunInput::Continue,
            ..say("")
        })
        .await;
    assert_eq!(house.thread().await.meta.next[0].interrupts.len(), 1);
}

#[tokio::test]
async fn viewers_of_messages_read_tokens_and_results() {
    let house = house();
    let (_, mut stream) = house
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

//! Measures the cost of the lead agent's middlewares per model call: a run over a history of 200
//! messages, with and without them.
//!
//! `cargo run --release -p deerflow-harness --example chain_cost`
#![expect(clippy::print_stdout, reason = "this program prints to the terminal")]

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use deerflow_harness as harness;
use futures_util::{StreamExt, stream};
use harness::agents::lead::{LeadAgentSpec, LeadAgents};
use harness::agents::{AgentBuilder, AgentSource};
use harness::clock::SystemClock;
use harness::ids::{RunId, SystemIds, ThreadId};
use harness::messages::{Message, MessageChunk, MessageKind, ToolCall, ToolStatus};
use harness::models::{ChatModel, ModelCatalog, ModelError, ModelInfo, ModelRequest, ModelStream};
use harness::runtime::actor_context::ActorContext;
use harness::runtime::agent::{Agent, AgentInput, AgentStart, CallLog, EventSink, RunContext};
use harness::runtime::checkpoint::NestedStates;
use harness::runtime::runs::NodeSelector;
use harness::state::ThreadState;
use serde_json::{Map, json};
use tokio_util::sync::CancellationToken;

const MESSAGES: usize = 200;
const RUNS: u32 = 300;

/// Model that answers immediately.
#[derive(Debug)]
struct Instantly(ModelInfo);

#[async_trait]
impl ChatModel for Instantly {
    fn info(&self) -> &ModelInfo {
        &self.0
    }

    async fn stream(&self, request: ModelRequest) -> Result<ModelStream, ModelError> {
        let end = MessageChunk {
            content: "done".to_owned(),
            chunk_position: Some("last"),
            ..MessageChunk::empty(request.message_id)
        };
        Ok(stream::iter([Ok(end)]).boxed())
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let info = ModelInfo {
        name: "m".to_owned(),
        model: "m".to_owned(),
        provider: "m".to_owned(),
        supports_vision: true,
    };
    let model = Arc::new(Instantly(info));
    let spec = LeadAgentSpec::new(Arc::new(
        ModelCatalog::new([], Arc::new(SystemClock)).with_model(model.clone()),
    ));
    let options = Map::from_iter([("is_plan_mode".to_owned(), json!(true))]);
    let lead = LeadAgents::new(spec).agent(&options).await?;
    let bare = AgentBuilder::new(model).build();
    let state = conversation();
    let (bare, lead) = (per_run(&bare, &state).await?, per_run(&lead, &state).await?);
    println!(
        "{MESSAGES} messages, mean of {RUNS} runs with one model call: bare {bare:?}, lead {lead:?}, middlewares {:?}",
        lead.saturating_sub(bare)
    );
    Ok(())
}

async fn per_run(agent: &Arc<dyn Agent>, state: &ThreadState) -> Result<Duration, Box<dyn Error>> {
    let mut spent = Duration::ZERO;
    for _ in 0..RUNS {
        let (sink, events) = EventSink::channel();
        let context = RunContext {
            thread_id: ThreadId::parse("t")?,
            run_id: RunId::parse("r")?,
            actor: ActorContext::user("ann"),
            options: Arc::default(),
            tags: vec![],
            namespace: "".into(),
            recursion_limit: 100,
            interrupt_before: NodeSelector::None,
            interrupt_after: NodeSelector::None,
            clock: Arc::new(SystemClock),
            ids: Arc::new(SystemIds::default()),
            sink,
            calls: CallLog::default(),
            token: CancellationToken::new(),
        };
        let input = AgentInput {
            state: state.clone(),
            start: AgentStart::Fresh,
            machine: None,
            step: 0,
            nested: NestedStates::new(),
        };
        let started = Instant::now();
        let mut said = agent.stream(input, context, events);
        while let Some(event) = said.next().await {
            event?;
        }
        spent += started.elapsed();
    }
    Ok(spent / RUNS)
}

/// Builds a history of questions that each took one tool call.
fn conversation() -> ThreadState {
    let mut messages = Vec::with_capacity(MESSAGES);
    for turn in 0..MESSAGES / 4 {
        let call = ToolCall::new(
            format!("c{turn}"),
            "web_search",
            Map::from_iter([("query".to_owned(), json!(turn))]),
        );
        messages.push(Message::human(format!(
            "question {turn}: {}",
            "what is <this>? ".repeat(20)
        )));
        messages.push(Message::ai("").with(|body| {
            if let MessageKind::Ai { tool_calls, .. } = &mut body.kind {
                tool_calls.push(call.clone());
            }
        }));
        messages.push(Message::tool(
            &call,
            "a line of a result\n".repeat(100),
            ToolStatus::Success,
        ));
        messages.push(Message::ai("an answer of some length. ".repeat(20)));
    }
    messages.pop();
    messages.push(Message::human("and now?"));
    let with_id =
        |(at, message): (u64, Message)| (at, message.with(|body| body.id = Some(format!("m{at}"))));
    ThreadState::restored((1..).zip(messages).map(with_id), Default::default())
}

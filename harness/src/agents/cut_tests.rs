//! Ten thousand points at which a run is stopped, killed or has its history rewritten: no provider
//! rejects the next request.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt;
use parking_lot::Mutex;
use serde_json::Value;

use super::AgentBuilder;
use super::test_support::{ReplayModel, Reply, context};
use crate::ids::SeededIds;
use crate::messages::{Message, MessageAccumulator, ToolCall, ToolStatus};
use crate::middlewares::{
    DanglingToolCallMiddleware, FinishGuardMiddleware, LlmErrorMiddleware, SubagentLimitMiddleware,
    ThreadDataMiddleware, ToolErrorMiddleware,
};
use crate::models::http::strict_kit::{StrictServer, strict_servers};
use crate::models::{ChatModel, ModelError, ModelErrorKind, ModelInfo, ModelRequest, ModelStream};
use crate::runtime::agent::{Agent, AgentEvent, AgentInput, AgentStart};
use crate::runtime::checkpoint::NestedStates;
use crate::runtime::runs::NodeSelector;
use crate::state::{StateUpdate, ThreadState};
use crate::tools::{Tool, ToolContext, ToolError, ToolOutput};

/// Number of interruption points in all threads, and in one thread.
const CUTS: u64 = 10_000;
const CUTS_PER_THREAD: u64 = 10;

/// Deterministic random numbers.
#[derive(Debug, Clone)]
struct Rng(u64);

impl Rng {
    /// Returns a number below `sides`.
    fn below(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % sides
    }

    fn one_of<T: Clone>(&mut self, all: &[T]) -> T {
        all[usize::try_from(self.below(all.len() as u64)).unwrap()].clone()
    }
}

/// Model that returns malformed answers and checks every request against strict provider
/// validators.
struct MalformedModel {
    info: ModelInfo,
    rng: Mutex<Rng>,
    servers: Vec<StrictServer>,
    call_count: Mutex<usize>,
    refused: Mutex<Vec<String>>,
}

impl std::fmt::Debug for MalformedModel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("MalformedModel")
    }
}

impl MalformedModel {
    fn reply(&self) -> Reply {
        let mut rng = self.rng.lock();
        let kind = [
            ModelErrorKind::Transient,
            ModelErrorKind::BadRequest,
            ModelErrorKind::Auth,
        ];
        match rng.below(20) {
            0..6 => Reply::Say(rng.one_of(&["done", "a longer answer in words", "  ", ""])),
            6 => Reply::Cut("what was said so far"),
            7 => {
                let kind = rng.one_of(&kind);
                Reply::Fail(ModelError {
                    model: "wild".to_owned(),
                    kind,
                    message: "no".to_owned(),
                    status: None,
                    retry_after: None,
                })
            }
            _ => {
                let number = rng.below(4) + 1;
                let call = |rng: &mut Rng| {
                    let id = rng.one_of(&["a", "a", "b", "functions.x:0", "", "call_1"]);
                    let name = rng.one_of(&[
                        "work",
                        "work",
                        "work",
                        "task",
                        "missing",
                        "",
                        "strange name!",
                    ]);
                    let args = rng.one_of(&[
                        "{}",
                        "{\"text\": \"x\"}",
                        "{\"text\": \"wait\"}",
                        "{\"text\": \"fail\"}",
                        "{oops",
                        "[1]",
                    ]);
                    (id, name, args.to_owned())
                };
                Reply::Call((0..number).map(|_| call(&mut rng)).collect())
            }
        }
    }
}

#[async_trait]
impl ChatModel for MalformedModel {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    async fn stream(&self, request: ModelRequest) -> Result<ModelStream, ModelError> {
        let at = {
            let mut call_count = self.call_count.lock();
            *call_count += 1;
            *call_count
        };
        // Each request is checked by two of the servers in turn.
        let turns = [at * 2, at * 2 + 1].map(|turn| &self.servers[turn % self.servers.len()]);
        self.refused.lock().extend(
            turns
                .into_iter()
                .filter_map(|server| server.refusal(&request)),
        );
        ReplayModel::new([self.reply()]).stream(request).await
    }
}

/// Tool that does what its argument specifies.
#[derive(Debug)]
struct ScriptedTool;

#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
struct ScriptedArgs {
    #[serde(default)]
    text: String,
}

impl Tool for ScriptedTool {
    type Args = ScriptedArgs;

    fn name(&self) -> &str {
        "work"
    }

    fn description(&self) -> &str {
        "Works."
    }

    async fn call(&self, args: ScriptedArgs, _ctx: &ToolContext) -> Result<ToolOutput, ToolError> {
        match args.text.as_str() {
            "wait" => std::future::pending().await,
            "fail" => Err(ToolError::for_model("Error: it broke")),
            _ => Ok("worked".into()),
        }
    }
}

/// A thread as stored and as known to the process.
struct Thread {
    rng: Rng,
    state: ThreadState,
    machine: Option<Value>,
    serial: u64,
}

impl Thread {
    fn apply(&mut self, update: StateUpdate) {
        // A rewrite may name messages that no longer exist.
        let _unknown = self.state.apply(update, &SeededIds::new(self.serial));
    }

    /// Rewrites the history like an external client.
    fn rewrite(&mut self) {
        let messages = self.state.messages();
        if messages.is_empty() {
            return;
        }
        let at = usize::try_from(self.rng.below(messages.len() as u64)).unwrap();
        let one = messages[at].clone();
        let id = |message: &Message| message.id.clone().unwrap_or_default();
        let update = match self.rng.below(5) {
            0 => StateUpdate::messages([Message::remove(id(&one))]),
            1 => StateUpdate::messages(
                messages[at..]
                    .iter()
                    .map(|message| Message::remove(id(message))),
            ),
            2 => StateUpdate::messages([one.with(|body| body.content = "rewritten".into())]),
            3 => StateUpdate::messages([Message::tool(
                &ToolCall::new("a", "work", Default::default()),
                "late",
                ToolStatus::Success,
            )]),
            _ => StateUpdate::messages([one.with(|body| body.id = None)]),
        };
        self.apply(update);
        self.machine = None;
    }

    /// Runs until a point at which the run ends, stops or dies.
    async fn run_to_cut(&mut self, agent: &Arc<dyn Agent>) {
        self.serial += 1_000;
        let resumes = self.machine.is_some() && self.rng.below(2) == 0;
        if !resumes {
            self.machine = None;
            self.apply(StateUpdate::messages([Message::human(format!(
                "question {}",
                self.serial
            ))]));
        }
        let (mut ctx, events) = context(self.serial);
        ctx.ids = Arc::new(SeededIds::new(self.serial + 1));
        ctx.recursion_limit = 2 + self.rng.below(16);
        if self.rng.below(6) == 0 {
            ctx.interrupt_before =
                NodeSelector::Named(vec![self.rng.one_of(&["tools", "model"]).to_owned()]);
        }
        let start = if resumes {
            AgentStart::Continue
        } else {
            AgentStart::Fresh
        };
        let input = AgentInput {
            state: self.state.clone(),
            start,
            machine: self.machine.take(),
            step: 0,
            nested: NestedStates::new(),
        };
        let mut stream = agent.stream(input, ctx, events);
        let (mut latest, mut saved) = ((self.state.clone(), None), (self.state.clone(), None));
        let mut partial: Option<MessageAccumulator> = None;
        let mut remaining = self.rng.below(40);
        // A tool that hangs forever is interrupted like any other step.
        while let Ok(Some(Ok(event))) =
            tokio::time::timeout(Duration::from_secs(600), stream.next()).await
        {
            match event {
                AgentEvent::Step(step) => {
                    partial = None;
                    latest = (
                        ThreadState::clone(&step.state),
                        (!step.next.is_empty()).then_some(step.machine),
                    );
                    if step.checkpoint {
                        saved = latest.clone();
                    }
                }
                AgentEvent::Token(chunk, _) => {
                    if partial
                        .as_ref()
                        .is_none_or(|partial_message| partial_message.id() != chunk.id)
                    {
                        partial = Some(MessageAccumulator::new(chunk.id.clone()));
                    }
                    partial
                        .iter_mut()
                        .for_each(|partial_message| partial_message.push(&chunk));
                }
                _ => {}
            }
            if remaining == 0 {
                break;
            }
            remaining -= 1;
        }
        drop(stream);
        if self.rng.below(2) == 0 {
            // The process died: unsaved state is lost.
            (self.state, self.machine) = saved;
            return;
        }
        (self.state, self.machine) = latest;
        let update = agent.settle(
            &self.state,
            partial.and_then(MessageAccumulator::finish_partial),
        );
        self.apply(update);
    }
}

#[tokio::test(start_paused = true)]
async fn interrupted_or_rewritten_history_is_accepted_by_providers() {
    let info = ModelInfo {
        name: "wild".to_owned(),
        model: "w".to_owned(),
        provider: "w".to_owned(),
        supports_vision: false,
    };
    let model = Arc::new(MalformedModel {
        info,
        rng: Mutex::new(Rng(1)),
        servers: strict_servers(),
        call_count: Mutex::default(),
        refused: Mutex::default(),
    });
    let agent = AgentBuilder::new(model.clone())
        .tool(ScriptedTool)
        .middleware(ThreadDataMiddleware)
        .middleware(DanglingToolCallMiddleware)
        .middleware(LlmErrorMiddleware)
        .middleware(ToolErrorMiddleware)
        .middleware(SubagentLimitMiddleware { max_total: 2 })
        .middleware(FinishGuardMiddleware { safety: true })
        .build();
    for seed in 0..CUTS / CUTS_PER_THREAD {
        let mut thread = Thread {
            rng: Rng(seed * 7_919),
            state: ThreadState::default(),
            machine: None,
            serial: seed * 1_000_000,
        };
        for _ in 0..CUTS_PER_THREAD {
            if thread.rng.below(4) == 0 {
                thread.rewrite();
            }
            thread.run_to_cut(&agent).await;
            let refused = model.refused.lock();
            assert!(refused.is_empty(), "seed {seed}: {}", refused.join("\n"));
        }
    }
    assert!(
        *model.call_count.lock() > 10_000,
        "some requests were malformed"
    );
}

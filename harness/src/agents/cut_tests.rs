//! Ten thousand places at which a run is stopped, killed or has its history rewritten: no provider refuses what comes next.

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

/// Places at which something happens to a run, over all threads, and in one thread.
const POINTS: u64 = 10_000;
const POINTS_OF_A_THREAD: u64 = 10;

/// Throws the same for the same seed.
#[derive(Debug, Clone)]
struct Dice(u64);

impl Dice {
    /// A number below `sides`.
    fn throw(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % sides
    }

    fn one_of<T: Clone>(&mut self, all: &[T]) -> T {
        all[usize::try_from(self.throw(all.len() as u64)).unwrap()].clone()
    }
}

/// A careless model before strict servers.
struct Wild {
    info: ModelInfo,
    dice: Mutex<Dice>,
    servers: Vec<StrictServer>,
    asked: Mutex<usize>,
    refused: Mutex<Vec<String>>,
}

impl std::fmt::Debug for Wild {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Wild")
    }
}

impl Wild {
    fn reply(&self) -> Reply {
        let mut dice = self.dice.lock();
        let kind = [
            ModelErrorKind::Transient,
            ModelErrorKind::BadRequest,
            ModelErrorKind::Auth,
        ];
        match dice.throw(20) {
            0..6 => Reply::Say(dice.one_of(&["done", "a longer answer in words", "  ", ""])),
            6 => Reply::Cut("what was said so far"),
            7 => {
                let kind = dice.one_of(&kind);
                Reply::Fail(ModelError {
                    model: "wild".to_owned(),
                    kind,
                    message: "no".to_owned(),
                    status: None,
                    retry_after: None,
                })
            }
            _ => {
                let number = dice.throw(4) + 1;
                let call = |dice: &mut Dice| {
                    let id = dice.one_of(&["a", "a", "b", "functions.x:0", "", "call_1"]);
                    let name = dice.one_of(&[
                        "work",
                        "work",
                        "work",
                        "task",
                        "missing",
                        "",
                        "strange name!",
                    ]);
                    let args = dice.one_of(&[
                        "{}",
                        "{\"text\": \"x\"}",
                        "{\"text\": \"wait\"}",
                        "{\"text\": \"fail\"}",
                        "{oops",
                        "[1]",
                    ]);
                    (id, name, args.to_owned())
                };
                Reply::Call((0..number).map(|_| call(&mut dice)).collect())
            }
        }
    }
}

#[async_trait]
impl ChatModel for Wild {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    async fn stream(&self, request: ModelRequest) -> Result<ModelStream, ModelError> {
        let at = {
            let mut asked = self.asked.lock();
            *asked += 1;
            *asked
        };
        // Each server is asked in its turn, two of them each time.
        let turns = [at * 2, at * 2 + 1].map(|turn| &self.servers[turn % self.servers.len()]);
        self.refused.lock().extend(
            turns
                .into_iter()
                .filter_map(|server| server.refusal(&request)),
        );
        ReplayModel::new([self.reply()]).stream(request).await
    }
}

/// Does what its argument says.
#[derive(Debug)]
struct Work;

#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
struct WorkArgs {
    #[serde(default)]
    text: String,
}

impl Tool for Work {
    type Args = WorkArgs;

    fn name(&self) -> &str {
        "work"
    }

    fn description(&self) -> &str {
        "Works."
    }

    async fn call(&self, args: WorkArgs, _ctx: &ToolContext) -> Result<ToolOutput, ToolError> {
        match args.text.as_str() {
            "wait" => std::future::pending().await,
            "fail" => Err(ToolError::for_model("Error: it broke")),
            _ => Ok("worked".into()),
        }
    }
}

/// A thread as the store and the process have it.
struct Thread {
    dice: Dice,
    state: ThreadState,
    machine: Option<Value>,
    serial: u64,
}

impl Thread {
    fn apply(&mut self, update: StateUpdate) {
        // A rewrite may name what is gone by now.
        let _unknown = self.state.apply(update, &SeededIds::new(self.serial));
    }

    /// What somebody makes of the history from outside.
    fn rewrite(&mut self) {
        let messages = self.state.messages();
        if messages.is_empty() {
            return;
        }
        let at = usize::try_from(self.dice.throw(messages.len() as u64)).unwrap();
        let one = messages[at].clone();
        let id = |message: &Message| message.id.clone().unwrap_or_default();
        let update = match self.dice.throw(5) {
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

    /// One run to a place where it ends, stops or dies.
    async fn play(&mut self, agent: &Arc<dyn Agent>) {
        self.serial += 1_000;
        let goes_on = self.machine.is_some() && self.dice.throw(2) == 0;
        if !goes_on {
            self.machine = None;
            self.apply(StateUpdate::messages([Message::human(format!(
                "question {}",
                self.serial
            ))]));
        }
        let (mut ctx, events) = context(self.serial);
        ctx.ids = Arc::new(SeededIds::new(self.serial + 1));
        ctx.recursion_limit = 2 + self.dice.throw(16);
        if self.dice.throw(6) == 0 {
            ctx.interrupt_before =
                NodeSelector::Named(vec![self.dice.one_of(&["tools", "model"]).to_owned()]);
        }
        let start = if goes_on {
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
        let (mut reached, mut saved) = ((self.state.clone(), None), (self.state.clone(), None));
        let mut partial: Option<MessageAccumulator> = None;
        let mut left = self.dice.throw(40);
        // A tool that waits for ever is cut off like everything else.
        while let Ok(Some(Ok(event))) =
            tokio::time::timeout(Duration::from_secs(600), stream.next()).await
        {
            match event {
                AgentEvent::Step(step) => {
                    partial = None;
                    reached = (
                        ThreadState::clone(&step.state),
                        (!step.next.is_empty()).then_some(step.machine),
                    );
                    if step.checkpoint {
                        saved = reached.clone();
                    }
                }
                AgentEvent::Token(chunk, _) => {
                    if partial.as_ref().is_none_or(|held| held.id() != chunk.id) {
                        partial = Some(MessageAccumulator::new(chunk.id.clone()));
                    }
                    partial.iter_mut().for_each(|held| held.push(&chunk));
                }
                _ => {}
            }
            if left == 0 {
                break;
            }
            left -= 1;
        }
        drop(stream);
        if self.dice.throw(2) == 0 {
            // The process died: what was not saved is gone.
            (self.state, self.machine) = saved;
            return;
        }
        (self.state, self.machine) = reached;
        let update = agent.settle(
            &self.state,
            partial.and_then(MessageAccumulator::finish_partial),
        );
        self.apply(update);
    }
}

#[tokio::test(start_paused = true)]
async fn no_cut_and_no_rewrite_leaves_a_history_that_a_provider_refuses() {
    let info = ModelInfo {
        name: "wild".to_owned(),
        model: "w".to_owned(),
        provider: "w".to_owned(),
        supports_vision: false,
    };
    let model = Arc::new(Wild {
        info,
        dice: Mutex::new(Dice(1)),
        servers: strict_servers(),
        asked: Mutex::default(),
        refused: Mutex::default(),
    });
    let agent = AgentBuilder::new(model.clone())
        .tool(Work)
        .middleware(ThreadDataMiddleware)
        .middleware(DanglingToolCallMiddleware)
        .middleware(LlmErrorMiddleware)
        .middleware(ToolErrorMiddleware)
        .middleware(SubagentLimitMiddleware { max_total: 2 })
        .middleware(FinishGuardMiddleware { safety: true })
        .build();
    for seed in 0..POINTS / POINTS_OF_A_THREAD {
        let mut thread = Thread {
            dice: Dice(seed * 7_919),
            state: ThreadState::default(),
            machine: None,
            serial: seed * 1_000_000,
        };
        for _ in 0..POINTS_OF_A_THREAD {
            if thread.dice.throw(4) == 0 {
                thread.rewrite();
            }
            thread.play(&agent).await;
            let refused = model.refused.lock();
            assert!(refused.is_empty(), "seed {seed}: {}", refused.join("\n"));
        }
    }
    assert!(
        *model.asked.lock() > 10_000,
        "there was something to refuse"
    );
}

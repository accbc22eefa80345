//! The agent of every run: a model that says words nobody else says, and a tool of each kind that writes down what it does.

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::stream;
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::time::sleep;

use super::world::{Effect as Done, Said, World};
use crate::agents::AgentBuilder;
use crate::messages::{Message, MessageChunk, ToolCallChunk};
use crate::middlewares::DanglingToolCallMiddleware;
use crate::models::{ChatModel, ModelError, ModelInfo, ModelRequest, ModelStream};
use crate::runtime::agent::Agent;
use crate::runtime::process::Process;
use crate::tools::{Effect, Tool, ToolContext, ToolError, ToolOutput};

/// What a run does: the calls of each of its turns, then how many words it ends with.
#[derive(Debug, Clone)]
pub(super) struct Script {
    pub(super) label: String,
    pub(super) turns: Vec<Vec<String>>,
    pub(super) words: usize,
}

impl Script {
    /// As it stands in a message: `label|puts,sends|reads|7`.
    pub(super) fn text(&self) -> String {
        let turns = self.turns.iter().map(|calls| calls.join(","));
        let parts = std::iter::once(self.label.clone())
            .chain(turns)
            .chain([self.words.to_string()]);
        parts.collect::<Vec<_>>().join("|")
    }

    pub(super) fn parse(text: &str) -> Self {
        let mut parts: Vec<&str> = text.split('|').collect();
        let words = parts
            .pop()
            .and_then(|words| words.parse().ok())
            .expect("words");
        let label = parts.remove(0).to_owned();
        Self {
            label,
            turns: parts
                .into_iter()
                .map(|calls| calls.split(',').map(str::to_owned).collect())
                .collect(),
            words,
        }
    }
}

/// The agent as one process has it.
pub(super) fn agent(world: &Arc<World>, process: &Process) -> Arc<dyn Agent> {
    let tool = |name, effect| Doing {
        name,
        effect,
        world: world.clone(),
    };
    AgentBuilder::new(Arc::new(Speaker::new(world.clone(), process.clone())))
        .tool(tool("reads", Effect::Pure))
        .tool(tool("puts", Effect::Keyed))
        .tool(tool("sends", Effect::Unsafe))
        .middleware(DanglingToolCallMiddleware)
        .build()
}

#[derive(Debug)]
struct Speaker {
    info: ModelInfo,
    world: Arc<World>,
    process: Process,
}

impl Speaker {
    fn new(world: Arc<World>, process: Process) -> Self {
        let info = ModelInfo {
            name: "speaker".into(),
            model: "speaker".into(),
            provider: "simulated".into(),
            supports_vision: false,
        };
        Self {
            info,
            world,
            process,
        }
    }
}

/// The provider at work on one answer; it stops when this goes.
struct Speaking {
    world: Arc<World>,
    call: u64,
}

impl Speaking {
    /// Looks whether somebody who could know better speaks on the thread already.
    fn begin(world: &Arc<World>, process: &Process, thread: &str, label: &str) -> Self {
        let (call, others) = {
            let mut books = world.books.lock();
            books.calls += 1;
            let call = books.calls;
            let at_work = books.speaking.values().filter(|(on, of, by, froze)| {
                on == thread
                    && of != label
                    && !by.is_dead()
                    && !by.is_frozen()
                    && by.times_frozen() == *froze
            });
            let others: Vec<String> = at_work.map(|(_, of, ..)| of.clone()).collect();
            // One that comes out of a pause may do a last thing before it notices.
            let others = if process.is_dazed() {
                Vec::new()
            } else {
                others
            };
            let since = if process.is_dazed() {
                0
            } else {
                process.times_frozen()
            };
            books.speaking.insert(
                call,
                (thread.to_owned(), label.to_owned(), process.clone(), since),
            );
            (call, others)
        };
        for other in others {
            world.broken(format_args!(
                "{label} asks the model while {other} of the same thread does"
            ));
        }
        Self {
            world: world.clone(),
            call,
        }
    }
}

impl Drop for Speaking {
    fn drop(&mut self) {
        self.world.books.lock().speaking.remove(&self.call);
    }
}

#[async_trait]
impl ChatModel for Speaker {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    async fn stream(&self, request: ModelRequest) -> Result<ModelStream, ModelError> {
        let (world, id) = (self.world.clone(), request.message_id.clone());
        if let Some(why) = unpaired(&request.messages) {
            world.broken(format_args!("a strict provider refuses the history: {why}"));
        }
        let at = request
            .messages
            .iter()
            .rposition(Message::is_human)
            .expect("somebody asked");
        let script = Script::parse(&request.messages[at].content.text());
        let turn = request.messages[at..]
            .iter()
            .filter(|message| !message.tool_calls().is_empty())
            .count();
        let thread = script
            .label
            .split('-')
            .next()
            .unwrap_or_default()
            .to_owned();
        let speaking = Speaking::begin(&world, &self.process, &thread, &script.label);
        let call = speaking.call;
        world.tell(
            "model",
            format_args!("answers {} turn {turn} as call {call}", script.label),
        );
        let said = Said {
            label: script.label.clone(),
            text: String::new(),
            whole: false,
        };
        world.books.lock().said.insert(id.clone(), said);
        let calls = script.turns.get(turn);
        let words = if calls.is_some() { 1 } else { script.words };
        let mut chunks: Vec<MessageChunk> = (0..words)
            .map(|word| MessageChunk {
                content: format!("w{call}.{word} "),
                ..MessageChunk::empty(&id)
            })
            .collect();
        if let Some(calls) = calls {
            chunks.push(MessageChunk {
                tool_call_chunks: call_chunks(call, calls),
                ..MessageChunk::empty(&id)
            });
        }
        chunks.push(MessageChunk {
            chunk_position: Some("last"),
            ..MessageChunk::empty(&id)
        });
        let answer = stream::unfold(
            (chunks.into_iter(), speaking),
            move |(mut chunks, speaking)| {
                let (world, id) = (world.clone(), id.clone());
                async move {
                    let chunk = chunks.next()?;
                    match world.chance.below(100) {
                        0..50 => {}
                        50..97 => sleep(world.chance.millis(1, 120)).await,
                        _ => sleep(world.chance.millis(500, 3_000)).await,
                    }
                    if let Some(said) = world.books.lock().said.get_mut(&id) {
                        said.text.push_str(&chunk.content);
                        said.whole |= chunk.chunk_position.is_some();
                    }
                    Some((Ok(chunk), (chunks, speaking)))
                }
            },
        );
        Ok(Box::pin(answer))
    }
}

fn call_chunks(call: u64, tools: &[String]) -> Vec<ToolCallChunk> {
    let chunk = |(index, tool): (usize, &String)| ToolCallChunk {
        name: Some(tool.clone()),
        args: Some("{}".to_owned()),
        id: Some(format!("c{call}.{index}")),
        index: u32::try_from(index).expect("few calls"),
        kind: "tool_call_chunk",
    };
    tools.iter().enumerate().map(chunk).collect()
}

/// Why a provider would not take these messages: each call has one result, right behind its answer.
fn unpaired(messages: &[Message]) -> Option<String> {
    let mut open: Vec<&str> = Vec::new();
    for message in messages {
        match message.tool_call_id() {
            Some(id) => match open.iter().position(|call| *call == id) {
                Some(at) => drop(open.remove(at)),
                None => return Some(format!("{id} was not called")),
            },
            None if !open.is_empty() => return Some(format!("{open:?} have no result")),
            None => {
                open = message
                    .tool_calls()
                    .iter()
                    .map(|call| call.id.as_str())
                    .collect()
            }
        }
    }
    (!open.is_empty()).then(|| format!("{open:?} have no result"))
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Nothing {}

struct Doing {
    name: &'static str,
    effect: Effect,
    world: Arc<World>,
}

impl Tool for Doing {
    type Args = Nothing;

    fn name(&self) -> &str {
        self.name
    }

    fn description(&self) -> &str {
        "Does something."
    }

    fn effect(&self, _args: &Nothing) -> Effect {
        self.effect
    }

    async fn call(&self, _args: Nothing, ctx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let chance = &self.world.chance;
        sleep(chance.millis(0, 60)).await;
        let done = Done {
            tool: self.name,
            key: ctx.key.clone(),
            call_id: ctx.call_id.clone(),
            run_id: ctx.run.run_id.clone(),
        };
        self.world.tell(
            "tool",
            format_args!("{} for {} of {}", done.tool, done.call_id, done.run_id),
        );
        self.world.books.lock().effects.push(done);
        let longest = if chance.of_thousand(100) { 3_000 } else { 60 };
        sleep(chance.millis(0, longest)).await;
        Ok(format!("{} {}", self.name, ctx.call_id).into())
    }
}

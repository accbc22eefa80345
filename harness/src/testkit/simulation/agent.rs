//! Agent of every run: a model with unique answers, and one tool per effect kind that records its
//! executions.

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::stream;
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::time::sleep;

use super::world::{Effect as ToolEffect, ModelAnswer, World};
use crate::agents::AgentBuilder;
use crate::messages::{Message, MessageChunk, ToolCallChunk};
use crate::middlewares::DanglingToolCallMiddleware;
use crate::models::{ChatModel, ModelError, ModelInfo, ModelRequest, ModelStream};
use crate::runtime::agent::Agent;
use crate::runtime::process::Process;
use crate::tools::{Effect, Tool, ToolContext, ToolError, ToolOutput};

/// Script of a run: the calls of each turn, and the number of fragments of the final answer.
#[derive(Debug, Clone)]
pub(super) struct Script {
    pub(super) label: String,
    pub(super) turns: Vec<Vec<String>>,
    pub(super) words: usize,
}

impl Script {
    /// Returns the message text, such as `label|puts,sends|reads|7`.
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

/// Creates the agent of one process.
pub(super) fn agent(world: &Arc<World>, process: &Process) -> Arc<dyn Agent> {
    let tool = |name, effect| SimulatedTool {
        name,
        effect,
        world: world.clone(),
    };
    AgentBuilder::new(Arc::new(SimulatedModel::new(
        world.clone(),
        process.clone(),
    )))
    .tool(tool("reads", Effect::Pure))
    .tool(tool("puts", Effect::Keyed))
    .tool(tool("sends", Effect::Unsafe))
    .middleware(DanglingToolCallMiddleware)
    .build()
}

#[derive(Debug)]
struct SimulatedModel {
    info: ModelInfo,
    world: Arc<World>,
    process: Process,
}

impl SimulatedModel {
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

/// An answer that the simulated provider is streaming; dropping it stops the stream.
struct ActiveAnswer {
    world: Arc<World>,
    call: u64,
}

impl ActiveAnswer {
    /// Registers an answer, and reports a violation if another live attempt answers on the same
    /// thread.
    fn begin(world: &Arc<World>, process: &Process, thread: &str, label: &str) -> Self {
        let (call, others) = {
            let mut observations = world.observations.lock();
            observations.calls += 1;
            let call = observations.calls;
            let active = observations
                .active_answer
                .values()
                .filter(|(on, of, by, froze)| {
                    on == thread
                        && of != label
                        && !by.is_dead()
                        && !by.is_frozen()
                        && by.freeze_count() == *froze
                });
            let others: Vec<String> = active.map(|(_, of, ..)| of.clone()).collect();
            // A process that was just thawed may execute one more step before it notices the pause.
            let others = if process.is_recently_thawed() {
                Vec::new()
            } else {
                others
            };
            let since = if process.is_recently_thawed() {
                0
            } else {
                process.freeze_count()
            };
            observations.active_answer.insert(
                call,
                (thread.to_owned(), label.to_owned(), process.clone(), since),
            );
            (call, others)
        };
        for other in others {
            world.violation(format_args!(
                "{label} calls the model while {other} of the same thread does"
            ));
        }
        Self {
            world: world.clone(),
            call,
        }
    }
}

impl Drop for ActiveAnswer {
    fn drop(&mut self) {
        self.world
            .observations
            .lock()
            .active_answer
            .remove(&self.call);
    }
}

#[async_trait]
impl ChatModel for SimulatedModel {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    async fn stream(&self, request: ModelRequest) -> Result<ModelStream, ModelError> {
        let (world, id) = (self.world.clone(), request.message_id.clone());
        if let Some(why) = unpaired(&request.messages) {
            world.violation(format_args!("a strict provider rejects the history: {why}"));
        }
        let at = request
            .messages
            .iter()
            .rposition(Message::is_human)
            .expect("a human message");
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
        let active_answer = ActiveAnswer::begin(&world, &self.process, &thread, &script.label);
        let call = active_answer.call;
        world.log_event(
            "model",
            format_args!("answers {} turn {turn} as call {call}", script.label),
        );
        let model_answer = ModelAnswer {
            label: script.label.clone(),
            text: String::new(),
            whole: false,
        };
        world
            .observations
            .lock()
            .model_answer
            .insert(id.clone(), model_answer);
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
            (chunks.into_iter(), active_answer),
            move |(mut chunks, active_answer)| {
                let (world, id) = (world.clone(), id.clone());
                async move {
                    let chunk = chunks.next()?;
                    match world.chance.below(100) {
                        0..50 => {}
                        50..97 => sleep(world.chance.millis(1, 120)).await,
                        _ => sleep(world.chance.millis(500, 3_000)).await,
                    }
                    if let Some(model_answer) = world.observations.lock().model_answer.get_mut(&id)
                    {
                        model_answer.text.push_str(&chunk.content);
                        model_answer.whole |= chunk.chunk_position.is_some();
                    }
                    Some((Ok(chunk), (chunks, active_answer)))
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

/// Returns the reason why a strict provider rejects these messages: each call needs one result,
/// directly after its answer.
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
struct NoArgs {}

struct SimulatedTool {
    name: &'static str,
    effect: Effect,
    world: Arc<World>,
}

impl Tool for SimulatedTool {
    type Args = NoArgs;

    fn name(&self) -> &str {
        self.name
    }

    fn description(&self) -> &str {
        "Does something."
    }

    fn effect(&self, _args: &NoArgs) -> Effect {
        self.effect
    }

    async fn call(&self, _args: NoArgs, ctx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let chance = &self.world.chance;
        sleep(chance.millis(0, 60)).await;
        let done = ToolEffect {
            tool: self.name,
            key: ctx.key.clone(),
            call_id: ctx.call_id.clone(),
            run_id: ctx.run.run_id.clone(),
        };
        self.world.log_event(
            "tool",
            format_args!("{} for {} of {}", done.tool, done.call_id, done.run_id),
        );
        self.world.observations.lock().effects.push(done);
        let max_delay = if chance.of_thousand(100) { 3_000 } else { 60 };
        sleep(chance.millis(0, max_delay)).await;
        Ok(format!("{} {}", self.name, ctx.call_id).into())
    }
}

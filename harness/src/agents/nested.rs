//! An agent inside a tool call of another: its events travel under the call's namespace, and its state is kept with the call.

use std::sync::Arc;

use futures_util::StreamExt;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::messages::Message;
use crate::runtime::agent::{
    Agent, AgentError, AgentEvent, AgentInput, AgentOutcome, AgentStart, EventSink, RunContext,
    StepEvent, StopKind,
};
use crate::runtime::checkpoint::{NestedState, NestedStates, PendingTask, within};
use crate::runtime::runs::NodeSelector;
use crate::state::{StateUpdate, ThreadState};
use crate::tools::{ToolContext, ToolControl};

/// What an agent inside a call came to.
#[derive(Debug, Clone, PartialEq)]
pub enum NestedEnd {
    /// The state it reached.
    Done(Arc<ThreadState>),
    /// It asks a person and waits: the call gives this back as its output, and sets the agent to work again when it is made again.
    Asks(ToolControl),
}

/// Hears what an agent inside a call says, before anybody else does.
pub trait NestedListener: Send {
    /// One event.
    fn hear(&mut self, event: &AgentEvent);

    /// What is saved with each step: the call finds it with [`kept`] when it is made again.
    fn keep(&self) -> Value {
        Value::Null
    }
}

impl NestedListener for () {
    fn hear(&mut self, _event: &AgentEvent) {}
}

/// What a listener kept when this call was last made.
pub fn kept(ctx: &ToolContext) -> Option<Value> {
    let machine = ctx.nested.as_deref()?.machine.clone()?;
    Some(Position::deserialize(machine).ok()?.kept).filter(|kept| !kept.is_null())
}

/// Sets `agent` to work on these messages, or lets it go on where it stood when this call was last made. Viewers of subgraphs
/// see its events under `node:task id` of the call. A call has one such agent.
pub async fn run_nested(
    agent: &dyn Agent,
    messages: impl IntoIterator<Item = Message>,
    ctx: &ToolContext,
) -> Result<NestedEnd, AgentError> {
    run_nested_within(
        agent,
        StateUpdate::messages(messages),
        ctx,
        ctx.run.recursion_limit,
        &mut (),
    )
    .await
}

/// The same, on a state made of `begins_with`, for at most `most_steps` super-steps, and heard by `listener`.
pub async fn run_nested_within(
    agent: &dyn Agent,
    begins_with: StateUpdate,
    ctx: &ToolContext,
    most_steps: u64,
    listener: &mut impl NestedListener,
) -> Result<NestedEnd, AgentError> {
    let (input, taken) = match ctx.nested.as_deref() {
        None => (fresh(begins_with, ctx)?, 0),
        Some(held) => match going_on(held, &ctx.answers)? {
            Begin::Work(input, taken) => (*input, taken),
            Begin::Nothing(end) => return Ok(end),
        },
    };
    let (sink, events) = EventSink::channel();
    let namespace: Arc<str> = ctx.namespace.as_str().into();
    let mut reached = Arc::new(input.state.clone());
    let own = RunContext {
        sink,
        namespace: within(&ctx.run.namespace, &namespace).into(),
        recursion_limit: most_steps,
        interrupt_before: NodeSelector::None,
        interrupt_after: NodeSelector::None,
        ..ctx.run.clone()
    };
    let mut said = agent.stream(input, own, events);
    while let Some(event) = said.next().await {
        let mut event = event?;
        listener.hear(&event);
        if let AgentEvent::Step(StepEvent { state, machine, .. }) = &mut event {
            reached = state.clone();
            *machine = json!(Position {
                taken,
                machine: machine.take(),
                kept: listener.keep()
            });
        }
        let end = if let AgentEvent::Done(AgentOutcome { kind, .. }) = &event {
            Some(kind.clone())
        } else {
            None
        };
        ctx.run
            .sink
            .emit(AgentEvent::Nested(namespace.clone(), Box::new(event)));
        match end {
            Some(StopKind::Question(open)) if !open.is_empty() => {
                return Ok(NestedEnd::Asks(asking(&open[0])));
            }
            Some(_) => break,
            None => {}
        }
    }
    Ok(NestedEnd::Done(reached))
}

/// Where an agent inside a call stands.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Position {
    /// How many of the call's answers it has taken.
    taken: usize,
    /// Where its machine stands.
    machine: Value,
    /// What its listener keeps.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    kept: Value,
}

/// How an agent that was at work before begins.
enum Begin {
    /// On this, having taken so many of the call's answers.
    Work(Box<AgentInput>, usize),
    /// Not at all.
    Nothing(NestedEnd),
}

fn fresh(begins_with: StateUpdate, ctx: &ToolContext) -> Result<AgentInput, AgentError> {
    let mut state = ThreadState::default();
    state.apply(begins_with, &*ctx.run.ids)?;
    Ok(AgentInput {
        state,
        start: AgentStart::Fresh,
        machine: None,
        step: 0,
        nested: NestedStates::new(),
    })
}

/// Its questions are answered one at a time, the first that is open with the first of the answers that it has not taken.
fn going_on(held: &NestedState, answers: &[Value]) -> Result<Begin, AgentError> {
    let Some(machine) = held.machine.clone().filter(|_| !held.next.is_empty()) else {
        return Ok(Begin::Nothing(NestedEnd::Done(held.state.clone())));
    };
    let unreadable = |error| {
        AgentError::Resume(format!(
            "the position of the agent inside the call is unreadable: {error}"
        ))
    };
    let Position { taken, machine, .. } = serde_json::from_value(machine).map_err(unreadable)?;
    let open: Vec<&Value> = held.next.iter().flat_map(|task| &task.interrupts).collect();
    let (start, taken) = match (open.first(), answers.get(taken)) {
        (None, _) => (AgentStart::Continue, taken),
        (Some(question), None) => return Ok(Begin::Nothing(NestedEnd::Asks(asking(question)))),
        (Some(_), Some(answer)) if open.len() == 1 => {
            (AgentStart::Resume(answer.clone()), taken + 1)
        }
        (Some(question), Some(answer)) => {
            let by_id = Map::from_iter([(id_of(question), answer.clone())]);
            (AgentStart::Resume(by_id.into()), taken + 1)
        }
    };
    let nested = PendingTask::nested_states(&held.next);
    let input = AgentInput {
        state: ThreadState::clone(&held.state),
        start,
        machine: Some(machine),
        step: held.step,
        nested,
    };
    Ok(Begin::Work(Box::new(input), taken))
}

/// What the call gives back while `question`, as clients see it, is open.
fn asking(question: &Value) -> ToolControl {
    ToolControl::AskFor {
        id: id_of(question),
        question: question["value"].clone(),
    }
}

fn id_of(question: &Value) -> String {
    question["id"].as_str().unwrap_or_default().to_owned()
}

//! Runs an agent inside a tool call of another agent. Its events are emitted under the call's
//! namespace, and its state is saved with the call.

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

/// Result of running an agent inside a call.
#[derive(Debug, Clone, PartialEq)]
pub enum NestedEnd {
    /// The agent ended with this state.
    Done(Arc<ThreadState>),
    /// The agent asks the user a question. The call returns this control as its output, and runs
    /// the agent again when the call is repeated with the answer.
    Asks(ToolControl),
}

/// Receives the events of an agent inside a call before they are emitted to other subscribers.
///
/// ```
/// use deerflow_harness::agents::NestedListener;
/// use deerflow_harness::runtime::agent::AgentEvent;
/// use serde_json::Value;
///
/// /// Counts the events of a nested agent; a repeated call continues the count.
/// struct EventCount(u64);
///
/// impl NestedListener for EventCount {
///     fn hear(&mut self, _event: &AgentEvent) {
///         self.0 += 1;
///     }
///
///     fn keep(&self) -> Value {
///         self.0.into()
///     }
/// }
/// ```
pub trait NestedListener: Send {
    /// Handles one event.
    fn hear(&mut self, event: &AgentEvent);

    /// Returns the state to save with each step; a repeated call reads it with [`listener_state`].
    fn keep(&self) -> Value {
        Value::Null
    }
}

impl NestedListener for () {
    fn hear(&mut self, _event: &AgentEvent) {}
}

/// Returns the listener state that an earlier attempt of this call saved, if any.
pub fn listener_state(ctx: &ToolContext) -> Option<Value> {
    let machine = ctx.nested.as_deref()?.machine.clone()?;
    Some(Position::deserialize(machine).ok()?.saved_listener)
        .filter(|saved_listener| !saved_listener.is_null())
}

/// Runs `agent` on these messages, or resumes it at the position that an earlier attempt of this
/// call saved. Subscribers of subgraphs receive its events under the call's `node:task id`. A call
/// runs at most one nested agent.
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

/// Like [`run_nested`], with `initial` as the first state update, a limit of `max_steps`
/// super-steps, and a listener.
pub async fn run_nested_within(
    agent: &dyn Agent,
    initial: StateUpdate,
    ctx: &ToolContext,
    max_steps: u64,
    listener: &mut impl NestedListener,
) -> Result<NestedEnd, AgentError> {
    let (input, consumed_answers) = match ctx.nested.as_deref() {
        None => (fresh(agent, initial, ctx)?, 0),
        Some(nested_state) => match resume(agent, nested_state, &ctx.answers)? {
            Start::Run(input, consumed_answers) => (*input, consumed_answers),
            Start::Finished(end) => return Ok(end),
        },
    };
    let (sink, events) = EventSink::channel();
    let namespace: Arc<str> = ctx.namespace.as_str().into();
    let mut last_state = Arc::new(input.state.clone());
    let nested_ctx = RunContext {
        sink,
        namespace: within(&ctx.run.namespace, &namespace).into(),
        recursion_limit: max_steps,
        interrupt_before: NodeSelector::None,
        interrupt_after: NodeSelector::None,
        ..ctx.run.clone()
    };
    let mut stream = agent.stream(input, nested_ctx, events);
    while let Some(event) = stream.next().await {
        let mut event = event?;
        listener.hear(&event);
        if let AgentEvent::Step(StepEvent { state, machine, .. }) = &mut event {
            last_state = state.clone();
            *machine = json!(Position {
                consumed_answers,
                machine: machine.take(),
                saved_listener: listener.keep()
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
                return Ok(NestedEnd::Asks(question_control(&open[0])));
            }
            Some(_) => break,
            None => {}
        }
    }
    Ok(NestedEnd::Done(last_state))
}

/// Saved position of a nested agent.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Position {
    /// Number of answers to the call that the agent has consumed.
    #[serde(rename = "taken")]
    consumed_answers: usize,
    /// Saved state of its loop machine.
    machine: Value,
    /// State of its listener.
    #[serde(default, rename = "kept", skip_serializing_if = "Value::is_null")]
    saved_listener: Value,
}

/// Decision about how a previously saved nested agent starts.
enum Start {
    /// The agent runs with this input, having consumed this number of answers.
    Run(Box<AgentInput>, usize),
    /// The agent does not run, because its result is already known.
    Finished(NestedEnd),
}

fn fresh(
    agent: &dyn Agent,
    initial: StateUpdate,
    ctx: &ToolContext,
) -> Result<AgentInput, AgentError> {
    let mut state = ThreadState::default().defined_by(agent.channels());
    state.apply(initial, &*ctx.run.ids)?;
    Ok(AgentInput {
        state,
        start: AgentStart::Fresh,
        machine: None,
        step: 0,
        nested: NestedStates::new(),
    })
}

/// Builds the start of a saved agent. Open questions are answered one at a time: the first open
/// question gets the first answer that is not consumed yet.
fn resume(
    agent: &dyn Agent,
    nested_state: &NestedState,
    answers: &[Value],
) -> Result<Start, AgentError> {
    let Some(machine) = nested_state
        .machine
        .clone()
        .filter(|_| !nested_state.next.is_empty())
    else {
        return Ok(Start::Finished(NestedEnd::Done(nested_state.state.clone())));
    };
    let unreadable = |error| {
        AgentError::Resume(format!(
            "the saved position of the agent inside the call is unreadable: {error}"
        ))
    };
    let Position {
        consumed_answers,
        machine,
        ..
    } = serde_json::from_value(machine).map_err(unreadable)?;
    let open: Vec<&Value> = nested_state
        .next
        .iter()
        .flat_map(|task| &task.interrupts)
        .collect();
    let (start, consumed_answers) = match (open.first(), answers.get(consumed_answers)) {
        (None, _) => (AgentStart::Continue, consumed_answers),
        (Some(question), None) => {
            return Ok(Start::Finished(NestedEnd::Asks(question_control(question))));
        }
        (Some(_), Some(answer)) if open.len() == 1 => {
            (AgentStart::Resume(answer.clone()), consumed_answers + 1)
        }
        (Some(question), Some(answer)) => {
            let by_id = Map::from_iter([(id_of(question), answer.clone())]);
            (AgentStart::Resume(by_id.into()), consumed_answers + 1)
        }
    };
    let nested = PendingTask::nested_states(&nested_state.next);
    let input = AgentInput {
        state: ThreadState::clone(&nested_state.state).defined_by(agent.channels()),
        start,
        machine: Some(machine),
        step: nested_state.step,
        nested,
    };
    Ok(Start::Run(Box::new(input), consumed_answers))
}

/// Returns the control that the call outputs while `question`, in its client-facing form, is open.
fn question_control(question: &Value) -> ToolControl {
    ToolControl::AskFor {
        id: id_of(question),
        question: question["value"].clone(),
    }
}

fn id_of(question: &Value) -> String {
    question["id"].as_str().unwrap_or_default().to_owned()
}

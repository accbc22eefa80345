//! Runs an agent inside another agent: in a tool call, or in a node of a graph. Its events are
//! emitted under the namespace of the pending task, and its state is saved with that task.

use std::sync::Arc;

use futures_util::StreamExt;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::event::{AgentEvent, AgentOutcome, StepEvent, StopKind};
use super::port::{Agent, AgentError, AgentInput, AgentStart, EventSink, RunContext};
use crate::checkpoint::{NestedState, NestedStates, PendingTask, within};
use crate::definition::NodeSelector;
use deerflow_core::ids::IdSource;
use deerflow_core::state::{StateUpdate, ThreadState};

/// Pending task that runs a nested agent: a tool call or a node of a graph. A task has at most one
/// nested agent.
#[derive(Debug, Clone, Copy)]
pub struct NestedCall<'a> {
    /// Context of the run, with the sink of the enclosing agent's events.
    pub run: &'a RunContext,
    /// `node:task id` of the pending task, as
    /// [`PendingTask::namespace`](crate::checkpoint::PendingTask::namespace) returns it.
    pub namespace: &'a str,
    /// State of the nested agent that an earlier attempt of the task saved.
    pub saved: Option<&'a NestedState>,
    /// Answers to the questions of the task so far, in order.
    pub answers: &'a [Value],
    /// Maximum number of super-steps of the nested agent.
    pub max_steps: u64,
}

impl NestedCall<'_> {
    /// Returns the listener state that an earlier attempt of this task saved, if any.
    pub fn listener_state(&self) -> Option<Value> {
        let machine = self.saved?.machine.clone()?;
        Some(Position::deserialize(machine).ok()?.saved_listener)
            .filter(|saved_listener| !saved_listener.is_null())
    }
}

/// Result of running a nested agent.
#[derive(Debug, Clone, PartialEq)]
pub enum NestedOutcome {
    /// The agent ended with this state.
    Done(Arc<ThreadState>),
    /// The agent asks the user a question. The enclosing task asks it under its id, and runs the
    /// agent again with the answer.
    Asks(NestedQuestion),
}

/// Question of a nested agent.
#[derive(Debug, Clone, PartialEq)]
pub struct NestedQuestion {
    /// Id of the question, assigned by the nested agent.
    pub id: String,
    /// The question.
    pub question: Value,
}

/// Receives the events of a nested agent before they are emitted to other subscribers.
///
/// ```
/// use deerflow_runtime::agent::{AgentEvent, NestedListener};
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

    /// Returns the state to save with each step; a repeated call reads it with
    /// [`NestedCall::listener_state`].
    fn keep(&self) -> Value {
        Value::Null
    }
}

impl NestedListener for () {
    fn hear(&mut self, _event: &AgentEvent) {}
}

/// Runs `agent` with `initial` as its first state update, or resumes it at the position that an
/// earlier attempt of the task saved. Subscribers of subgraphs receive its events under the task's
/// namespace.
///
/// # Errors
/// Returns the error of the nested agent, or [`AgentError::Resume`] if its saved position is
/// unreadable.
pub async fn run_nested(
    agent: &dyn Agent,
    initial: StateUpdate,
    call: NestedCall<'_>,
    listener: &mut impl NestedListener,
) -> Result<NestedOutcome, AgentError> {
    let (input, consumed_answers) = match call.saved {
        None => (fresh(initial, &*call.run.ids)?, 0),
        Some(saved) => match resume(saved, call.answers)? {
            Start::Run(input, consumed_answers) => (*input, consumed_answers),
            Start::Finished(end) => return Ok(end),
        },
    };
    let (sink, events) = EventSink::channel();
    let namespace: Arc<str> = call.namespace.into();
    let mut last_state = Arc::new(input.state.clone());
    let nested_ctx = RunContext {
        sink,
        namespace: within(&call.run.namespace, &namespace).into(),
        recursion_limit: call.max_steps,
        interrupt_before: NodeSelector::None,
        interrupt_after: NodeSelector::None,
        ..call.run.clone()
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
        call.run
            .sink
            .emit(AgentEvent::Nested(namespace.clone(), Box::new(event)));
        match end {
            Some(StopKind::Question(open)) if !open.is_empty() => {
                return Ok(NestedOutcome::Asks(open_question(&open[0])));
            }
            Some(_) => break,
            None => {}
        }
    }
    Ok(NestedOutcome::Done(last_state))
}

/// Saved position of a nested agent.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Position {
    /// Number of answers that the agent has consumed.
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
    Finished(NestedOutcome),
}

fn fresh(initial: StateUpdate, ids: &dyn IdSource) -> Result<AgentInput, AgentError> {
    let mut state = ThreadState::default();
    state.apply(initial, ids)?;
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
fn resume(nested_state: &NestedState, answers: &[Value]) -> Result<Start, AgentError> {
    let Some(machine) = nested_state
        .machine
        .clone()
        .filter(|_| !nested_state.next.is_empty())
    else {
        return Ok(Start::Finished(NestedOutcome::Done(
            nested_state.state.clone(),
        )));
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
            return Ok(Start::Finished(NestedOutcome::Asks(open_question(
                question,
            ))));
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
        state: ThreadState::clone(&nested_state.state),
        start,
        machine: Some(machine),
        step: nested_state.step,
        nested,
    };
    Ok(Start::Run(Box::new(input), consumed_answers))
}

/// Reads a question in its client-facing form.
fn open_question(question: &Value) -> NestedQuestion {
    NestedQuestion {
        id: id_of(question),
        question: question["value"].clone(),
    }
}

fn id_of(question: &Value) -> String {
    question["id"].as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
#[path = "nested_tests.rs"]
mod tests;

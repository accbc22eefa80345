//! Selects the state with which a run starts: a new one, that of an earlier run, or that of this
//! run in another process.

use deerflow_core::state::{StateUpdate, ThreadState};
use deerflow_runtime::agent::{AgentError, AgentInput, AgentStart, RunContext};
use serde_json::{Map, Value};
use uuid::Uuid;

use super::input::run_input;
use super::saved_flow::SavedFlow;
use super::step_changes::StepChanges;
use crate::adapter::FlowError;
use crate::compiled::CompiledFlow;
use crate::driver::{FlowStart, Histories};
use crate::machine::{FlowMachine, RunBounds, RunData};

/// Maximum characters of a title.
const MAX_TITLE_CHARS: usize = 60;

/// Start of a run.
pub(super) struct Start {
    pub(super) start: FlowStart,
    /// State of the thread at the start.
    pub(super) state: ThreadState,
    pub(super) histories: Histories,
    /// Changes of the current superstep, which the state does not have.
    pub(super) changes: StepChanges,
}

/// Returns the limits and breakpoints that the run asks for.
pub(super) fn bounds_of(ctx: &RunContext, max_state_bytes: usize) -> RunBounds {
    RunBounds {
        recursion_limit: ctx.recursion_limit,
        interrupt_before: ctx.interrupt_before.clone(),
        interrupt_after: ctx.interrupt_after.clone(),
        max_state_bytes,
    }
}

/// Returns the start of a run, or `None` if no task is pending.
pub(super) fn start_of(
    flow: &CompiledFlow,
    input: &AgentInput,
    ctx: &RunContext,
    bounds: &RunBounds,
) -> Result<Option<Start>, AgentError> {
    let saved = input
        .machine
        .clone()
        .map(serde_json::from_value::<SavedFlow>);
    match (&input.start, saved.transpose()) {
        (AgentStart::Fresh, _) => fresh(flow, input, ctx, bounds).map(Some),
        (_, Err(error)) => Err(AgentError::Resume(format!(
            "the saved flow is unreadable: {error}"
        ))),
        (AgentStart::Goto { .. }, Ok(None)) => {
            let machine = FlowMachine::new(flow, bounds.clone(), seed(ctx), now_ms(ctx));
            let saved = (machine, StepChanges::default());
            continued(flow, input, ctx, saved, false).map(Some)
        }
        (_, Ok(Some(saved))) => {
            let same_run = saved.is_of(ctx.run_id.as_str());
            let unreadable =
                |error| AgentError::Resume(format!("the saved flow is unreadable: {error}"));
            let (machine, changes) = saved.into_parts().map_err(unreadable)?;
            let machine =
                FlowMachine::restore(flow, bounds.clone(), machine).map_err(resume_error)?;
            continued(flow, input, ctx, (machine, changes), same_run).map(Some)
        }
        (_, Ok(None)) if input.state.messages().is_empty() => Err(AgentError::EmptyInput),
        (_, Ok(None)) => Ok(None),
    }
}

/// Clears the values of the former run; the conversation stays.
fn fresh(
    flow: &CompiledFlow,
    input: &AgentInput,
    ctx: &RunContext,
    bounds: &RunBounds,
) -> Result<Start, AgentError> {
    let mut state = input.state.clone();
    let run_input = run_input(&state);
    let mut update = cleared(&state);
    if state.title().is_none() && !run_input.user_prompt().trim().is_empty() {
        update = update.and("title", title_of(run_input.user_prompt()).into());
    }
    state.apply(update, &*ctx.ids)?;
    state.histories_mut().clear();
    let machine = FlowMachine::new(flow, bounds.clone(), seed(ctx), now_ms(ctx));
    let data = RunData::new(flow, run_input);
    Ok(Start {
        start: FlowStart::Prepared(Box::new(machine), Box::new(data)),
        state,
        histories: Histories::default(),
        changes: StepChanges::default(),
    })
}

/// Returns the update that removes the values of a former run; the conversation stays.
pub(super) fn cleared(state: &ThreadState) -> StateUpdate {
    let former = [
        "ports", "outputs", "loops", "visits", "waiting", "sessions", "result", "errors",
    ];
    let present = former
        .into_iter()
        .filter(|name| state.channel(name).is_some());
    present.fold(StateUpdate::default(), |update, channel| {
        update.and(channel, Value::Null)
    })
}

fn continued(
    flow: &CompiledFlow,
    input: &AgentInput,
    ctx: &RunContext,
    (mut machine, changes): (FlowMachine, StepChanges),
    same_run: bool,
) -> Result<Start, AgentError> {
    // The changes are applied to a copy: the next superstep adds them to the state.
    let (mut state, mut applied) = (input.state.clone(), changes.clone());
    state.apply(applied.take_update(), &*ctx.ids)?;
    applied.take_turns(state.histories_mut());
    let channels: Map<String, Value> = state
        .channels()
        .iter()
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    let data = RunData::restore(flow, &channels)
        .map_err(resume_error)?
        .with_input(run_input(&input.state));
    if !same_run {
        machine.begin_run(now_ms(ctx));
        machine.renumber(&data);
    }
    match &input.start {
        AgentStart::Resume(answers) => machine.answer(answers.clone()).map_err(resume_error)?,
        AgentStart::Goto { resume, visits } => {
            if let Some(answers) = resume {
                machine.answer(answers.clone()).map_err(resume_error)?;
            }
            if let Some(unknown) = visits.iter().find(|visit| flow.find(&visit.node).is_none()) {
                return Err(AgentError::UnknownNode(unknown.node.clone()));
            }
            let nodes: Vec<&str> = visits.iter().map(|visit| visit.node.as_str()).collect();
            machine.goto(flow, &data, &nodes).map_err(resume_error)?;
        }
        AgentStart::Fresh | AgentStart::Continue => {}
    }
    let histories = histories_in(&state);
    let (machine, data) = (Box::new(machine), Box::new(data));
    let start = if same_run {
        FlowStart::TakenOver(machine, data)
    } else {
        FlowStart::Resumed(machine, data)
    };
    Ok(Start {
        start,
        state: input.state.clone(),
        histories,
        changes,
    })
}

/// Returns the turns of sessions that a state has.
pub(super) fn histories_in(state: &ThreadState) -> Histories {
    let histories = state.histories().iter();
    histories
        .map(|(agent, messages)| (agent.to_owned(), messages.cloned().collect()))
        .collect()
}

/// Returns the seed of the run's task ids: every process derives the same.
fn seed(ctx: &RunContext) -> Uuid {
    Uuid::new_v5(&Uuid::NAMESPACE_OID, ctx.run_id.as_str().as_bytes())
}

fn now_ms(ctx: &RunContext) -> u64 {
    u64::try_from(ctx.clock.now().timestamp_millis()).unwrap_or(0)
}

fn title_of(prompt: &str) -> String {
    let line = prompt.trim().lines().next().unwrap_or_default();
    let mut title: String = line.chars().take(MAX_TITLE_CHARS).collect();
    if title.len() < line.len() {
        title.push('…');
    }
    title
}

fn resume_error(error: FlowError) -> AgentError {
    AgentError::Resume(error.message)
}

/// Returns the scheduling state that a run starts with.
pub(super) fn machine_of(start: &FlowStart) -> Option<&FlowMachine> {
    match start {
        FlowStart::Prepared(machine, _)
        | FlowStart::Resumed(machine, _)
        | FlowStart::TakenOver(machine, _) => Some(machine),
        FlowStart::Fresh(_) => None,
    }
}

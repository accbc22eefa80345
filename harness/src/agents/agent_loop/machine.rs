//! The loop of an agent as a machine: it says what is due, is told how that ended, and never waits for anything.
//!
//! One round: `before_model` hooks, the model, `after_model` hooks in reverse, then a decision: a hook's jump wins; an answer
//! without calls ends the run; calls without results go to the tools; calls whose results are all there already go round again.
//! Every hook, the model and the tools count one super-step each.

use std::sync::Arc;

use serde_json::Value;
use uuid::Uuid;

use super::calls::{DueCall, calls_in, calls_without_result, last_answer};
use super::nodes::{LoopNodes, Place, START};
use super::questions::{NewQuestion, Questions};
use super::saved::{Batch, Saved};
use crate::messages::MessageKind;
use crate::middlewares::{Jump, Phase};
use crate::runtime::agent::{AgentError, StopKind};
use crate::runtime::checkpoint::PendingTask;
use crate::runtime::runs::{NodeSelector, Visit};
use crate::state::ThreadState;

/// What is to be done next.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Run a hook of the middleware at `index` of the stack, then call [`LoopMachine::hook_done`].
    Hook {
        /// Which hook.
        phase: Phase,
        /// The middleware's place in the stack.
        index: usize,
    },
    /// Ask the model, reduce its answer into the state, then call [`LoopMachine::model_done`].
    CallModel,
    /// Make these calls, reduce their results into the state, then call [`LoopMachine::tools_done`].
    CallTools(Vec<DueCall>),
    /// Stop.
    Stop(StopKind),
    /// Give up: more super-steps than allowed.
    RecursionExceeded(u64),
}

/// How a batch of calls ended.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ToolsDone {
    /// A tool asked for the end of the run.
    pub goto_end: bool,
    /// Whether the result of every known tool that ended is the run's result; `None` when none has ended.
    pub all_return_direct: Option<bool>,
    /// Calls that asked a person instead of giving a result.
    pub questions: Vec<NewQuestion>,
}

/// What a run allows; not part of what is saved.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RunBounds {
    /// Most super-steps of the run.
    pub recursion_limit: u64,
    /// Stop before these nodes.
    pub interrupt_before: NodeSelector,
    /// Stop after these nodes.
    pub interrupt_after: NodeSelector,
}

/// Where an agent stands in its loop.
#[derive(Debug, Clone, PartialEq)]
pub struct LoopMachine {
    nodes: Arc<LoopNodes>,
    bounds: RunBounds,
    saved: Saved,
    place: Place,
    /// Super-steps of this run.
    steps: u64,
    /// The node that is due may run although `interrupt_before` names it: the run was started to go on with it.
    released: bool,
    /// `interrupt_after` named the node that ran last.
    halted: bool,
}

impl LoopMachine {
    /// A machine at the beginning. `seed` makes the ids of its tasks its own.
    pub fn new(nodes: Arc<LoopNodes>, bounds: RunBounds, seed: Uuid) -> Self {
        let place = nodes.entry();
        Self {
            saved: Saved::new(seed),
            nodes,
            bounds,
            place,
            steps: 0,
            released: false,
            halted: false,
        }
    }

    /// A machine at what the state asks for, where none was saved because the state was written from outside: the tools for
    /// calls without results, the model for a question or for results. None when there is nothing to do.
    pub fn for_state(
        nodes: Arc<LoopNodes>,
        bounds: RunBounds,
        seed: Uuid,
        state: &ThreadState,
    ) -> Option<Self> {
        let messages = state.messages();
        let place = match &messages.last()?.kind {
            MessageKind::Human => nodes.entry(),
            MessageKind::Ai { .. } | MessageKind::Tool { .. }
                if !calls_without_result(messages).is_empty() =>
            {
                Place::Tools
            }
            MessageKind::Tool { .. } => nodes.loop_entry(),
            _ => return None,
        };
        Some(Self {
            place,
            released: true,
            ..Self::new(nodes, bounds, seed)
        })
    }

    /// A machine where another one stood when it was saved, perhaps in another process; super-steps are counted anew.
    pub fn restore(
        nodes: Arc<LoopNodes>,
        bounds: RunBounds,
        machine: Value,
    ) -> Result<Self, AgentError> {
        let saved: Saved = serde_json::from_value(machine).map_err(|error| {
            AgentError::Resume(format!("its saved position is unreadable: {error}"))
        })?;
        let place = saved.place(&nodes)?;
        Ok(Self {
            nodes,
            bounds,
            saved,
            place,
            steps: 0,
            released: true,
            halted: false,
        })
    }

    /// Takes answers to open questions. One open question takes any value; several take a map of question ids to values,
    /// which may leave some open, or, where all ask for approvals, a list of decisions. `knows` tells whether there is a tool of a name,
    /// which an edited call may use.
    pub fn answer(
        &mut self,
        answers: Value,
        knows: impl Fn(&str) -> bool,
    ) -> Result<(), AgentError> {
        self.saved.questions.answer(answers, knows)
    }

    /// What to do now. Asking twice gives the same.
    pub fn next_step(&self, state: &ThreadState) -> Step {
        if self.place == Place::End {
            return Step::Stop(StopKind::Completed);
        }
        if let Some(open) = self.saved.questions.all_open() {
            return Step::Stop(StopKind::Question(open));
        }
        let node = self.nodes.name(self.place);
        if self.halted || (!self.released && self.bounds.interrupt_before.selects(node)) {
            return Step::Stop(StopKind::Breakpoint);
        }
        if self.steps >= self.bounds.recursion_limit {
            return Step::RecursionExceeded(self.bounds.recursion_limit);
        }
        match self.place {
            Place::Hook(phase, nth) => match self.nodes.middleware(phase, nth) {
                Some(index) => Step::Hook { phase, index },
                None => Step::Stop(StopKind::Completed),
            },
            Place::Model => Step::CallModel,
            Place::Tools => Step::CallTools(self.saved.questions.due(self.calls(state))),
            Place::End => Step::Stop(StopKind::Completed),
        }
    }

    /// The hook that was due has run, and its update is in `state`.
    pub fn hook_done(&mut self, jump: Option<Jump>, state: &ThreadState) {
        let Place::Hook(phase, nth) = self.place else {
            return;
        };
        let next = match jump {
            Some(Jump::Model | Jump::Again) => self.nodes.loop_entry(),
            Some(Jump::Tools) if !calls_without_result(state.messages()).is_empty() => Place::Tools,
            // After the last phase begins there is nothing left to end.
            Some(Jump::End) if phase == Phase::AfterAgent => Place::End,
            Some(Jump::End) => self.nodes.exit(),
            Some(Jump::Tools) | None => self
                .nodes
                .hook_or(phase, nth + 1, || self.after_phase(phase, state)),
        };
        self.advance(next);
        if jump == Some(Jump::Again) {
            self.steps = 0;
        }
    }

    /// The model has answered, and its answer is in `state`.
    pub fn model_done(&mut self, state: &ThreadState) {
        let next = self
            .nodes
            .hook_or(Phase::AfterModel, 0, || self.decide(state));
        self.advance(next);
    }

    /// The calls that were due have ended, and their results are in the state.
    pub fn tools_done(&mut self, done: ToolsDone) {
        self.saved.batch.goto_end |= done.goto_end;
        self.saved.batch.all_direct = both(self.saved.batch.all_direct, done.all_return_direct);
        let mut questions = std::mem::take(&mut self.saved.questions);
        questions.asked(done.questions);
        self.saved.questions = questions;
        if self.saved.questions.is_empty() {
            let batch = std::mem::take(&mut self.saved.batch);
            self.advance(if batch.goto_end || batch.all_direct == Some(true) {
                self.nodes.exit()
            } else {
                self.nodes.loop_entry()
            });
        } else {
            // The node is still due, as the same task, until every question has its answer.
            self.steps += 1;
            self.released = true;
        }
    }

    /// Where the loop stands.
    pub fn place(&self) -> Place {
        self.place
    }

    /// Super-steps of this run so far.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// The name of the node that is due.
    pub fn node(&self) -> &str {
        self.nodes.name(self.place)
    }

    /// The id of the task that is due: the same for as long as it is due, also after a restore.
    pub fn task_id(&self) -> String {
        self.saved.task_id(self.node())
    }

    /// The id of the task that makes one of the calls that are due; as stable.
    pub fn call_task_id(&self, call_id: &str) -> String {
        self.saved.task_id(&format!("{}:{call_id}", self.node()))
    }

    /// What the node that is due works on instead of the state, if a command said so.
    pub fn input(&self) -> Option<&Value> {
        self.saved.input.as_ref()
    }

    /// The tasks that are due, one for each call that is to be made; none at the end.
    pub fn due(&self, state: &ThreadState) -> Vec<PendingTask> {
        let task = |id, interrupts| PendingTask {
            interrupts,
            ..PendingTask::new(id, self.node())
        };
        let calls = if self.place == Place::Tools {
            self.call_ids(state)
        } else {
            Vec::new()
        };
        match self.place {
            Place::End => Vec::new(),
            _ if calls.is_empty() => vec![task(self.task_id(), Vec::new())],
            _ => calls
                .iter()
                .map(|call| task(self.call_task_id(call), self.saved.questions.of(call)))
                .collect(),
        }
    }

    /// Goes to these nodes one after the other, then on from the last as usual. Calls that have just got their answer are made
    /// before; questions that stay open are dropped.
    pub fn go_to(&mut self, visits: Vec<Visit>) -> Result<(), AgentError> {
        if let Some(stranger) = visits
            .iter()
            .find(|visit| self.place_of(&visit.node).is_none())
        {
            return Err(AgentError::UnknownNode(
                stranger.node.chars().take(80).collect(),
            ));
        }
        self.saved.visits = visits.into();
        self.released = true;
        if !self.saved.questions.any_answered() {
            self.saved.questions = Questions::default();
            self.saved.batch = Batch::default();
            self.saved.serial += 1;
            self.place = self.next_visit().unwrap_or(self.place);
        }
        Ok(())
    }

    /// Takes the next node that a command asked for.
    fn next_visit(&mut self) -> Option<Place> {
        let visit = self.saved.visits.pop_front()?;
        self.saved.input = visit.input;
        self.place_of(&visit.node)
    }

    fn place_of(&self, node: &str) -> Option<Place> {
        if node == START {
            Some(self.nodes.entry())
        } else {
            self.nodes.place(node)
        }
    }

    /// Whether calls wait for a person.
    pub fn has_questions(&self) -> bool {
        !self.saved.questions.is_empty()
    }

    fn call_ids(&self, state: &ThreadState) -> Vec<String> {
        match (self.input(), last_answer(state.messages())) {
            (Some(_), _) => self
                .calls(state)
                .iter()
                .map(|call| call.id().to_owned())
                .collect(),
            (None, Some(last)) => last.open_ids().map(str::to_owned).collect(),
            (None, None) => Vec::new(),
        }
    }

    /// The calls that the tools are to make: those that were sent to them, else those of the last answer.
    fn calls(&self, state: &ThreadState) -> Vec<DueCall> {
        match self.input().map(calls_in) {
            Some(sent) if !sent.is_empty() => sent,
            _ => calls_without_result(state.messages()),
        }
    }

    /// The machine as it is saved.
    pub fn save(&self) -> Value {
        self.saved.at(self.nodes.name(self.place))
    }

    fn after_phase(&self, phase: Phase, state: &ThreadState) -> Place {
        match phase {
            Phase::BeforeAgent => self.nodes.loop_entry(),
            Phase::BeforeModel => Place::Model,
            Phase::AfterModel => self.decide(state),
            Phase::AfterAgent => Place::End,
        }
    }

    fn decide(&self, state: &ThreadState) -> Place {
        match last_answer(state.messages()) {
            None => self.nodes.exit(),
            Some(answer) if !answer.has_calls() => self.nodes.exit(),
            Some(answer) if answer.has_calls_without_result() => Place::Tools,
            Some(_) => self.nodes.loop_entry(),
        }
    }

    fn advance(&mut self, next: Place) {
        self.halted = self
            .bounds
            .interrupt_after
            .selects(self.nodes.name(self.place));
        self.steps += 1;
        self.saved.serial += 1;
        self.released = false;
        self.saved.input = None;
        self.place = self.next_visit().unwrap_or(next);
    }
}

/// What several goes at a batch say together; a go in which nothing ended says nothing.
fn both(before: Option<bool>, now: Option<bool>) -> Option<bool> {
    before
        .into_iter()
        .chain(now)
        .reduce(|all, direct| all && direct)
}

#[cfg(test)]
#[path = "machine_tests.rs"]
mod tests;

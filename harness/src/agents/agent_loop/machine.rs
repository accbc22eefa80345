//! State machine of the agent loop. It decides the next step, receives the outcome of each step,
//! and does no I/O.
//!
//! One round: `before_model` hooks, the model, `after_model` hooks in reverse order, then a
//! decision. The jump of a hook has priority; an answer without calls ends the run; calls without
//! results go to the tools; if all calls have results, the next round begins. Every hook, the model
//! and the tools count as one super-step each.

use std::sync::Arc;

use serde_json::Value;
use uuid::Uuid;

use super::calls::{PendingCall, calls_in, calls_without_result, last_answer};
use super::interrupts::Interrupts;
use super::nodes::{LoopNodes, LoopPosition, START};
use super::saved_machine::{Batch, SavedMachine};
pub use super::step::{RunBounds, Step, ToolsDone};
use crate::messages::MessageKind;
use crate::middlewares::{Jump, Phase};
use crate::runtime::agent::{AgentError, StopKind};
use crate::runtime::checkpoint::PendingTask;
use crate::runtime::runs::GotoTarget;
use crate::state::ThreadState;

/// Position of an agent in its loop.
#[derive(Debug, Clone, PartialEq)]
pub struct LoopMachine {
    nodes: Arc<LoopNodes>,
    bounds: RunBounds,
    saved: SavedMachine,
    position: LoopPosition,
    /// Super-steps of this run.
    steps: u64,
    /// The next node may run although `interrupt_before` names it, because the run was started to
    /// resume there.
    released: bool,
    /// `interrupt_after` named the node that ran last.
    halted: bool,
}

impl LoopMachine {
    /// Creates a machine at the start of the loop. `seed` makes its task ids unique.
    pub fn new(nodes: Arc<LoopNodes>, bounds: RunBounds, seed: Uuid) -> Self {
        let position = nodes.entry();
        Self {
            saved: SavedMachine::new(seed),
            nodes,
            bounds,
            position,
            steps: 0,
            released: false,
            halted: false,
        }
    }

    /// Derives a machine from the state, for a state that was written by an external update: the
    /// tools are next for calls without results, the model for a user message or for results.
    /// Returns `None` if no node is pending.
    pub fn for_state(
        nodes: Arc<LoopNodes>,
        bounds: RunBounds,
        seed: Uuid,
        state: &ThreadState,
    ) -> Option<Self> {
        let messages = state.messages();
        let position = match &messages.last()?.kind {
            MessageKind::Human => nodes.entry(),
            MessageKind::Ai { .. } | MessageKind::Tool { .. }
                if !calls_without_result(messages).is_empty() =>
            {
                LoopPosition::Tools
            }
            MessageKind::Tool { .. } => nodes.loop_entry(),
            _ => return None,
        };
        Some(Self {
            position,
            released: true,
            ..Self::new(nodes, bounds, seed)
        })
    }

    /// Restores a machine at its saved position; the process may be a different one. The super-step
    /// count starts at zero.
    pub fn restore(
        nodes: Arc<LoopNodes>,
        bounds: RunBounds,
        machine: Value,
    ) -> Result<Self, AgentError> {
        let saved: SavedMachine = serde_json::from_value(machine).map_err(|error| {
            AgentError::Resume(format!(
                "the saved position of the agent is unreadable: {error}"
            ))
        })?;
        let position = saved.position(&nodes)?;
        Ok(Self {
            nodes,
            bounds,
            saved,
            position,
            steps: 0,
            released: true,
            halted: false,
        })
    }

    /// Applies answers to open questions. One open question takes any value. Several take a map
    /// from question ids to values, which may omit some, or a list of decisions if all of them
    /// request approval. `tool_exists` checks the tool name of an edited call.
    pub fn answer(
        &mut self,
        answers: Value,
        tool_exists: impl Fn(&str) -> bool,
    ) -> Result<(), AgentError> {
        self.saved.questions.answer(answers, tool_exists)
    }

    /// Returns the next step. Has no side effects.
    pub fn next_step(&self, state: &ThreadState) -> Step {
        if self.position == LoopPosition::End {
            return Step::Stop(StopKind::Completed);
        }
        if let Some(open) = self.saved.questions.all_open() {
            return Step::Stop(StopKind::Question(open));
        }
        let node = self.nodes.name(self.position);
        if self.halted || (!self.released && self.bounds.interrupt_before.selects(node)) {
            return Step::Stop(StopKind::Breakpoint);
        }
        if self.steps >= self.bounds.recursion_limit {
            return Step::RecursionExceeded(self.bounds.recursion_limit);
        }
        match self.position {
            LoopPosition::Hook(phase, nth) => match self.nodes.middleware(phase, nth) {
                Some(index) => Step::Hook { phase, index },
                None => Step::Stop(StopKind::Completed),
            },
            LoopPosition::Model => Step::CallModel,
            LoopPosition::Tools => {
                Step::CallTools(self.saved.questions.ready_calls(self.calls(state)))
            }
            LoopPosition::End => Step::Stop(StopKind::Completed),
        }
    }

    /// Advances after a hook; its update must already be in `state`.
    pub fn hook_done(&mut self, jump: Option<Jump>, state: &ThreadState) {
        let LoopPosition::Hook(phase, nth) = self.position else {
            return;
        };
        let next = match jump {
            Some(Jump::Model | Jump::Again) => self.nodes.loop_entry(),
            Some(Jump::Tools) if !calls_without_result(state.messages()).is_empty() => {
                LoopPosition::Tools
            }
            // The last phase has already begun, so its remaining hooks are skipped.
            Some(Jump::End) if phase == Phase::AfterAgent => LoopPosition::End,
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

    /// Advances after a model call; the answer must already be in `state`.
    pub fn model_done(&mut self, state: &ThreadState) {
        let next = self
            .nodes
            .hook_or(Phase::AfterModel, 0, || self.decide(state));
        self.advance(next);
    }

    /// Advances after a tool batch; the results must already be in the state.
    pub fn tools_done(&mut self, done: ToolsDone) {
        self.saved.batch.goto_end |= done.goto_end;
        self.saved.batch.all_direct = combine(self.saved.batch.all_direct, done.all_return_direct);
        let mut interrupts = std::mem::take(&mut self.saved.questions);
        interrupts.record(done.questions);
        self.saved.questions = interrupts;
        if self.saved.questions.is_empty() {
            let batch = std::mem::take(&mut self.saved.batch);
            self.advance(if batch.goto_end || batch.all_direct == Some(true) {
                self.nodes.exit()
            } else {
                self.nodes.loop_entry()
            });
        } else {
            // The node stays pending with the same task id until every question has an answer.
            self.steps += 1;
            self.released = true;
        }
    }

    /// Returns the current position.
    pub fn position(&self) -> LoopPosition {
        self.position
    }

    #[doc(hidden)]
    #[deprecated(note = "use `position`")]
    pub fn place(&self) -> LoopPosition {
        self.position()
    }

    /// Returns the number of super-steps of this run so far.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Returns the name of the next node.
    pub fn node(&self) -> &str {
        self.nodes.name(self.position)
    }

    /// Returns the id of the next task: stable until the task ends, also across a restore.
    pub fn task_id(&self) -> String {
        self.saved.task_id(self.node())
    }

    /// Returns the id of the task that executes one of the pending calls; equally stable.
    pub fn call_task_id(&self, call_id: &str) -> String {
        self.saved.task_id(&format!("{}:{call_id}", self.node()))
    }

    /// Returns the input of the next node that a command set instead of the state, if any.
    pub fn input(&self) -> Option<&Value> {
        self.saved.input.as_ref()
    }

    /// Returns the pending tasks: one for each call to execute, otherwise one for the next node;
    /// empty at the end.
    pub fn pending_tasks(&self, state: &ThreadState) -> Vec<PendingTask> {
        let task = |id, interrupts| PendingTask {
            interrupts,
            ..PendingTask::new(id, self.node())
        };
        let calls = if self.position == LoopPosition::Tools {
            self.call_ids(state)
        } else {
            Vec::new()
        };
        match self.position {
            LoopPosition::End => Vec::new(),
            _ if calls.is_empty() => vec![task(self.task_id(), Vec::new())],
            _ => calls
                .iter()
                .map(|call| task(self.call_task_id(call), self.saved.questions.of(call)))
                .collect(),
        }
    }

    #[doc(hidden)]
    #[deprecated(note = "use `pending_tasks`")]
    pub fn due(&self, state: &ThreadState) -> Vec<PendingTask> {
        self.pending_tasks(state)
    }

    /// Visits these nodes in order and continues from the last one as usual. Calls that have just
    /// got an answer are executed first; open questions are dropped.
    pub fn go_to(&mut self, visits: Vec<GotoTarget>) -> Result<(), AgentError> {
        if let Some(unknown) = visits
            .iter()
            .find(|visit| self.position_of(&visit.node).is_none())
        {
            return Err(AgentError::UnknownNode(
                unknown.node.chars().take(80).collect(),
            ));
        }
        self.saved.visits = visits.into();
        self.released = true;
        if !self.saved.questions.any_answered() {
            self.saved.questions = Interrupts::default();
            self.saved.batch = Batch::default();
            self.saved.serial += 1;
            self.position = self.next_visit().unwrap_or(self.position);
        }
        Ok(())
    }

    /// Removes and returns the next node that a command requested.
    fn next_visit(&mut self) -> Option<LoopPosition> {
        let visit = self.saved.visits.pop_front()?;
        self.saved.input = visit.input;
        self.position_of(&visit.node)
    }

    fn position_of(&self, node: &str) -> Option<LoopPosition> {
        if node == START {
            Some(self.nodes.entry())
        } else {
            self.nodes.position(node)
        }
    }

    /// `true` if calls wait for an answer of the user.
    pub fn has_interrupts(&self) -> bool {
        !self.saved.questions.is_empty()
    }

    #[doc(hidden)]
    #[deprecated(note = "use `has_interrupts`")]
    pub fn has_questions(&self) -> bool {
        self.has_interrupts()
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

    /// Returns the calls to execute: those that a command sent to the tools, otherwise those of the
    /// last answer.
    fn calls(&self, state: &ThreadState) -> Vec<PendingCall> {
        match self.input().map(calls_in) {
            Some(sent) if !sent.is_empty() => sent,
            _ => calls_without_result(state.messages()),
        }
    }

    /// Returns the serialized machine.
    pub fn save(&self) -> Value {
        self.saved.at(self.nodes.name(self.position))
    }

    fn after_phase(&self, phase: Phase, state: &ThreadState) -> LoopPosition {
        match phase {
            Phase::BeforeAgent => self.nodes.loop_entry(),
            Phase::BeforeModel => LoopPosition::Model,
            Phase::AfterModel => self.decide(state),
            Phase::AfterAgent => LoopPosition::End,
        }
    }

    fn decide(&self, state: &ThreadState) -> LoopPosition {
        match last_answer(state.messages()) {
            None => self.nodes.exit(),
            Some(answer) if !answer.has_calls() => self.nodes.exit(),
            Some(answer) if answer.has_calls_without_result() => LoopPosition::Tools,
            Some(_) => self.nodes.loop_entry(),
        }
    }

    fn advance(&mut self, next: LoopPosition) {
        self.halted = self
            .bounds
            .interrupt_after
            .selects(self.nodes.name(self.position));
        self.steps += 1;
        self.saved.serial += 1;
        self.released = false;
        self.saved.input = None;
        self.position = self.next_visit().unwrap_or(next);
    }
}

/// Combines the results of several attempts at a batch; an attempt in which no call ended has no
/// result.
fn combine(before: Option<bool>, now: Option<bool>) -> Option<bool> {
    before
        .into_iter()
        .chain(now)
        .reduce(|all, direct| all && direct)
}

#[cfg(test)]
#[path = "machine_tests.rs"]
mod tests;

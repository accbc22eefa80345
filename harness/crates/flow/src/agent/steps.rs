//! Reports the progress of a flow to the runtime: tasks, supersteps with their updates, and the
//! result as a message.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use async_trait::async_trait;
use deerflow_core::messages::Message;
use deerflow_core::state::{StateUpdate, ThreadState};
use deerflow_runtime::agent::{
    AgentEvent, AgentOutcome, MessageMeta, RunContext, StepEvent, StopKind, Task, TaskEnd,
    TaskInput,
};
use deerflow_runtime::checkpoint::NestedState;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::pending::{pending_tasks, published, question_json};
use super::saved_flow::SavedFlow;
use super::session_log::{record_session, recorded_session};
use super::start::histories_in;
use super::step_changes::StepChanges;
use super::tasks::Tasks;
use super::turn_log::{record_end, record_start};
use super::usage::has_usage;
use crate::adapter::{AgentTurnResult, FlowError, InvocationId, TurnEffect};
use crate::compiled::{CompiledFlow, NodeIndex};
use crate::driver::{NestedFlow, NestedPorts, Progress, RunHooks, SavedLevel, VisitTask};
use crate::machine::{Decision, FlowMachine, Question, SessionRecord, VisitStage};

/// Name of the pending task before the first superstep.
const START: &str = "__start__";

/// Reporter of one run.
#[derive(Debug)]
pub(super) struct StepReporter {
    pub(super) ctx: RunContext,
    pub(super) flow_name: String,
    /// `true` if events of turns are recorded; those of the run and its nodes always are.
    pub(super) records_turns: bool,
    /// Reporter of the enclosing flow, of which this one reports a sub-flow.
    pub(super) outer: Option<Outer>,
    pub(super) progress: Mutex<Reported>,
}

/// Place of a sub-flow in the enclosing flow.
#[derive(Debug)]
pub(super) struct Outer {
    pub(super) reporter: Arc<StepReporter>,
    /// `node:task id` of the task that runs the sub-flow.
    pub(super) namespace: Arc<str>,
    /// Text before the ids of its nodes in events: `outer/`.
    pub(super) prefix: String,
}

/// Progress that was reported to the runtime.
#[derive(Debug)]
pub(super) struct Reported {
    pub(super) state: Arc<ThreadState>,
    /// Checkpoints of the thread so far.
    pub(super) step: i64,
    pub(super) tasks: Tasks,
    /// Changes since the last superstep.
    pub(super) changes: StepChanges,
    /// Attempt of a turn whose output was streamed, by node.
    pub(super) streamed: HashMap<String, String>,
    /// Nodes whose nested agents report their model calls themselves.
    nested: HashSet<String>,
    /// Node that ended last.
    pub(super) last_node: String,
    /// Tasks that ended since the last step, oldest first: the last one of a run also has the
    /// result.
    pub(super) ended: Vec<(Arc<Task>, TaskEnd)>,
    /// Values of the last superstep, which the step of the result includes.
    pub(super) last_update: StateUpdate,
}

impl StepReporter {
    pub(super) fn new(
        flow: &CompiledFlow,
        ctx: &RunContext,
        state: ThreadState,
        step: i64,
        changes: StepChanges,
    ) -> Self {
        Self {
            ctx: ctx.clone(),
            flow_name: flow.document.meta.name.clone(),
            records_turns: flow.limits.persist_events,
            outer: None,
            progress: Mutex::new(Reported {
                state: Arc::new(state),
                step,
                tasks: Tasks::default(),
                changes,
                streamed: HashMap::new(),
                nested: HashSet::new(),
                last_node: START.to_owned(),
                ended: Vec::new(),
                last_update: StateUpdate::default(),
            }),
        }
    }

    /// Records that a node streams output, and returns its origin.
    pub(super) fn streaming(&self, node: &str, invocation: &str) -> Option<Arc<MessageMeta>> {
        let mut reported = self.progress.lock();
        if reported
            .streamed
            .get(node)
            .is_none_or(|known| known != invocation)
        {
            reported
                .streamed
                .insert(node.to_owned(), invocation.to_owned());
        }
        reported.tasks.meta(node)
    }

    /// Reports the pending tasks before the first superstep.
    pub(super) fn begin(&self, flow: &CompiledFlow, machine: &FlowMachine) {
        let reported = self.progress.lock();
        self.step(&reported, flow, machine, START, None, false);
    }

    /// Reports the position at a breakpoint.
    pub(super) fn pause(&self, flow: &CompiledFlow, machine: &FlowMachine) {
        let reported = self.progress.lock();
        self.step(&reported, flow, machine, &reported.last_node, None, true);
    }

    /// Reports the tasks that ended since the last step.
    pub(super) fn end_tasks(&self, reported: &mut Reported) {
        for (task, end) in reported.ended.drain(..) {
            self.send(AgentEvent::TaskEnd(task, end));
        }
    }

    pub(super) fn apply(&self, reported: &mut Reported, update: StateUpdate) {
        if let Err(error) = Arc::make_mut(&mut reported.state).apply(update, &*self.ctx.ids) {
            tracing::error!(%error, "values of a flow cannot be reduced");
        }
    }

    pub(super) fn step(
        &self,
        reported: &Reported,
        flow: &CompiledFlow,
        machine: &FlowMachine,
        node: &str,
        update: Option<StateUpdate>,
        checkpoint: bool,
    ) {
        self.send(AgentEvent::Step(StepEvent {
            node: node.to_owned(),
            update,
            state: reported.state.clone(),
            next: pending_tasks(flow, machine),
            machine: self.saved(reported, machine),
            steps: machine.steps_of_run(),
            checkpoint,
        }));
    }

    fn saved(&self, reported: &Reported, machine: &FlowMachine) -> Value {
        let saved = SavedFlow::new(self.ctx.run_id.as_str(), machine, &reported.changes);
        if self.is_nested() {
            return saved
                .with_histories(histories_in(&reported.state))
                .to_value();
        }
        saved.to_value()
    }

    /// Returns the values that a superstep changed.
    fn update(&self, reported: &mut Reported, progress: &Progress<'_>) -> StateUpdate {
        let update = reported.changes.take_update();
        let waiting: Vec<&str> = progress
            .machine
            .waiting()
            .map(|node| &*progress.flow.nodes[node].id)
            .collect();
        match (waiting.is_empty(), reported.state.channel("waiting")) {
            (true, None) => update,
            (true, Some(_)) => update.and("waiting", Value::Null),
            (false, _) => update.and("waiting", json!(waiting)),
        }
    }
}

#[async_trait]
impl RunHooks for StepReporter {
    fn superstep(&self, progress: Progress<'_>) {
        let mut reported = self.progress.lock();
        if !progress.data.errors().is_empty() {
            reported.changes.set_errors(json!(progress.data.errors()));
        }
        let update = self.update(&mut reported, &progress);
        self.apply(&mut reported, update.clone());
        let Reported { state, changes, .. } = &mut *reported;
        changes.take_turns(Arc::make_mut(state).histories_mut());
        // The result of a run follows in the same step.
        let is_last = progress.machine.next(progress.flow) == Decision::Finished;
        if !self.is_nested() && is_last && progress.data.result().is_some() {
            reported.last_update = update;
            return;
        }
        self.end_tasks(&mut reported);
        let node = reported.last_node.clone();
        self.step(
            &reported,
            progress.flow,
            progress.machine,
            &node,
            Some(update),
            true,
        );
        reported.step += 1;
    }

    fn amended(&self, progress: Progress<'_>) {
        let mut reported = self.progress.lock();
        self.end_tasks(&mut reported);
        if !progress.data.errors().is_empty() {
            reported.changes.set_errors(json!(progress.data.errors()));
        }
        let (flow, machine) = (progress.flow, progress.machine);
        self.step(&reported, flow, machine, &reported.last_node, None, true);
    }

    fn nested(self: Arc<Self>, level: NestedFlow<'_>) -> Option<NestedPorts> {
        let reporter = Arc::new(self.inside(&level));
        reporter.begin(level.flow, level.machine);
        Some(NestedPorts {
            events: reporter.clone(),
            hooks: reporter,
        })
    }

    fn read_saved(&self, state: &NestedState) -> Option<SavedLevel> {
        self.saved_level(state)
    }

    fn level_ended(&self) {
        self.send(AgentEvent::Done(AgentOutcome {
            kind: StopKind::Completed,
            stop_reason: None,
        }));
    }

    fn task_started(&self, task: VisitTask<'_>) {
        let mut reported = self.progress.lock();
        let task = Task {
            id: task.task_id.to_string(),
            node: task.node_id.to_owned(),
            step: u64::try_from(reported.step + 1).unwrap_or_default(),
            call: None,
        };
        reported.nested.remove(&task.node);
        let task = reported.tasks.start(&self.ctx, task);
        if !task.node.contains('/') {
            let state = TaskInput::State(reported.state.clone());
            self.send(AgentEvent::TaskStart(task, state));
        }
    }

    fn task_ended(&self, progress: Progress<'_>, node: NodeIndex, asked: &[Question]) {
        let id = &*progress.flow.nodes[node].id;
        let mut reported = self.progress.lock();
        id.clone_into(&mut reported.last_node);
        let values = progress.data.update(progress.flow, &[node]);
        let update = published(&values);
        if asked.is_empty() {
            reported.changes.add(values);
        }
        let Some(task) = reported.tasks.task(id) else {
            return;
        };
        let visit = progress
            .machine
            .active()
            .iter()
            .find(|visit| visit.node == node);
        let end = match visit.map(|visit| &visit.stage) {
            Some(VisitStage::Failed(error)) => TaskEnd {
                error: Some(error.message.clone()),
                ..TaskEnd::default()
            },
            _ if !asked.is_empty() => TaskEnd {
                interrupts: asked.iter().map(question_json).collect(),
                ..TaskEnd::default()
            },
            _ => {
                self.model_call(&progress, node, &task, reported.nested.contains(id));
                TaskEnd {
                    update: Some(update),
                    ..TaskEnd::default()
                }
            }
        };
        reported.ended.push((task, end));
    }

    fn turn_added(&self, agent_id: &str, turn: [Message; 2], length: usize) {
        let mut reported = self.progress.lock();
        reported.changes.add_turn(agent_id, turn, length);
    }

    fn agent_event(&self, node_id: &str, event: AgentEvent) {
        let mut reported = self.progress.lock();
        if has_usage(&event) {
            reported.nested.insert(node_id.to_owned());
        }
        if let Some(task) = reported.tasks.task(node_id) {
            self.send(AgentEvent::Nested(task.namespace().into(), Box::new(event)));
        }
    }

    async fn save_session(&self, agent: &str, session: &SessionRecord) -> Result<(), FlowError> {
        record_session(&self.ctx, agent, session).await
    }

    async fn saved_session(&self, agent: &str) -> Result<Option<SessionRecord>, FlowError> {
        recorded_session(&self.ctx, agent).await
    }

    async fn turn_starts(
        &self,
        turn: &InvocationId,
        effect: TurnEffect,
    ) -> Result<Option<AgentTurnResult>, FlowError> {
        record_start(&self.ctx.calls, turn, effect).await
    }

    async fn turn_ends(&self, turn: &InvocationId, result: &AgentTurnResult) {
        record_end(&self.ctx.calls, turn, result).await;
    }
}

//! Reports the progress of a flow to the runtime: tasks, supersteps with their updates, and the
//! result as a message.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use async_trait::async_trait;
use deerflow_core::messages::{Message, UsageMetadata};
use deerflow_core::state::{StateUpdate, ThreadState};
use deerflow_runtime::agent::{
    AgentEvent, MessageMeta, ModelCallRecord, RunContext, StepEvent, Task, TaskEnd, TaskInput,
};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::pending::{pending_tasks, published, question_json};
use super::saved_flow::SavedFlow;
use super::step_changes::StepChanges;
use super::tasks::Tasks;
use super::turn_log::{record_end, record_start};
use super::usage::has_usage;
use crate::adapter::{FlowError, InvocationId, TurnEffect};
use crate::compiled::{CompiledFlow, Driver, NodeIndex};
use crate::driver::{Progress, RunHooks, VisitTask};
use crate::machine::{Decision, FlowMachine, Question, RunData, VisitStage};

/// Name of the pending task before the first superstep.
const START: &str = "__start__";
/// Caller of the message with the result of a run.
const RESULT_CALLER: &str = "flow";

/// Reporter of one run.
#[derive(Debug)]
pub(super) struct StepReporter {
    ctx: RunContext,
    flow_name: String,
    progress: Mutex<Reported>,
}

/// Progress that was reported to the runtime.
#[derive(Debug)]
struct Reported {
    state: Arc<ThreadState>,
    /// Checkpoints of the thread so far.
    step: i64,
    tasks: Tasks,
    /// Changes since the last superstep.
    changes: StepChanges,
    /// Attempt of a turn whose output was streamed, by node.
    streamed: HashMap<String, String>,
    /// Nodes whose nested agents report their model calls themselves.
    nested: HashSet<String>,
    /// Node that ended last.
    last_node: String,
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
            progress: Mutex::new(Reported {
                state: Arc::new(state),
                step,
                tasks: Tasks::default(),
                changes,
                streamed: HashMap::new(),
                nested: HashSet::new(),
                last_node: START.to_owned(),
            }),
        }
    }

    pub(super) fn send(&self, event: AgentEvent) {
        self.ctx.sink.emit(event);
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

    /// Reports the result as a message of the conversation.
    pub(super) fn finish(
        &self,
        flow: &CompiledFlow,
        machine: &FlowMachine,
        data: &RunData,
        result: Option<Value>,
    ) {
        let Some(result) = result else { return };
        let mut reported = self.progress.lock();
        let text = match &result {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let streamed = flow.nodes.iter().enumerate().find_map(|(node, entry)| {
            let invocation = reported.streamed.get(&*entry.id)?;
            let output = data.output(node)?;
            (output.as_text() == text).then_some(invocation)
        });
        let is_streamed = streamed.is_some();
        let id = streamed
            .cloned()
            .unwrap_or_else(|| self.ctx.ids.message_id());
        let message = Message::ai(text).with(|body| {
            body.id = Some(id.clone());
            body.name = Some(self.flow_name.clone());
        });
        let node = reported.last_node.clone();
        self.send(AgentEvent::ModelCall(ModelCallRecord {
            call_id: id,
            caller: RESULT_CALLER.to_owned(),
            model: self.flow_name.clone(),
            message: message.clone(),
            usage: None,
            latency_ms: 0,
        }));
        if !is_streamed && let Some(meta) = reported.tasks.meta(&node) {
            self.send(AgentEvent::Message(message.clone(), meta));
        }
        let update = StateUpdate::messages([message]).and("result", result);
        self.apply(&mut reported, update.clone());
        self.step(&reported, flow, machine, &node, Some(update), true);
        reported.step += 1;
    }

    fn apply(&self, reported: &mut Reported, update: StateUpdate) {
        if let Err(error) = Arc::make_mut(&mut reported.state).apply(update, &*self.ctx.ids) {
            tracing::error!(%error, "values of a flow cannot be reduced");
        }
    }

    fn step(
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
        SavedFlow::new(self.ctx.run_id.as_str(), machine, &reported.changes).to_value()
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

    fn model_call(&self, progress: &Progress<'_>, node: NodeIndex, task: &Task, is_counted: bool) {
        let Driver::Agent(agent) = &progress.flow.nodes[node].driver else {
            return;
        };
        let Some(output) = progress.data.output(node) else {
            return;
        };
        let usage = UsageMetadata {
            input_tokens: output.usage.input_tokens,
            output_tokens: output.usage.output_tokens,
            total_tokens: output.usage.total_tokens,
            ..UsageMetadata::default()
        };
        let message = Message::ai(output.as_text()).with(|body| body.id = Some(task.id.clone()));
        self.send(AgentEvent::ModelCall(ModelCallRecord {
            call_id: task.id.clone(),
            caller: format!("flow:{}", agent.agent.agent_id),
            model: agent
                .model
                .clone()
                .unwrap_or_else(|| agent.agent.adapter_kind.clone()),
            message,
            usage: (output.usage.total_tokens > 0 && !is_counted).then_some(usage),
            latency_ms: 0,
        }));
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
        // The result follows in the same checkpoint.
        let is_last = progress.machine.next(progress.flow) == Decision::Finished;
        let checkpoint = !is_last || progress.data.result().is_none();
        let node = reported.last_node.clone();
        self.step(
            &reported,
            progress.flow,
            progress.machine,
            &node,
            Some(update),
            checkpoint,
        );
        reported.step += i64::from(checkpoint);
    }

    fn amended(&self, progress: Progress<'_>) {
        let mut reported = self.progress.lock();
        if !progress.data.errors().is_empty() {
            reported.changes.set_errors(json!(progress.data.errors()));
        }
        let (flow, machine) = (progress.flow, progress.machine);
        self.step(&reported, flow, machine, &reported.last_node, None, true);
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
        self.send(AgentEvent::TaskEnd(task, end));
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

    async fn turn_starts(&self, turn: &InvocationId, effect: TurnEffect) -> Result<(), FlowError> {
        record_start(&self.ctx.calls, turn, effect).await
    }

    async fn turn_ends(&self, turn: &InvocationId) {
        record_end(&self.ctx.calls, turn).await;
    }
}

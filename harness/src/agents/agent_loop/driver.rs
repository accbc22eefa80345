//! Executes the steps of the loop machine and emits events about them. The driver can be dropped at
//! any await point; no cleanup is needed.

use std::sync::Arc;

use super::assembly::Assembly;
use super::calls::PendingCall;
use super::dropped_calls::report_dropped_calls;
use super::edits;
use super::machine::{LoopMachine, Step};
use super::model_call::ProviderCall;
use super::nodes::{LoopPosition, MODEL, START, TOOLS};
use super::sent_state::sent_state;
use super::start::machine_for;
use super::task_meta::task_meta;
use super::tool_batch::{CallTask, run_batch, with_ids};
use crate::messages::{Message, MessageKind, kwargs};
use crate::middlewares::Phase;
use crate::runtime::agent::{
    AgentError, AgentEvent, AgentInput, AgentOutcome, AgentStart, RunContext, StepEvent, StopKind,
    Task, TaskEnd, TaskInput,
};
use crate::runtime::checkpoint::NestedStates;
use crate::runtime::compute::{Size, heavy_poll};
use crate::state::{StateUpdate, ThreadState};

/// Runs an agent to its end.
pub fn drive(
    assembly: Arc<Assembly>,
    input: AgentInput,
    ctx: RunContext,
) -> impl Future<Output = Result<AgentOutcome, AgentError>> + Send {
    let is_fresh = input.start == AgentStart::Fresh;
    // Created outside of the `async` block, which would store the arguments twice.
    let driver = Driver::start(assembly, input, ctx);
    async move {
        let Some(mut driver) = driver? else {
            return Ok(AgentOutcome {
                kind: StopKind::Completed,
                stop_reason: None,
            });
        };
        heavy_poll(Size::messages(driver.state.messages())).await;
        driver.emit_step(None, false);
        driver.report = StepReport::Emitted;
        if is_fresh {
            driver.echo_input();
        }
        driver.run().await
    }
}

/// State of one active run.
struct Driver {
    assembly: Arc<Assembly>,
    ctx: RunContext,
    state: Arc<ThreadState>,
    /// Saved states of agents inside the calls that were pending at the start.
    nested: NestedStates,
    machine: LoopMachine,
    /// Number of the thread's super-steps, as in its checkpoints.
    step: i64,
    /// The node that ran last.
    node: String,
    report: StepReport,
    stop_reason: Option<String>,
}

/// State of the step report: how much of the current position the last step event covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StepReport {
    /// The last step event describes the current position and has a checkpoint.
    Checkpointed,
    /// The last step event describes the current position without a checkpoint; its updates can be
    /// recomputed.
    Emitted,
    /// A hook without updates ran after the last step event.
    Pending,
    /// The current position has updates that need a checkpoint before the next long wait.
    Dirty,
}

impl Driver {
    /// Creates the driver of a run; `None` if there is nothing to do.
    fn start(
        assembly: Arc<Assembly>,
        input: AgentInput,
        ctx: RunContext,
    ) -> Result<Option<Box<Self>>, AgentError> {
        let Some(machine) = machine_for(&assembly, &input, &ctx)? else {
            return Ok(None);
        };
        Ok(Some(Box::new(Self {
            assembly,
            ctx,
            state: Arc::new(input.state),
            nested: input.nested,
            machine,
            step: input.step,
            node: START.to_owned(),
            report: StepReport::Dirty,
            stop_reason: None,
        })))
    }

    async fn run(&mut self) -> Result<AgentOutcome, AgentError> {
        loop {
            heavy_poll(Size::messages(self.state.messages())).await;
            match self.machine.next_step(&self.state) {
                Step::Hook { phase, index } => self.run_hook(phase, index).await?,
                Step::CallModel => self.call_model().await?,
                Step::CallTools(calls) => self.call_tools(calls).await?,
                Step::Stop(kind) => {
                    if self.report != StepReport::Checkpointed {
                        self.emit_step(None, true);
                    }
                    return Ok(AgentOutcome {
                        kind,
                        stop_reason: self.stop_reason.take(),
                    });
                }
                Step::RecursionExceeded(limit) => return Err(AgentError::RecursionLimit(limit)),
            }
        }
    }

    async fn run_hook(&mut self, phase: Phase, index: usize) -> Result<(), AgentError> {
        let outcome = self
            .assembly
            .stack
            .hook(phase, index, &self.state, &self.ctx)
            .await?;
        let update = with_ids(outcome.update, &self.ctx);
        let added = self.added_messages(&update);
        // The task of the hook, which is no longer the next one after `hook_done`.
        let meta = (!added.is_empty()).then(|| task_meta(&self.task(), &self.ctx, &self.assembly));
        if !update.messages.is_empty() {
            report_dropped_calls(
                self.state.messages(),
                &update.messages,
                self.assembly.stack.name(index),
                phase,
                &self.ctx,
            );
        }
        if !update.is_empty() {
            self.reduce(vec![update.clone()])?;
        }
        // The first stop reason is the cause of later ones.
        self.stop_reason = self.stop_reason.take().or(outcome.stop_reason);
        self.node = self.machine.node().to_owned();
        self.machine.hook_done(outcome.jump, &self.state);
        for (message, meta) in added.into_iter().zip(meta.iter().cycle()) {
            self.ctx
                .sink
                .emit(AgentEvent::Message(message, meta.clone()));
        }
        if update.is_empty() {
            self.report = if self.report == StepReport::Dirty {
                StepReport::Dirty
            } else {
                StepReport::Pending
            };
        } else {
            // Updates of hooks before the model are cheap to recompute.
            let repeatable = matches!(phase, Phase::BeforeAgent | Phase::BeforeModel)
                && self.report != StepReport::Dirty;
            self.emit_step(Some(update), !repeatable && self.continues_loop());
            if repeatable {
                self.report = StepReport::Emitted;
            }
        }
        Ok(())
    }

    /// Returns the visible messages of an update that the state does not have yet.
    fn added_messages(&self, update: &StateUpdate) -> Vec<Message> {
        if update.messages.is_empty() {
            return Vec::new();
        }
        let added = self.state.without_known(&update.messages);
        added
            .filter(|message| is_visible(message))
            .cloned()
            .collect()
    }

    async fn call_model(&mut self) -> Result<(), AgentError> {
        self.emit_before_wait();
        let task = self.task();
        let meta = task_meta(&task, &self.ctx, &self.assembly);
        let sent = self
            .machine
            .input()
            .map(|input| sent_state(input, &self.ctx))
            .transpose()?;
        let state = sent.unwrap_or_else(|| self.state.clone());
        self.ctx.sink.emit(AgentEvent::TaskStart(
            task.clone(),
            TaskInput::State(state.clone()),
        ));
        let request = self.assembly.request(&state, &self.ctx);
        let provider = ProviderCall::new(&self.assembly, meta.clone());
        let result = self
            .assembly
            .stack
            .model(&self.ctx, &provider)
            .run(request)
            .await;
        let message = match result {
            Ok(message) => message,
            Err(error) => {
                let text = error.to_string();
                self.end_task(
                    task,
                    TaskEnd {
                        error: Some(text.clone()),
                        ..TaskEnd::default()
                    },
                );
                return Err(AgentError::Model { message: text });
            }
        };
        let message = message.identified(&*self.ctx.ids);
        let interrupted = provider.take_interrupted(&message);
        let update = StateUpdate::messages(
            interrupted
                .iter()
                .map(|call| call.message.clone())
                .chain([message.clone()]),
        );
        for call in interrupted {
            self.ctx.sink.emit(AgentEvent::ModelCall(call));
        }
        if !provider.has_streamed(&message) {
            self.ctx.sink.emit(AgentEvent::ModelCall(
                provider.record_substitute(&message, &self.ctx),
            ));
            self.ctx.sink.emit(AgentEvent::Message(message, meta));
        }
        self.reduce(vec![update.clone()])?;
        self.end_task(
            task,
            TaskEnd {
                update: Some(update.clone()),
                ..TaskEnd::default()
            },
        );
        self.node = MODEL.to_owned();
        self.machine.model_done(&self.state);
        self.emit_step(Some(update), self.continues_loop());
        Ok(())
    }

    async fn call_tools(&mut self, calls: Vec<PendingCall>) -> Result<(), AgentError> {
        self.emit_before_wait();
        let edited = edits::with_edited_calls(self.state.messages(), &calls)
            .map(|answer| StateUpdate::messages([answer]));
        self.reduce(edited.iter().cloned().collect())?;
        let tasks = calls
            .into_iter()
            .enumerate()
            .map(|(nth, call)| self.call_task(nth, call))
            .collect();
        let batch = run_batch(&self.assembly, &self.ctx, &self.state, tasks).await;
        let written = edited
            .into_iter()
            .chain(batch.updates.iter().cloned())
            .reduce(merged);
        self.reduce(batch.updates)?;
        self.node = TOOLS.to_owned();
        self.machine.tools_done(batch.done);
        self.emit_step(written, batch.ended.is_some() || self.continues_loop());
        batch.ended.map_or(Ok(()), Err)
    }

    /// `true` if a model call or a tool batch follows. The step before it needs a checkpoint,
    /// because calls take long. At the end of the run, one checkpoint after the last update is
    /// enough.
    fn continues_loop(&self) -> bool {
        matches!(
            self.machine.position(),
            LoopPosition::Model | LoopPosition::Tools | LoopPosition::Hook(Phase::BeforeModel, _)
        ) && !self.machine.has_interrupts()
    }

    /// Emits a step event if the runtime does not know the current position yet; called before long
    /// waits.
    fn emit_before_wait(&mut self) {
        match self.report {
            StepReport::Checkpointed | StepReport::Emitted => {}
            StepReport::Pending => {
                self.emit_step(None, false);
                self.report = StepReport::Emitted;
            }
            StepReport::Dirty => self.emit_step(None, true),
        }
    }

    fn emit_step(&mut self, update: Option<StateUpdate>, checkpoint: bool) {
        let next = self.machine.pending_tasks(&self.state);
        // No run continues at the end of the loop.
        let machine = if next.is_empty() {
            serde_json::Value::Null
        } else {
            self.machine.save()
        };
        self.ctx.sink.emit(AgentEvent::Step(StepEvent {
            node: self.node.clone(),
            update,
            state: self.state.clone(),
            next,
            machine,
            steps: self.machine.steps(),
            checkpoint,
        }));
        self.step += i64::from(checkpoint);
        self.report = if checkpoint {
            StepReport::Checkpointed
        } else {
            StepReport::Dirty
        };
    }

    /// Emits the new user messages to subscribers of messages.
    fn echo_input(&self) {
        let start = Task {
            node: START.to_owned(),
            ..Task::clone(&self.task())
        };
        let meta = task_meta(&start, &self.ctx, &self.assembly);
        let messages = self.state.messages();
        let first_new = messages
            .iter()
            .rposition(|message| !message.is_human())
            .map_or(0, |at| at + 1);
        for message in messages[first_new..]
            .iter()
            .filter(|message| is_visible(message))
        {
            self.ctx
                .sink
                .emit(AgentEvent::Message(message.clone(), meta.clone()));
        }
    }

    fn reduce(&mut self, updates: Vec<StateUpdate>) -> Result<(), AgentError> {
        if updates.iter().any(|update| !update.is_empty()) {
            Arc::make_mut(&mut self.state).apply_parallel(updates, &*self.ctx.ids)?;
        }
        Ok(())
    }

    /// Returns the next task.
    fn task(&self) -> Arc<Task> {
        let step = u64::try_from(self.step + 1).unwrap_or_default();
        Arc::new(Task {
            id: self.machine.task_id(),
            node: self.machine.node().to_owned(),
            step,
            call: None,
        })
    }

    /// Returns the task that executes one of the pending calls.
    fn call_task(&self, nth: usize, call: PendingCall) -> CallTask {
        let task = Arc::new(Task {
            id: self.machine.call_task_id(call.id()),
            call: Some(nth),
            ..Task::clone(&self.task())
        });
        CallTask {
            nested: self.nested.get(&task.id).cloned(),
            meta: task_meta(&task, &self.ctx, &self.assembly),
            call,
            task,
        }
    }

    fn end_task(&self, task: Arc<Task>, end: TaskEnd) {
        self.ctx.sink.emit(AgentEvent::TaskEnd(task, end));
    }
}

/// Merges the updates of two parallel tasks into one for subscribers. The state is reduced from
/// each of them separately.
fn merged(mut first: StateUpdate, second: StateUpdate) -> StateUpdate {
    first.messages.extend(second.messages);
    first.channels.extend(second.channels);
    first
}

fn is_visible(message: &Message) -> bool {
    !message.flag(kwargs::HIDE_FROM_UI)
        && !matches!(message.kind, MessageKind::Remove | MessageKind::System)
}

//! Does what the machine says is due, and tells of it. Dropping the driver at any await leaves nothing to clean up.

use std::sync::Arc;

use serde_json::Value;
use uuid::Uuid;

use super::agent::Assembly;
use super::calls::DueCall;
use super::dropped_calls::tell_dropped_calls;
use super::edits;
use super::machine::{LoopMachine, RunBounds, Step};
use super::model_call::Provider;
use super::nodes::{MODEL, Place, START, TOOLS};
use super::tool_batch::{CallTask, run_batch, with_id, with_ids};
use crate::messages::{Message, MessageKind, kwargs};
use crate::middlewares::Phase;
use crate::runtime::agent::{
    AgentError, AgentEvent, AgentInput, AgentOutcome, AgentStart, MessageMeta, RunContext,
    StepEvent, StopKind, Task, TaskEnd, TaskInput,
};
use crate::runtime::checkpoint::{NestedStates, within};
use crate::runtime::compute::{Size, heavy_poll};
use crate::state::{StateUpdate, ThreadState};

/// Runs an agent of these parts to its end.
pub async fn drive(
    parts: Arc<Assembly>,
    input: AgentInput,
    ctx: RunContext,
) -> Result<AgentOutcome, AgentError> {
    let fresh = input.start == AgentStart::Fresh;
    let Some(machine) = machine_for(&parts, &input, &ctx)? else {
        return Ok(AgentOutcome {
            kind: StopKind::Completed,
            stop_reason: None,
        });
    };
    let (state, nested) = (Arc::new(input.state), input.nested);
    let mut driver = Driver {
        parts,
        ctx,
        state,
        nested,
        machine,
        step: input.step,
        node: START.to_owned(),
        news: News::Unsaved,
        stop_reason: None,
    };
    heavy_poll(Size::messages(driver.state.messages())).await;
    driver.tell_step(None, false);
    driver.news = News::Told;
    if fresh {
        driver.echo_input();
    }
    driver.run().await
}

/// The machine to run, or none when nothing is due on a thread that has a past.
fn machine_for(
    parts: &Assembly,
    input: &AgentInput,
    ctx: &RunContext,
) -> Result<Option<LoopMachine>, AgentError> {
    let bounds = || RunBounds {
        recursion_limit: ctx.recursion_limit,
        interrupt_before: ctx.interrupt_before.clone(),
        interrupt_after: ctx.interrupt_after.clone(),
    };
    let nodes = || parts.nodes.clone();
    let seed = Uuid::new_v5(
        &Uuid::NAMESPACE_OID,
        within(&ctx.namespace, ctx.run_id.as_str()).as_bytes(),
    );
    let knows = |tool: &str| parts.tools.get(tool).is_some();
    let saved = || {
        input
            .machine
            .clone()
            .map(|saved| LoopMachine::restore(nodes(), bounds(), saved))
            .transpose()
    };
    match (&input.start, input.state.messages()) {
        (AgentStart::Fresh, _) => Ok(Some(LoopMachine::new(nodes(), bounds(), seed))),
        (AgentStart::Goto { resume, visits }, _) => {
            let mut machine = saved()?.unwrap_or_else(|| LoopMachine::new(nodes(), bounds(), seed));
            if let Some(answers) = resume {
                machine.answer(answers.clone(), knows)?;
            }
            machine.go_to(visits.clone())?;
            Ok(Some(machine))
        }
        (start, messages) => match (saved()?, start) {
            (Some(mut machine), AgentStart::Resume(answers)) => {
                machine.answer(answers.clone(), knows)?;
                Ok(Some(machine))
            }
            (Some(machine), _) => Ok(Some(machine)),
            (None, _) if messages.is_empty() => Err(AgentError::EmptyInput),
            (None, AgentStart::Continue) if !parts.has_last_word(messages) => Ok(
                LoopMachine::for_state(nodes(), bounds(), seed, &input.state),
            ),
            (None, _) => Ok(None),
        },
    }
}

/// One run under way.
struct Driver {
    parts: Arc<Assembly>,
    ctx: RunContext,
    state: Arc<ThreadState>,
    /// Agents inside of calls that were due at the start.
    nested: NestedStates,
    machine: LoopMachine,
    /// The thread's super-steps so far, as checkpoints count them.
    step: i64,
    /// The node that ran last.
    node: String,
    news: News,
    stop_reason: Option<String>,
}

/// What of the present position has been told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum News {
    /// The last step told of it, with a checkpoint.
    Saved,
    /// The last step told of it, without a checkpoint, and what it wrote can be had again.
    Told,
    /// A hook that wrote nothing has run since the last step.
    Untold,
    /// There is something new that a checkpoint should keep before the next long wait.
    Unsaved,
}

impl Driver {
    async fn run(mut self) -> Result<AgentOutcome, AgentError> {
        loop {
            heavy_poll(Size::messages(self.state.messages())).await;
            match self.machine.next_step(&self.state) {
                Step::Hook { phase, index } => self.run_hook(phase, index).await?,
                Step::CallModel => self.call_model().await?,
                Step::CallTools(calls) => self.call_tools(calls).await?,
                Step::Stop(kind) => {
                    if self.news != News::Saved {
                        self.tell_step(None, true);
                    }
                    return Ok(AgentOutcome {
                        kind,
                        stop_reason: self.stop_reason,
                    });
                }
                Step::RecursionExceeded(limit) => return Err(AgentError::RecursionLimit(limit)),
            }
        }
    }

    async fn run_hook(&mut self, phase: Phase, index: usize) -> Result<(), AgentError> {
        let outcome = self
            .parts
            .stack
            .hook(phase, index, &self.state, &self.ctx)
            .await?;
        let meta = self.meta(&self.task());
        let update = with_ids(outcome.update, &self.ctx);
        let joining = self.state.without_known(&update.messages);
        let joining: Vec<Message> = joining
            .filter(|message| is_visible(message))
            .cloned()
            .collect();
        tell_dropped_calls(
            self.state.messages(),
            &update.messages,
            self.parts.stack.name(index),
            phase,
            &self.ctx,
        );
        self.reduce(vec![update.clone()])?;
        // What was cut first is why the rest is missing.
        self.stop_reason = self.stop_reason.take().or(outcome.stop_reason);
        self.node = self.machine.node().to_owned();
        self.machine.hook_done(outcome.jump, &self.state);
        for message in joining {
            self.ctx
                .sink
                .emit(AgentEvent::Message(message, meta.clone()));
        }
        if update.is_empty() {
            self.news = if self.news == News::Unsaved {
                News::Unsaved
            } else {
                News::Untold
            };
        } else {
            // What hooks write before the model costs nothing to do again.
            let repeatable = matches!(phase, Phase::BeforeAgent | Phase::BeforeModel)
                && self.news != News::Unsaved;
            self.tell_step(Some(update), !repeatable && self.waits_next());
            if repeatable {
                self.news = News::Told;
            }
        }
        Ok(())
    }

    async fn call_model(&mut self) -> Result<(), AgentError> {
        self.tell_before_wait();
        let task = self.task();
        let meta = self.meta(&task);
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
        let request = self.parts.request(&state, &self.ctx);
        let provider = Provider::new(&self.parts, meta.clone());
        let answered = self
            .parts
            .stack
            .model(&self.ctx, &provider)
            .run(request)
            .await;
        let message = match answered {
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
        let message = with_id(message, &self.ctx);
        let broken = provider.take_broken(&message);
        let update = StateUpdate::messages(
            broken
                .iter()
                .map(|call| call.message.clone())
                .chain([message.clone()]),
        );
        for call in broken {
            self.ctx.sink.emit(AgentEvent::ModelCall(call));
        }
        if !provider.has_streamed(&message) {
            self.ctx.sink.emit(AgentEvent::ModelCall(
                provider.stand_in(&message, &self.ctx),
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
        self.tell_step(Some(update), self.waits_next());
        Ok(())
    }

    async fn call_tools(&mut self, calls: Vec<DueCall>) -> Result<(), AgentError> {
        self.tell_before_wait();
        let edited = edits::written(self.state.messages(), &calls)
            .map(|answer| StateUpdate::messages([answer]));
        self.reduce(edited.iter().cloned().collect())?;
        let tasks = calls
            .into_iter()
            .enumerate()
            .map(|(nth, call)| self.call_task(nth, call))
            .collect();
        let batch = run_batch(&self.parts, &self.ctx, &self.state, tasks).await;
        let told = edited
            .into_iter()
            .chain(batch.updates.iter().cloned())
            .reduce(joined);
        self.reduce(batch.updates)?;
        self.node = TOOLS.to_owned();
        self.machine.tools_done(batch.done);
        self.tell_step(told, batch.ended.is_some() || self.waits_next());
        batch.ended.map_or(Ok(()), Err)
    }

    /// Whether the loop goes on to the model or the tools: then a step is worth a checkpoint, for what comes takes its time.
    /// At the end one checkpoint with the last word is enough.
    fn waits_next(&self) -> bool {
        matches!(
            self.machine.place(),
            Place::Model | Place::Tools | Place::Hook(Phase::BeforeModel, _)
        ) && !self.machine.has_questions()
    }

    /// Before a long wait the runtime must know where the agent stands.
    fn tell_before_wait(&mut self) {
        match self.news {
            News::Saved | News::Told => {}
            News::Untold => {
                self.tell_step(None, false);
                self.news = News::Told;
            }
            News::Unsaved => self.tell_step(None, true),
        }
    }

    fn tell_step(&mut self, update: Option<StateUpdate>, checkpoint: bool) {
        self.ctx.sink.emit(AgentEvent::Step(StepEvent {
            node: self.node.clone(),
            update,
            state: self.state.clone(),
            next: self.machine.due(&self.state),
            machine: self.machine.save(),
            steps: self.machine.steps(),
            checkpoint,
        }));
        self.step += i64::from(checkpoint);
        self.news = if checkpoint {
            News::Saved
        } else {
            News::Unsaved
        };
    }

    /// The new user messages, as viewers of messages get them back.
    fn echo_input(&self) {
        let meta = self.meta(&Task {
            node: START.to_owned(),
            ..Task::clone(&self.task())
        });
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

    /// The task that is due.
    fn task(&self) -> Arc<Task> {
        let step = u64::try_from(self.step + 1).unwrap_or_default();
        Arc::new(Task {
            id: self.machine.task_id(),
            node: self.machine.node().to_owned(),
            step,
            call: None,
        })
    }

    /// The task that makes one of the calls that are due.
    fn call_task(&self, nth: usize, call: DueCall) -> CallTask {
        let task = Arc::new(Task {
            id: self.machine.call_task_id(call.id()),
            call: Some(nth),
            ..Task::clone(&self.task())
        });
        CallTask {
            nested: self.nested.get(&task.id).cloned(),
            meta: self.meta(&task),
            call,
            task,
        }
    }

    fn end_task(&self, task: Arc<Task>, end: TaskEnd) {
        self.ctx.sink.emit(AgentEvent::TaskEnd(task, end));
    }

    fn meta(&self, task: &Task) -> Arc<MessageMeta> {
        let namespace = within(&self.ctx.namespace, &task.namespace());
        Arc::new(MessageMeta {
            thread_id: self.ctx.thread_id.to_string(),
            run_id: self.ctx.run_id.to_string(),
            langgraph_step: task.step,
            langgraph_node: task.node.clone(),
            langgraph_triggers: task.triggers(),
            langgraph_path: task.path(),
            checkpoint_ns: if self.ctx.namespace.is_empty() {
                namespace.clone()
            } else {
                self.ctx.namespace.to_string()
            },
            langgraph_checkpoint_ns: namespace,
            extra: self.parts.facts.clone(),
        })
    }
}

/// The state that a command sent to the model instead of the thread's.
fn sent_state(input: &Value, ctx: &RunContext) -> Result<Arc<ThreadState>, AgentError> {
    let items = input
        .get("messages")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    let messages: Result<Vec<Message>, _> = items.into_iter().map(Message::coerce).collect();
    let messages = messages.map_err(|error| {
        AgentError::Resume(format!(
            "what was sent to the model is no conversation: {error}"
        ))
    })?;
    let mut state = ThreadState::default();
    state.apply(StateUpdate::messages(messages), &*ctx.ids)?;
    Ok(Arc::new(state))
}

/// What two parallel tasks wrote, as one update for viewers. The state is reduced from each of them.
fn joined(mut first: StateUpdate, second: StateUpdate) -> StateUpdate {
    first.messages.extend(second.messages);
    first.channels.extend(second.channels);
    first
}

fn is_visible(message: &Message) -> bool {
    !message.flag(kwargs::HIDE_FROM_UI)
        && !matches!(message.kind, MessageKind::Remove | MessageKind::System)
}

//! Does what the machine says is due, and tells of it. Dropping the driver at any await leaves nothing to clean up.

use std::sync::Arc;

use serde_json::{Value, json};
use uuid::Uuid;

use super::agent::Assembly;
use super::calls::DueCall;
use super::machine::{LoopMachine, RunBounds, Step};
use super::model_call::Provider;
use super::nodes::{MODEL, Place, START, TOOLS};
use super::tool_batch::run_batch;
use crate::messages::{Message, MessageKind, kwargs};
use crate::middlewares::Phase;
use crate::runtime::agent::{AgentError, AgentEvent, AgentInput, AgentOutcome, AgentStart, MessageMeta, RunContext, StepEvent, StopKind};
use crate::state::{StateUpdate, ThreadState};

/// Runs an agent of these parts to its end.
pub async fn drive(parts: Arc<Assembly>, input: AgentInput, ctx: RunContext) -> Result<AgentOutcome, AgentError> {
    let fresh = input.start == AgentStart::Fresh;
    let Some(machine) = machine_for(&parts, &input, &ctx)? else {
        return Ok(AgentOutcome { kind: StopKind::Completed, stop_reason: None });
    };
    let state = Arc::new(input.state);
    let mut driver = Driver { parts, ctx, state, machine, node: START.to_owned(), news: News::Unsaved, stop_reason: None };
    driver.tell_step(None, false);
    driver.news = News::Told;
    if fresh {
        driver.echo_input();
    }
    driver.run().await
}

/// The machine to run, or none when nothing is due on a thread that has a past.
fn machine_for(parts: &Assembly, input: &AgentInput, ctx: &RunContext) -> Result<Option<LoopMachine>, AgentError> {
    let bounds = RunBounds {
        recursion_limit: ctx.recursion_limit,
        interrupt_before: ctx.interrupt_before.clone(),
        interrupt_after: ctx.interrupt_after.clone(),
    };
    let nodes = parts.nodes.clone();
    let seed = Uuid::new_v5(&Uuid::NAMESPACE_OID, ctx.run_id.as_str().as_bytes());
    if input.start == AgentStart::Fresh {
        return Ok(Some(LoopMachine::new(nodes, bounds, seed)));
    }
    let Some(saved) = input.machine.clone() else {
        return match (&input.start, input.state.messages()) {
            (_, []) => Err(AgentError::EmptyInput),
            (AgentStart::Continue, messages) if !parts.has_last_word(messages) => {
                Ok(LoopMachine::for_state(nodes, bounds, seed, &input.state))
            }
            _ => Ok(None),
        };
    };
    let mut machine = LoopMachine::restore(nodes, bounds, saved)?;
    if let AgentStart::Resume(answers) = &input.start {
        machine.answer(answers.clone())?;
    }
    Ok(Some(machine))
}

/// One run under way.
struct Driver {
    parts: Arc<Assembly>,
    ctx: RunContext,
    state: Arc<ThreadState>,
    machine: LoopMachine,
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
            match self.machine.next_step(&self.state) {
                Step::Hook { phase, index } => self.run_hook(phase, index).await?,
                Step::CallModel => self.call_model().await?,
                Step::CallTools(calls) => self.call_tools(calls).await?,
                Step::Stop(kind) => {
                    if self.news != News::Saved {
                        self.tell_step(None, true);
                    }
                    return Ok(AgentOutcome { kind, stop_reason: self.stop_reason });
                }
                Step::RecursionExceeded(limit) => return Err(AgentError::RecursionLimit(limit)),
            }
        }
    }

    async fn run_hook(&mut self, phase: Phase, index: usize) -> Result<(), AgentError> {
        let outcome = self.parts.stack.hook(phase, index, &self.state, &self.ctx).await?;
        let meta = self.meta();
        let update = self.with_ids(outcome.update);
        let known = |message: &Message| self.state.messages().iter().rev().any(|held| held.id == message.id);
        let joining: Vec<Message> = update.messages.iter().filter(|message| is_visible(message) && !known(message)).cloned().collect();
        self.reduce(vec![update.clone()])?;
        self.stop_reason = outcome.stop_reason.or(self.stop_reason.take());
        self.node = self.machine.node().to_owned();
        self.machine.hook_done(outcome.jump, &self.state);
        for message in joining {
            self.ctx.sink.emit(AgentEvent::Message(message, meta.clone()));
        }
        if update.is_empty() {
            self.news = if self.news == News::Unsaved { News::Unsaved } else { News::Untold };
        } else {
            // What hooks write before the model costs nothing to do again.
            let repeatable = matches!(phase, Phase::BeforeAgent | Phase::BeforeModel) && self.news != News::Unsaved;
            self.tell_step(Some(update), !repeatable && self.waits_next());
            if repeatable {
                self.news = News::Told;
            }
        }
        Ok(())
    }

    async fn call_model(&mut self) -> Result<(), AgentError> {
        self.tell_before_wait();
        let meta = self.meta();
        let task = self.start_task(MODEL, Value::Null);
        let request = self.parts.request(&self.state, &self.ctx);
        let provider = Provider::new(&self.parts, meta.clone());
        let answered = self.parts.stack.model(&self.ctx, &provider).run(request).await;
        let message = match answered {
            Ok(message) => message,
            Err(error) => {
                let text = error.to_string();
                self.end_task(MODEL, task, Value::Null, Some(text.clone()));
                return Err(AgentError::Model { message: text });
            }
        };
        let message = self.with_id(message);
        let broken = provider.take_broken(&message);
        let update = StateUpdate::messages(broken.iter().map(|call| call.message.clone()).chain([message.clone()]));
        for call in broken {
            self.ctx.sink.emit(AgentEvent::ModelCall(call));
        }
        if !provider.has_streamed(&message) {
            self.ctx.sink.emit(AgentEvent::ModelCall(provider.stand_in(&message, &self.ctx)));
            self.ctx.sink.emit(AgentEvent::Message(message, meta));
        }
        self.reduce(vec![update.clone()])?;
        self.end_task(MODEL, task, json!(update), None);
        self.node = MODEL.to_owned();
        self.machine.model_done(&self.state);
        self.tell_step(Some(update), self.waits_next());
        Ok(())
    }

    async fn call_tools(&mut self, calls: Vec<DueCall>) -> Result<(), AgentError> {
        self.tell_before_wait();
        let meta = self.meta();
        let task = self.start_task(TOOLS, calls.iter().map(|due| json!(due.call)).collect());
        let batch = run_batch(&self.parts, &self.ctx, &self.state, &meta, calls).await;
        let updates: Vec<StateUpdate> = batch.updates.into_iter().map(|update| self.with_ids(update)).collect();
        let told = updates.iter().cloned().reduce(joined);
        self.reduce(updates)?;
        self.end_task(TOOLS, task, json!(told), batch.ended.as_ref().map(AgentError::to_string));
        self.node = TOOLS.to_owned();
        self.machine.tools_done(batch.done);
        self.tell_step(told, batch.ended.is_some() || self.waits_next());
        batch.ended.map_or(Ok(()), Err)
    }

    /// Whether the loop goes on to the model or the tools: then a step is worth a checkpoint, for what comes takes its time.
    /// At the end one checkpoint with the last word is enough.
    fn waits_next(&self) -> bool {
        matches!(self.machine.place(), Place::Model | Place::Tools | Place::Hook(Phase::BeforeModel, _))
            && self.machine.due().iter().all(|task| task.interrupts.is_empty())
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
            next: self.machine.due(),
            machine: self.machine.save(),
            checkpoint,
        }));
        self.news = if checkpoint { News::Saved } else { News::Unsaved };
    }

    /// The new user messages, as viewers of messages get them back.
    fn echo_input(&self) {
        let meta = Arc::new(self.meta_of(START, &self.machine.task_id()));
        let messages = self.state.messages();
        let first_new = messages.iter().rposition(|message| !message.is_human()).map_or(0, |at| at + 1);
        for message in messages[first_new..].iter().filter(|message| is_visible(message)) {
            self.ctx.sink.emit(AgentEvent::Message(message.clone(), meta.clone()));
        }
    }

    fn reduce(&mut self, updates: Vec<StateUpdate>) -> Result<(), AgentError> {
        if updates.iter().any(|update| !update.is_empty()) {
            Arc::make_mut(&mut self.state).apply_parallel(updates, &*self.ctx.ids)?;
        }
        Ok(())
    }

    /// Viewers and the state must agree on the id of every new message.
    fn with_ids(&self, mut update: StateUpdate) -> StateUpdate {
        update.messages = update.messages.into_iter().map(|message| self.with_id(message)).collect();
        update
    }

    fn with_id(&self, message: Message) -> Message {
        if message.id.is_some() { message } else { message.with(|body| body.id = Some(self.ctx.ids.message_id())) }
    }

    fn start_task(&self, node: &str, input: Value) -> String {
        let id = self.machine.task_id();
        self.ctx.sink.emit(AgentEvent::TaskStart { id: id.clone(), name: node.to_owned(), input });
        id
    }

    fn end_task(&self, node: &str, id: String, result: Value, error: Option<String>) {
        self.ctx.sink.emit(AgentEvent::TaskEnd { id, name: node.to_owned(), result, error });
    }

    fn meta(&self) -> Arc<MessageMeta> {
        Arc::new(self.meta_of(self.machine.node(), &self.machine.task_id()))
    }

    fn meta_of(&self, node: &str, task: &str) -> MessageMeta {
        let namespace = format!("{node}:{task}");
        MessageMeta {
            thread_id: self.ctx.thread_id.to_string(),
            run_id: self.ctx.run_id.to_string(),
            langgraph_step: self.machine.steps(),
            langgraph_node: node.to_owned(),
            langgraph_checkpoint_ns: namespace.clone(),
            checkpoint_ns: namespace,
            extra: self.parts.facts.clone(),
        }
    }
}

/// What two parallel tasks wrote, as one update for viewers. The state is reduced from each of them.
fn joined(mut first: StateUpdate, second: StateUpdate) -> StateUpdate {
    first.messages.extend(second.messages);
    first.channels.extend(second.channels);
    first
}

fn is_visible(message: &Message) -> bool {
    !message.flag(kwargs::HIDE_FROM_UI) && !matches!(message.kind, MessageKind::Remove | MessageKind::System)
}

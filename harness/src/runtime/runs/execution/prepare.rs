//! The second hop: the thread's state with the input in it, and an agent that has begun.

use std::sync::Arc;

use futures_util::FutureExt;

use super::super::spec::RunInput;
use super::end::StreamEnd;
use super::{Execution, Progress};
use crate::runtime::agent::{AgentInput, AgentOutcome, AgentStart, AgentStream, EventSink, RunContext, StopKind};
use crate::runtime::checkpoint::CheckpointError;
use crate::state::{StateUpdate, ThreadState};

impl Execution {
    /// Loads the state, reduces the input into it, shows that, and starts the agent. The input is saved with the agent's first
    /// word, which tells what is due.
    #[tracing::instrument(name = "prepare", skip_all)]
    pub(super) async fn prepare(&mut self) -> Result<AgentStream, StreamEnd> {
        let machine = self.load().await?;
        let start = match self.plan.input.clone() {
            RunInput::Update(update) => {
                self.take_input(update)?;
                AgentStart::Fresh
            }
            RunInput::Resume(answers) => AgentStart::Resume(answers),
            RunInput::Continue => AgentStart::Continue,
        };
        self.encoder.values(&self.progress.state, &[], &mut self.frames);
        self.publish_frames().await?;
        let (sink, events) = EventSink::channel();
        if start == AgentStart::Continue && self.progress.next.is_empty() && !self.progress.state.messages().is_empty() {
            // The thread is done: there is nothing to go on with, and asking the agent might begin anew.
            let done = async { Ok(AgentOutcome { kind: StopKind::Completed, stop_reason: None }) };
            return Ok(AgentStream::new(events, done.boxed()));
        }
        let input = AgentInput { state: ThreadState::clone(&self.progress.state), start, machine };
        Ok(self.plan.agent.stream(input, self.context(sink), events))
    }

    /// The checkpoint the run starts from, and where its machine stood.
    async fn load(&mut self) -> Result<Option<serde_json::Value>, StreamEnd> {
        let wanted = self.plan.checkpoint.as_ref().map(|checkpoint| &checkpoint.checkpoint_id);
        let found = self.parts.checkpointer.get(&self.plan.thread_id, wanted).await.map_err(storage)?;
        let Some(snapshot) = found else {
            let log_tail = self.parts.checkpointer.log_tail(&self.plan.thread_id).await.map_err(storage)?;
            self.progress = Progress { step: -2, log_tail, ..Progress::default() };
            return Ok(None);
        };
        let state = Arc::new(snapshot.state);
        self.progress = Progress {
            before: state.clone(),
            state,
            log_tail: snapshot.log_tail,
            parent: Some(snapshot.meta.checkpoint_id),
            step: snapshot.meta.step,
            due_before: !snapshot.meta.next.is_empty(),
            next: snapshot.meta.next,
            machine: snapshot.meta.machine.clone(),
            dirty: false,
            input_unsaved: false,
        };
        Ok(snapshot.meta.machine)
    }

    /// Reduces the input; whatever was due before is dropped.
    fn take_input(&mut self, update: StateUpdate) -> Result<(), StreamEnd> {
        let mut update = update;
        for message in &mut update.messages {
            if message.id.is_none() {
                *message = message.with(|body| body.id = Some(self.parts.ids.message_id()));
            }
        }
        let ids: Vec<String> = update.messages.iter().filter_map(|message| message.id.clone()).collect();
        Arc::make_mut(&mut self.progress.state)
            .apply(update, &*self.parts.ids)
            .map_err(|error| StreamEnd::failed("InvalidUpdateError", error.to_string()))?;
        self.progress.next.clear();
        self.progress.machine = None;
        self.progress.dirty = true;
        self.progress.input_unsaved = true;
        self.callbacks.events.human(&self.progress.state, &ids);
        Ok(())
    }

    fn context(&self, sink: EventSink) -> RunContext {
        RunContext {
            thread_id: self.plan.thread_id.clone(),
            run_id: self.plan.run_id.clone(),
            actor: self.plan.actor.clone(),
            options: self.plan.options.clone(),
            tags: self.plan.tags.clone(),
            recursion_limit: self.plan.recursion_limit,
            interrupt_before: self.plan.interrupt_before.clone(),
            interrupt_after: self.plan.interrupt_after.clone(),
            clock: self.parts.clock.clone(),
            ids: self.parts.ids.clone(),
            sink,
            token: self.live.token.child_token(),
        }
    }
}

fn storage(error: CheckpointError) -> StreamEnd {
    StreamEnd::failed("StorageError", format!("the thread cannot be read: {error}"))
}

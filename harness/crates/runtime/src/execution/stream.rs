//! Third phase of an execution: turns the agent's events into frames, checkpoints and journal rows.

use std::pin::pin;

use futures_util::StreamExt;
use tokio::task::yield_now;
use tokio::time::{Instant, sleep_until};

use super::stream_end::StreamEnd;
use crate::agent::{Agent, AgentError, AgentEvent, AgentStream, StepEvent};
use crate::checkpoint::{
    CheckpointMeta, CheckpointPath, CheckpointSource, CheckpointWrite, PendingTask,
};
use crate::definition::Durability;
use crate::encoding::CheckpointView;
use crate::execution::Execution;
use crate::kernel::StopSignal;
use deerflow_core::compute::{Size, heavy_poll};
use deerflow_core::ids::CheckpointId;

/// Error text of a run that exceeds its wall clock limit.
const WALL_CLOCK_EXCEEDED: &str = "the run reached its time limit";

/// Reasons why an agent may emit no events.
#[derive(Debug, Default)]
struct IdleState {
    awaits_human: bool,
    /// Number of running tools. Tools have time limits of their own, so a slow tool is not a hung
    /// agent.
    tools: usize,
    /// Number of pending tasks, if they have time limits of their own as well.
    tasks: Option<usize>,
}

impl IdleState {
    fn of(agent: &dyn Agent) -> Self {
        Self {
            tasks: agent.limits_tasks().then_some(0),
            ..Self::default()
        }
    }

    fn on_event(&mut self, event: &AgentEvent) {
        self.awaits_human = matches!(event, AgentEvent::AwaitingInput);
        match event {
            AgentEvent::ToolStart { .. } => self.tools += 1,
            AgentEvent::ToolEnd(_) => self.tools = self.tools.saturating_sub(1),
            // No tool runs after a step. A tool that raises an interrupt ends without an end event.
            AgentEvent::Step(_) => self.tools = 0,
            AgentEvent::TaskStart(..) => self.tasks = self.tasks.map(|tasks| tasks + 1),
            AgentEvent::TaskEnd(..) => {
                self.tasks = self.tasks.map(|tasks| tasks.saturating_sub(1));
            }
            _ => {}
        }
    }

    fn is_allowed(&self) -> bool {
        self.awaits_human || self.tools > 0 || self.tasks.is_some_and(|tasks| tasks > 0)
    }
}

impl Execution {
    /// Streams until the agent ends, fails, is cancelled, or times out. Dropping the agent's stream
    /// stops the agent.
    #[tracing::instrument(name = "stream", skip_all)]
    pub(super) async fn stream(&mut self, mut events: AgentStream) -> StreamEnd {
        let token = self.active.token.clone();
        let mut cancelled = pin!(token.cancelled());
        let limits = *self.plan.limits();
        let wall = Instant::now() + limits.wall_clock;
        let mut last_event = Instant::now();
        // The timer is re-armed only when it fires, because a reset per event is expensive.
        let mut watchdog = pin!(sleep_until(wall.min(last_event + limits.idle)));
        let mut answering = false;
        let mut silence = IdleState::of(&**self.plan.agent());
        loop {
            tokio::select! {
                biased;
                () = &mut cancelled => {
                    let stop = self.active.stop_reason();
                    if matches!(stop, StopSignal::Cancel(_)) {
                        self.wind_down(&mut events).await;
                    }
                    return stop.into();
                }
                event = events.next() => {
                    last_event = Instant::now();
                    if last_event >= wall {
                        return StreamEnd::TimedOut(WALL_CLOCK_EXCEEDED);
                    }
                    self.commit_buffer.flush_if_due(last_event);
                    if let Some(Ok(event)) = &event {
                        silence.on_event(event);
                    }
                    let is_token = matches!(event, Some(Ok(AgentEvent::Token(..))));
                    if let Some(end) = self.handle_event(event).await {
                        return end;
                    }
                    if is_token && !std::mem::replace(&mut answering, true) {
                        // Viewers receive the first token before the rest of a burst is read.
                        yield_now().await;
                    }
                }
                // Polled after all earlier events, so that a call is recorded together with its
                // step.
                Some(entry) = self.call_entries.recv() => {
                    self.commit_buffer.call(entry);
                    while let Some(entry) = self.call_entries.try_recv() {
                        self.commit_buffer.call(entry);
                    }
                    self.commit_buffer.flush_if_due(Instant::now());
                }
                written = self.commit_buffer.drive() => {
                    if let Err(error) = written {
                        return error.into();
                    }
                }
                () = &mut watchdog => {
                    let now = Instant::now();
                    if now >= wall {
                        return StreamEnd::TimedOut(WALL_CLOCK_EXCEEDED);
                    }
                    let may_be_silent = silence.is_allowed();
                    if now >= last_event + limits.idle && !may_be_silent {
                        return StreamEnd::TimedOut("the agent was silent for too long");
                    }
                    let idle_from = if may_be_silent { now } else { last_event };
                    watchdog.as_mut().reset(wall.min(idle_from + limits.idle));
                }
            }
        }
    }

    /// Lets a cancelled agent end its work at other systems, within the time that it asks for. Its
    /// steps no longer change the run.
    async fn wind_down(&mut self, events: &mut AgentStream) {
        let grace = self.plan.agent().stop_grace();
        if grace.is_zero() {
            return;
        }
        let ends = async {
            while let Some(Ok(event)) = events.next().await {
                if !matches!(event, AgentEvent::Step(_) | AgentEvent::Done(_)) {
                    self.callbacks.on_event(&event);
                    self.encoder.encode(&event, &mut self.frames);
                }
            }
        };
        if tokio::time::timeout(grace, ends).await.is_err() {
            tracing::warn!(run_id = %self.record.run_id, "the agent did not stop in time");
        }
        if let Err(end) = self.publish_frames().await {
            tracing::debug!(?end, "events of a stopped agent are not published");
        }
    }

    /// Handles one event. Returns the end if it was the last one.
    async fn handle_event(
        &mut self,
        event: Option<Result<AgentEvent, AgentError>>,
    ) -> Option<StreamEnd> {
        let event = match event {
            Some(Ok(event)) => event,
            Some(Err(error)) => return Some(error.into()),
            None => {
                return Some(StreamEnd::failed(
                    "InternalError",
                    "the agent ended without an outcome",
                ));
            }
        };
        if let AgentEvent::Step(step) = &event {
            heavy_poll(Size::messages(step.state.messages())).await;
        }
        if matches!(event, AgentEvent::Nested(..)) {
            return self.handle_nested(event).await.err();
        }
        self.callbacks.on_event(&event);
        self.encoder.encode(&event, &mut self.frames);
        match event {
            AgentEvent::Token(chunk, meta) => self.open_messages.push(&chunk, &meta),
            AgentEvent::Step(step) => {
                // Boxed: the future of the stream would hold its memory during the whole run.
                if let Err(end) = Box::pin(self.handle_step(step)).await {
                    return Some(end);
                }
            }
            AgentEvent::NodeEvent(_) => {
                let rows = self.callbacks.flush();
                self.commit_buffer.events(rows);
            }
            AgentEvent::MemoryUpdate(update) => self.commit_buffer.update_memory(update),
            AgentEvent::AwaitingInput => {
                self.ports
                    .bridge
                    .mark_awaiting_input(&self.record.run_id)
                    .await
            }
            AgentEvent::Done(outcome) => return Some(StreamEnd::Done(outcome)),
            _ => {}
        }
        self.publish_frames().await.err()
    }

    async fn handle_step(&mut self, step: StepEvent) -> Result<(), StreamEnd> {
        self.open_messages.end_step(&step);
        // The first event of the agent changes the state, so the pending tasks of the input were
        // not reported.
        if self.progress.has_unsaved_input && step.update.is_some() {
            self.checkpoint(CheckpointSource::Loop).await?;
        }
        self.progress.dirty |= step.update.is_some();
        let mut state = step.state;
        std::sync::Arc::make_mut(&mut state).keep_log_places(&self.progress.state);
        self.progress.state = state;
        let before = std::mem::replace(&mut self.progress.next, step.next);
        PendingTask::carry_over(&mut self.progress.next, &before);
        self.progress.machine = Some(step.machine);
        let rows = self.callbacks.flush();
        self.commit_buffer.events(rows);
        if step.checkpoint || self.progress.has_unsaved_input {
            self.save().await?;
        }
        // Shutdown: from this checkpoint, the next process can resume without repeated effects.
        let is_releasing = step.checkpoint
            && !self.progress.next.is_empty()
            && self.ports.tasks.token().is_cancelled();
        if is_releasing {
            Err(StreamEnd::Released)
        } else {
            Ok(())
        }
    }

    /// Writes a checkpoint if the thread has changed since the last one. Progress of pending tasks
    /// is stored in the checkpoint at which they became pending, which is written again.
    pub(super) async fn save(&mut self) -> Result<(), StreamEnd> {
        if self.progress.dirty || self.progress.has_unsaved_input {
            return self.checkpoint(CheckpointSource::Loop).await;
        }
        let machine = self.pending_machine();
        match &mut self.progress.own_checkpoint {
            Some(own) if own.next == self.progress.next && own.machine == machine => Ok(()),
            Some(own) => {
                own.next.clone_from(&self.progress.next);
                own.machine = machine;
                let meta = own.clone();
                self.write(meta, true).await
            }
            // A checkpoint of an earlier run is amended only at the end: a rollback must find it
            // unchanged.
            None if self.progress.base_checkpoint.is_some() => Ok(()),
            None => self.checkpoint(CheckpointSource::Loop).await,
        }
    }

    /// Writes a checkpoint of the current progress.
    pub(super) async fn checkpoint(&mut self, source: CheckpointSource) -> Result<(), StreamEnd> {
        self.progress.step += 1;
        let meta = self.meta(
            self.ports.ids.checkpoint_id(),
            source,
            self.progress.next.clone(),
            self.pending_machine(),
        );
        let path = CheckpointPath::default();
        self.encoder.checkpoint(
            &CheckpointView {
                meta: &meta,
                state: &self.progress.state,
                place: &path,
            },
            &mut self.frames,
        );
        self.progress.parent = Some(meta.checkpoint_id.clone());
        self.progress.own_checkpoint = Some(meta.clone());
        self.write(meta, false).await
    }

    /// Builds the metadata of a checkpoint that this run writes now.
    pub(super) fn meta(
        &self,
        checkpoint_id: CheckpointId,
        source: CheckpointSource,
        next: Vec<PendingTask>,
        machine: Option<serde_json::Value>,
    ) -> CheckpointMeta {
        let request = self.plan.request();
        let mut metadata = request.metadata.clone();
        metadata.insert(
            CheckpointMeta::RUN_ATTEMPT.to_owned(),
            self.record.attempt.into(),
        );
        if let Some(pin) = self.plan.pin() {
            pin.add_to(&mut metadata, &request.assistant);
        }
        CheckpointMeta {
            checkpoint_id,
            thread_id: self.plan.thread_id().clone(),
            parent_id: self.progress.parent.clone(),
            run_id: Some(self.plan.run_id().clone()),
            source,
            step: self.progress.step,
            next,
            machine,
            metadata,
            created_at: self.ports.clock.now(),
        }
    }

    /// Returns the state of the agent's machine, if tasks are pending.
    fn pending_machine(&self) -> Option<serde_json::Value> {
        let machine = self.progress.machine.as_ref();
        machine.filter(|_| !self.progress.next.is_empty()).cloned()
    }

    /// Plans the write of a checkpoint and adds it to the commit buffer, or defers it to the end.
    async fn write(&mut self, meta: CheckpointMeta, amends: bool) -> Result<(), StreamEnd> {
        let state = std::sync::Arc::make_mut(&mut self.progress.state);
        let write = CheckpointWrite {
            amends,
            ..CheckpointWrite::plan(meta, state, &mut self.progress.log_tail)
        };
        self.progress.dirty = false;
        self.progress.has_unsaved_input = false;
        if self.plan.request().durability == Durability::Exit {
            self.deferred_checkpoint = Some(Box::new(match self.deferred_checkpoint.take() {
                Some(deferred_checkpoint) => write.instead_of(*deferred_checkpoint),
                None => write,
            }));
            return Ok(());
        }
        self.commit_buffer
            .set_usage(self.callbacks.completion_data());
        self.commit_buffer.checkpoint(write);
        let (token, waits) = (
            &self.active.token,
            self.plan.request().durability == Durability::Sync,
        );
        let stored = async {
            if waits {
                self.commit_buffer.flush().await
            } else {
                self.commit_buffer.apply_backpressure().await
            }
        };
        // A stop request ends the wait. The next phase reads the stop reason and writes or discards
        // the buffered data.
        Ok(token.run_until_cancelled(stored).await.unwrap_or(Ok(()))?)
    }
}

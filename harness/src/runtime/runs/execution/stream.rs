//! The third hop: the agent works, its events become frames, checkpoints and journal rows.

use std::pin::pin;

use futures_util::StreamExt;
use tokio::time::{Instant, sleep_until};

use super::super::spec::Durability;
use super::Execution;
use super::end::StreamEnd;
use crate::ids::CheckpointId;
use crate::runtime::agent::{AgentError, AgentEvent, AgentStream, StepEvent};
use crate::runtime::checkpoint::{
    CheckpointMeta, CheckpointPlace, CheckpointSource, CheckpointWrite, PendingTask,
};
use crate::runtime::compute::{Size, heavy_poll};
use crate::runtime::serialization::CheckpointView;

/// What a run that lived too long is told.
const OVER_TIME: &str = "the run reached its time limit";

/// Whether an agent has a reason to say nothing.
#[derive(Debug, Default)]
struct Silence {
    waits_for_a_person: bool,
    /// Tools at work. Each has a time limit of its own; one that takes its time is not a hung agent.
    tools: usize,
}

impl Silence {
    fn hear(&mut self, event: &AgentEvent) {
        self.waits_for_a_person = matches!(event, AgentEvent::AwaitingInput);
        match event {
            AgentEvent::ToolStart { .. } => self.tools += 1,
            AgentEvent::ToolEnd(_) => self.tools = self.tools.saturating_sub(1),
            // What a step has left behind is at work no more: a tool that asks a person ends without a word.
            AgentEvent::Step(_) => self.tools = 0,
            _ => {}
        }
    }

    fn is_allowed(&self) -> bool {
        self.waits_for_a_person || self.tools > 0
    }
}

impl Execution {
    /// Streams until the agent is done, fails, is cancelled, or runs out of time. Dropping the agent's stream stops it.
    #[tracing::instrument(name = "stream", skip_all)]
    pub(super) async fn stream(&mut self, mut events: AgentStream) -> StreamEnd {
        let token = self.live.token.clone();
        let limits = self.plan.limits;
        let wall = Instant::now() + limits.wall_clock;
        let mut last_event = Instant::now();
        // Re-armed only when it fires, so that an event does not cost a timer.
        let mut watchdog = pin!(sleep_until(wall.min(last_event + limits.idle)));
        let mut silence = Silence::default();
        loop {
            tokio::select! {
                biased;
                () = token.cancelled() => return self.live.stop_reason().into(),
                event = events.next() => {
                    last_event = Instant::now();
                    if last_event >= wall {
                        return StreamEnd::TimedOut(OVER_TIME);
                    }
                    self.journal.poke(last_event);
                    if let Some(Ok(event)) = &event {
                        silence.hear(event);
                    }
                    if let Some(end) = self.take(event).await {
                        return end;
                    }
                }
                // After all that was said before it: a call is written down with the step that it belongs to.
                Some(line) = self.lines.recv() => {
                    self.journal.call(line);
                    while let Ok(line) = self.lines.try_recv() {
                        self.journal.call(line);
                    }
                    self.journal.poke(Instant::now());
                }
                written = self.journal.tick() => {
                    if let Err(error) = written {
                        return error.into();
                    }
                }
                () = &mut watchdog => {
                    let now = Instant::now();
                    if now >= wall {
                        return StreamEnd::TimedOut(OVER_TIME);
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

    /// Deals with one event; gives the end when it was the last.
    async fn take(&mut self, event: Option<Result<AgentEvent, AgentError>>) -> Option<StreamEnd> {
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
            return self.take_nested(event).await.err();
        }
        self.callbacks.hear(&event);
        self.encoder.encode(&event, &mut self.frames);
        match event {
            AgentEvent::Token(chunk, _) => self.partial.push(&chunk),
            AgentEvent::Step(step) => {
                if let Err(end) = self.take_step(step).await {
                    return Some(end);
                }
            }
            AgentEvent::AwaitingInput => {
                self.parts
                    .bridge
                    .mark_awaiting_input(&self.record.run_id)
                    .await
            }
            AgentEvent::Done(outcome) => return Some(StreamEnd::Done(outcome)),
            _ => {}
        }
        self.publish_frames().await.err()
    }

    async fn take_step(&mut self, step: StepEvent) -> Result<(), StreamEnd> {
        // An agent that begins with a change has not said what was due before it.
        if self.progress.input_unsaved && step.update.is_some() {
            self.checkpoint(CheckpointSource::Loop).await?;
        }
        self.progress.dirty |= step.update.is_some();
        let mut state = step.state;
        std::sync::Arc::make_mut(&mut state).keep_log_places(&self.progress.state);
        self.progress.state = state;
        let before = std::mem::replace(&mut self.progress.next, step.next);
        PendingTask::carry_over(&mut self.progress.next, &before);
        self.progress.machine = Some(step.machine);
        self.partial.clear();
        let rows = self.callbacks.flush();
        self.journal.events(rows);
        if step.checkpoint || self.progress.input_unsaved {
            self.save().await?;
        }
        // The process ends: here the next one can go on without doing anything twice.
        let leaves = step.checkpoint
            && !self.progress.next.is_empty()
            && self.parts.tasks.token().is_cancelled();
        if leaves {
            Err(StreamEnd::HandedOver)
        } else {
            Ok(())
        }
    }

    /// Makes a checkpoint of where the thread stands, if it stands elsewhere than the last one says. What became of the tasks
    /// that were due there belongs to that one: it is written again.
    pub(super) async fn save(&mut self) -> Result<(), StreamEnd> {
        if self.progress.dirty || self.progress.input_unsaved {
            return self.checkpoint(CheckpointSource::Loop).await;
        }
        let machine = self.due_machine();
        match &mut self.progress.own_checkpoint {
            Some(own) if own.next == self.progress.next && own.machine == machine => Ok(()),
            Some(own) => {
                own.next.clone_from(&self.progress.next);
                own.machine = machine;
                let meta = own.clone();
                self.write(meta, true).await
            }
            // What an earlier run wrote is amended at the end: a rollback must find it as it was.
            None if self.progress.found.is_some() => Ok(()),
            None => self.checkpoint(CheckpointSource::Loop).await,
        }
    }

    /// Makes a checkpoint of where the thread stands.
    pub(super) async fn checkpoint(&mut self, source: CheckpointSource) -> Result<(), StreamEnd> {
        self.progress.step += 1;
        let meta = self.meta(
            self.parts.ids.checkpoint_id(),
            source,
            self.progress.next.clone(),
            self.due_machine(),
        );
        let place = CheckpointPlace::default();
        self.encoder.checkpoint(
            &CheckpointView {
                meta: &meta,
                state: &self.progress.state,
                place: &place,
            },
            &mut self.frames,
        );
        self.progress.parent = Some(meta.checkpoint_id.clone());
        self.progress.own_checkpoint = Some(meta.clone());
        self.write(meta, false).await
    }

    /// The facts of a checkpoint that this run writes now.
    pub(super) fn meta(
        &self,
        checkpoint_id: CheckpointId,
        source: CheckpointSource,
        next: Vec<PendingTask>,
        machine: Option<serde_json::Value>,
    ) -> CheckpointMeta {
        CheckpointMeta {
            checkpoint_id,
            thread_id: self.plan.thread_id.clone(),
            parent_id: self.progress.parent.clone(),
            run_id: Some(self.plan.run_id.clone()),
            source,
            step: self.progress.step,
            next,
            machine,
            metadata: self.plan.metadata.clone(),
            created_at: self.parts.clock.now(),
        }
    }

    /// Where the agent's machine stands, while anything is due.
    fn due_machine(&self) -> Option<serde_json::Value> {
        self.progress
            .machine
            .clone()
            .filter(|_| !self.progress.next.is_empty())
    }

    /// Plans the write of a checkpoint and hands it to the journal, or keeps it for the end.
    async fn write(&mut self, meta: CheckpointMeta, amends: bool) -> Result<(), StreamEnd> {
        let state = std::sync::Arc::make_mut(&mut self.progress.state);
        let write = CheckpointWrite {
            amends,
            ..CheckpointWrite::plan(meta, state, &mut self.progress.log_tail)
        };
        self.progress.dirty = false;
        self.progress.input_unsaved = false;
        if self.plan.durability == Durability::Exit {
            self.held = Some(match self.held.take() {
                Some(held) => write.instead_of(held),
                None => write,
            });
            return Ok(());
        }
        self.journal.adds_up_to(self.callbacks.completion_data());
        self.journal.checkpoint(write);
        let (token, waits) = (&self.live.token, self.plan.durability == Durability::Sync);
        let stored = async {
            if waits {
                self.journal.settled().await
            } else {
                self.journal.keeps_up().await
            }
        };
        // Who is told to stop waits no longer: what comes next hears of it and writes the rest, or does not.
        Ok(token.run_until_cancelled(stored).await.unwrap_or(Ok(()))?)
    }
}

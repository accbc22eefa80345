//! Second phase of an execution: loads the state, applies the input and starts the agent.

use std::sync::Arc;

use futures_util::FutureExt;
use serde_json::Value;

use super::stream_end::StreamEnd;
use crate::agent::{
    AgentInput, AgentOutcome, AgentStart, AgentStream, EventSink, InputFacts, StopKind,
};
use crate::checkpoint::{CheckpointMeta, CheckpointSource, HistoryQuery, PendingTask, Snapshot};
use crate::definition::{RequestEcho, RunInput, ThreadCommand};
use crate::execution::{Execution, Progress};
use deerflow_core::compute::{Size, heavy_poll};
use deerflow_core::state::{StateUpdate, ThreadState};

/// Name of the pending task of a checkpoint that precedes the input.
pub(crate) const START: &str = "__start__";
/// Maximum number of checkpoints that are searched for a successor.
pub(crate) const MAX_SUCCESSORS: usize = 1_000;

impl Execution {
    /// Loads the state, reduces the input into it, publishes the result, and starts the agent. The
    /// input is saved with the first event of the agent that lists the pending tasks.
    #[tracing::instrument(name = "prepare", skip_all)]
    pub(super) async fn prepare(&mut self) -> Result<AgentStream, StreamEnd> {
        let is_retry = self.record.attempt > 1;
        let restored = if is_retry {
            self.restore_progress().await?
        } else {
            None
        };
        let resumed = restored.is_some();
        if is_retry {
            let from = self.progress.parent.clone();
            self.announce_resumed(from.as_ref()).await?;
        }
        let (machine, start) = match restored {
            Some(restored) => restored,
            None => (self.load().await?, self.apply_request().await?),
        };
        self.free_input();
        heavy_poll(Size::messages(self.progress.state.messages())).await;
        if is_retry {
            // Events of the earlier attempt after its last checkpoint are no longer valid, so
            // subscribers receive a snapshot.
            self.encoder
                .snapshot(&self.progress.state, &mut self.frames);
        } else {
            self.encoder
                .values(&self.progress.state, &[], &mut self.frames);
        }
        self.publish_frames().await?;
        if start == AgentStart::Fresh {
            self.complete_input();
        }
        let (sink, events) = EventSink::channel();
        let ended = if resumed {
            self.recorded_outcome()
        } else {
            None
        };
        if let Some(outcome) = ended {
            return Ok(AgentStream::new(events, async { Ok(outcome) }.boxed()));
        }
        if start == AgentStart::Continue
            && self.progress.next.is_empty()
            && !self.progress.state.messages().is_empty()
        {
            // No task is pending. Starting the agent could repeat its work.
            let done = async {
                Ok(AgentOutcome {
                    kind: StopKind::Completed,
                    stop_reason: None,
                })
            };
            return Ok(AgentStream::new(events, done.boxed()));
        }
        // The first checkpoint with the input is a step of its own.
        let step = self.progress.step + i64::from(self.progress.has_unsaved_input);
        let input = AgentInput {
            state: ThreadState::clone(&self.progress.state),
            start,
            machine,
            step,
            nested: PendingTask::nested_states(&self.progress.next),
        };
        Ok(self.plan.agent().stream(input, self.context(sink), events))
    }

    /// Frees the input of the run in memory, after it was applied. The stored record has it.
    fn free_input(&mut self) {
        self.record.kwargs = RequestEcho::default();
        self.plan.free_input();
    }

    /// Applies the input of the request, and returns how the agent starts.
    async fn apply_request(&mut self) -> Result<AgentStart, StreamEnd> {
        if let RunInput::Update(update) | RunInput::Command(ThreadCommand { update, .. }) =
            &self.plan.request().input
        {
            heavy_poll(Size::messages(&update.messages)).await;
        }
        self.encoder.begin(
            || self.plan.request().presentation.request_echo.field("input"),
            &mut self.frames,
        );
        Ok(match self.plan.request().input.clone() {
            RunInput::Update(update) => {
                self.apply_input(update).await?;
                AgentStart::Fresh
            }
            RunInput::Resume(answers) => AgentStart::Resume(answers),
            RunInput::Continue => AgentStart::Continue,
            RunInput::Command(ThreadCommand {
                resume,
                update,
                goto,
            }) => {
                self.apply_update(update)?;
                match (resume, goto) {
                    (resume, visits) if !visits.is_empty() => AgentStart::Goto { resume, visits },
                    (Some(answers), _) => AgentStart::Resume(answers),
                    (None, _) => AgentStart::Continue,
                }
            }
        })
    }

    /// Loads the checkpoint that the run starts from, and returns the state of the agent's machine.
    async fn load(&mut self) -> Result<Option<Value>, StreamEnd> {
        if self.load_known_head() {
            return Ok(None);
        }
        let requested = self
            .plan
            .request()
            .checkpoint
            .as_ref()
            .map(|checkpoint| &checkpoint.checkpoint_id);
        let loaded = self
            .read(|| {
                self.ports
                    .checkpointer
                    .get(self.plan.thread_id(), requested)
            })
            .await?;
        let loaded = match loaded {
            Some(snapshot)
                if awaits_input(&snapshot)
                    && !matches!(self.plan.request().input, RunInput::Update(_)) =>
            {
                self.with_input(snapshot).await?
            }
            loaded => loaded,
        };
        let Some(snapshot) = loaded else {
            if let Some(missing) = requested {
                // The checkpoint existed at admission. The run must not start from an empty state
                // instead.
                let message =
                    format!("checkpoint {missing} was deleted before the run could start from it");
                return Err(StreamEnd::failed("CheckpointNotFoundError", message));
            }
            let log_tail = self
                .read(|| self.ports.checkpointer.log_tail(self.plan.thread_id()))
                .await?;
            self.progress = self.without_checkpoint(log_tail);
            return Ok(None);
        };
        self.observe_newest(requested.is_some(), &snapshot.meta)
            .await?;
        let state = Arc::new(self.defined(snapshot.state));
        let base_checkpoint = (!matches!(self.plan.request().input, RunInput::Update(_)))
            .then(|| snapshot.meta.clone());
        self.progress = Progress {
            before: state.clone(),
            state,
            log_tail: snapshot.log_tail,
            parent: Some(snapshot.meta.checkpoint_id),
            step: snapshot.meta.step,
            pending_before: !snapshot.meta.next.is_empty(),
            next: if requested.is_some() {
                reset_ended_agents(snapshot.meta.next)
            } else {
                snapshot.meta.next
            },
            machine: snapshot.meta.machine.clone(),
            dirty: false,
            has_unsaved_input: false,
            own_checkpoint: None,
            size_before: None,
            base_checkpoint,
        };
        Ok(snapshot.meta.machine)
    }

    /// Returns the progress of a run on a thread without checkpoints.
    pub(super) fn without_checkpoint(&self, log_tail: u64) -> Progress {
        Progress {
            state: Arc::new(self.defined(ThreadState::default())),
            step: -2,
            log_tail,
            ..Progress::default()
        }
    }

    /// Returns the state with the channels of the run's agent.
    pub(super) fn defined(&self, state: ThreadState) -> ThreadState {
        state.defined_by(self.plan.agent().channels())
    }

    /// Ensures that the next checkpoint id is greater than all ids of the thread, even if another
    /// clock generated them.
    async fn observe_newest(
        &self,
        is_fork: bool,
        loaded: &CheckpointMeta,
    ) -> Result<(), StreamEnd> {
        self.ports.ids.heed(&loaded.checkpoint_id);
        if is_fork {
            let newest = HistoryQuery {
                limit: 1,
                ..HistoryQuery::default()
            };
            let newest = self
                .read(|| {
                    self.ports
                        .checkpointer
                        .list_meta(self.plan.thread_id(), &newest)
                })
                .await?;
            newest
                .iter()
                .for_each(|meta| self.ports.ids.heed(&meta.checkpoint_id));
        }
        Ok(())
    }

    /// Returns the successor of a checkpoint that precedes an input: the successor has the input.
    async fn with_input(&self, before: Snapshot) -> Result<Option<Snapshot>, StreamEnd> {
        let query = HistoryQuery {
            limit: MAX_SUCCESSORS,
            ..HistoryQuery::default()
        };
        let metas = self
            .read(|| {
                self.ports
                    .checkpointer
                    .list_meta(self.plan.thread_id(), &query)
            })
            .await?;
        let follows =
            |meta: &&CheckpointMeta| meta.parent_id.as_ref() == Some(&before.meta.checkpoint_id);
        match metas.iter().rfind(follows) {
            Some(meta) => {
                self.read(|| {
                    self.ports
                        .checkpointer
                        .get(self.plan.thread_id(), Some(&meta.checkpoint_id))
                })
                .await
            }
            None => Ok(Some(before)),
        }
    }

    /// Reduces the input and discards pending tasks. The previous state is written as a checkpoint
    /// from which a fork can start.
    async fn apply_input(&mut self, update: StateUpdate) -> Result<(), StreamEnd> {
        let before = self.progress.state.clone();
        self.apply_update(update)?;
        let after = std::mem::replace(&mut self.progress.state, before);
        let id = self.ports.ids.random().to_string();
        self.progress.next = vec![PendingTask::new(id, START)];
        self.progress.machine = None;
        self.checkpoint(CheckpointSource::Input).await?;
        self.progress.state = after;
        self.progress.next.clear();
        self.progress.dirty = true;
        self.progress.has_unsaved_input = true;
        Ok(())
    }

    /// Reduces an update that the client sent with the run.
    pub(super) fn apply_update(&mut self, update: StateUpdate) -> Result<(), StreamEnd> {
        if update.is_empty() {
            return Ok(());
        }
        let ids: Vec<String> = update
            .messages
            .iter()
            .filter_map(|message| message.id.clone())
            .collect();
        Arc::make_mut(&mut self.progress.state)
            .apply_within(
                update,
                self.plan.limits().max_thread_messages,
                &*self.ports.ids,
            )
            .map_err(|error| StreamEnd::failed("InvalidUpdateError", error.to_string()))?;
        self.progress.dirty = true;
        self.callbacks.events.human(&self.progress.state, &ids);
        Ok(())
    }

    /// Replaces the newest human message with the version that the agent completed, before the
    /// first checkpoint, so that the log has the message only once. The first frame of a run has the
    /// input as it was sent.
    fn complete_input(&mut self) {
        let Some(last) = self
            .progress
            .state
            .messages()
            .last()
            .filter(|message| message.is_human())
        else {
            return;
        };
        let facts = InputFacts {
            run_id: self.plan.run_id().clone(),
            now: self.ports.clock.now(),
        };
        if let Some(message) = self.plan.agent().complete_input(last, &facts) {
            Arc::make_mut(&mut self.progress.state).replace_last(message);
            self.encoder.input_completed(&self.progress.state);
            self.callbacks.events.human_completed(&self.progress.state);
        }
    }
}

/// Resets nested agents that have ended: a run from an explicit checkpoint repeats its pending
/// calls.
fn reset_ended_agents(mut next: Vec<PendingTask>) -> Vec<PendingTask> {
    for task in &mut next {
        task.nested.take_if(|nested| nested.next.is_empty());
    }
    next
}

pub(super) fn awaits_input(snapshot: &Snapshot) -> bool {
    snapshot.meta.next.iter().any(|task| task.name == START)
}

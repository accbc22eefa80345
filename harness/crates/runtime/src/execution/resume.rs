//! Second phase of a later attempt: restores the progress of the previous attempt.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::Value;

use super::prepare::{MAX_SUCCESSORS, awaits_input};
use super::stream_end::StreamEnd;
use crate::agent::{AgentOutcome, AgentStart, StopKind};
use crate::checkpoint::{CheckpointMeta, CheckpointSource, HistoryQuery, Snapshot};
use crate::definition::RunInput;
use crate::execution::{Execution, Progress};
use crate::termination::{is_memory_journaled, journaled_human_input};
use deerflow_core::state::ThreadState;

impl Execution {
    /// Restores the saved progress. Returns the state of the agent's machine and how the agent
    /// starts. `None` if no progress was saved: the run starts from its input.
    pub(super) async fn restore_progress(
        &mut self,
    ) -> Result<Option<(Option<Value>, AgentStart)>, StreamEnd> {
        self.restore_memory_flag().await?;
        let newest = self
            .read(|| self.ports.checkpointer.get(self.plan.thread_id(), None))
            .await?;
        let Some(reached) = newest.filter(|newest| self.is_own(&newest.meta)) else {
            return Ok(None);
        };
        self.ports.ids.heed(&reached.meta.checkpoint_id);
        let before = self.snapshot_before_run().await?;
        self.restore_human(&reached.state, before.as_ref()).await?;
        let is_input_pending =
            reached.meta.source == CheckpointSource::Input && awaits_input(&reached);
        self.progress = Progress {
            before: before.as_ref().map_or_else(Arc::default, |before| {
                Arc::new(ThreadState::clone(&before.state))
            }),
            pending_before: before.is_some_and(|before| !before.meta.next.is_empty()),
            state: Arc::new(self.defined(reached.state)),
            log_tail: reached.log_tail,
            parent: Some(reached.meta.checkpoint_id.clone()),
            step: reached.meta.step,
            next: reached.meta.next.clone(),
            machine: reached.meta.machine.clone(),
            own_checkpoint: Some(reached.meta),
            ..Progress::default()
        };
        match self.plan.request().input.clone() {
            RunInput::Update(update) if is_input_pending => {
                (self.progress.next, self.progress.machine) = (Vec::new(), None);
                self.apply_update(update)?;
                self.progress.dirty = true;
                self.progress.has_unsaved_input = true;
                Ok(Some((None, AgentStart::Fresh)))
            }
            _ => Ok(Some((self.progress.machine.clone(), AgentStart::Continue))),
        }
    }

    /// Restores the flag that the journal has the memory context of the run, which is recorded only
    /// once.
    async fn restore_memory_flag(&mut self) -> Result<(), StreamEnd> {
        let journaled = || async {
            Ok(is_memory_journaled(self.plan.thread_id(), self.plan.run_id(), &self.ports).await?)
        };
        if self.read(journaled).await? {
            self.callbacks.events.set_memory_written();
        }
        Ok(())
    }

    /// Journals the human message of the run unless the journal has it.
    async fn restore_human(
        &mut self,
        reached: &ThreadState,
        before: Option<&Snapshot>,
    ) -> Result<(), StreamEnd> {
        let known: HashSet<_> = before
            .iter()
            .flat_map(|before| before.state.messages())
            .filter_map(|message| message.id.as_ref())
            .collect();
        let new = reached
            .messages()
            .iter()
            .filter_map(|message| message.id.as_ref())
            .filter(|id| !known.contains(id));
        let new: Vec<String> = new.cloned().collect();
        self.callbacks.events.human(reached, &new);
        let journaled = || async {
            Ok(
                journaled_human_input(self.plan.thread_id(), self.plan.run_id(), &self.ports)
                    .await?,
            )
        };
        if self.read(journaled).await?.is_some() {
            self.callbacks.events.set_human_written();
        }
        Ok(())
    }

    /// Returns the outcome of a run that had stopped already, but whose end was not stored.
    pub(super) fn recorded_outcome(&self) -> Option<AgentOutcome> {
        let next = &self.progress.next;
        let interrupts: Vec<Value> = next
            .iter()
            .flat_map(|task| task.interrupts.clone())
            .collect();
        let kind = if !interrupts.is_empty() {
            StopKind::Question(interrupts)
        } else if next
            .iter()
            .any(|task| self.plan.request().interrupt_before.selects(&task.name))
        {
            StopKind::Breakpoint
        } else {
            return None;
        };
        Some(AgentOutcome {
            kind,
            stop_reason: None,
        })
    }

    /// Returns the thread before the run, for a rollback.
    async fn snapshot_before_run(&self) -> Result<Option<Snapshot>, StreamEnd> {
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
        let first = metas.iter().take_while(|meta| self.is_own(meta)).last();
        match first.and_then(|first| first.parent_id.as_ref()) {
            Some(parent) => {
                self.read(|| {
                    self.ports
                        .checkpointer
                        .get(self.plan.thread_id(), Some(parent))
                })
                .await
            }
            None => Ok(None),
        }
    }

    fn is_own(&self, meta: &CheckpointMeta) -> bool {
        meta.run_id.as_ref() == Some(self.plan.run_id())
    }
}

//! The second hop of a later attempt: the run goes on where the one before it stood.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::Value;

use super::super::recovery::{is_memory_journaled, journaled_question};
use super::super::spec::RunInput;
use super::end::StreamEnd;
use super::prepare::{MOST_SUCCESSORS, awaits_input};
use super::{Execution, Progress};
use crate::runtime::agent::{AgentOutcome, AgentStart, StopKind};
use crate::runtime::checkpoint::{CheckpointMeta, CheckpointSource, HistoryQuery, Snapshot};
use crate::state::ThreadState;

impl Execution {
    /// Takes up what the run has saved, and gives where its machine stood and how the agent goes on. `None` when it had saved
    /// nothing: it begins as if for the first time.
    pub(super) async fn take_up(
        &mut self,
    ) -> Result<Option<(Option<Value>, AgentStart)>, StreamEnd> {
        self.take_up_memory().await?;
        let newest = self
            .read(|| self.parts.checkpointer.get(&self.plan.thread_id, None))
            .await?;
        let Some(reached) = newest.filter(|newest| self.is_own(&newest.meta)) else {
            return Ok(None);
        };
        self.parts.ids.heed(&reached.meta.checkpoint_id);
        let before = self.found_by_the_first_attempt().await?;
        self.take_up_human(&reached.state, before.as_ref()).await?;
        let input_is_due = reached.meta.source == CheckpointSource::Input && awaits_input(&reached);
        self.progress = Progress {
            before: before.as_ref().map_or_else(Arc::default, |before| {
                Arc::new(ThreadState::clone(&before.state))
            }),
            due_before: before.is_some_and(|before| !before.meta.next.is_empty()),
            state: Arc::new(reached.state),
            log_tail: reached.log_tail,
            parent: Some(reached.meta.checkpoint_id.clone()),
            step: reached.meta.step,
            next: reached.meta.next.clone(),
            machine: reached.meta.machine.clone(),
            own_checkpoint: Some(reached.meta),
            ..Progress::default()
        };
        match self.plan.input.clone() {
            RunInput::Update(update) if input_is_due => {
                (self.progress.next, self.progress.machine) = (Vec::new(), None);
                self.take_update(update)?;
                self.progress.dirty = true;
                self.progress.input_unsaved = true;
                Ok(Some((None, AgentStart::Fresh)))
            }
            _ => Ok(Some((self.progress.machine.clone(), AgentStart::Continue))),
        }
    }

    /// The journal says once which memory a run was shown.
    async fn take_up_memory(&mut self) -> Result<(), StreamEnd> {
        let journaled = || async {
            Ok(is_memory_journaled(&self.plan.thread_id, &self.plan.run_id, &self.parts).await?)
        };
        if self.read(journaled).await? {
            self.callbacks.events.memory_is_written();
        }
        Ok(())
    }

    /// The question that the run was made with joins the journal if it has not yet.
    async fn take_up_human(
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
            Ok(journaled_question(&self.plan.thread_id, &self.plan.run_id, &self.parts).await?)
        };
        if self.read(journaled).await?.is_some() {
            self.callbacks.events.human_is_written();
        }
        Ok(())
    }

    /// The outcome of a run that had come to its end already, and only could not say so.
    pub(super) fn reached_its_end(&self) -> Option<AgentOutcome> {
        let next = &self.progress.next;
        let questions: Vec<Value> = next
            .iter()
            .flat_map(|task| task.interrupts.clone())
            .collect();
        let kind = if !questions.is_empty() {
            StopKind::Question(questions)
        } else if next
            .iter()
            .any(|task| self.plan.interrupt_before.selects(&task.name))
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

    /// What the thread was before the run: a rollback returns to it.
    async fn found_by_the_first_attempt(&self) -> Result<Option<Snapshot>, StreamEnd> {
        let query = HistoryQuery {
            limit: MOST_SUCCESSORS,
            ..HistoryQuery::default()
        };
        let metas = self
            .read(|| {
                self.parts
                    .checkpointer
                    .list_meta(&self.plan.thread_id, &query)
            })
            .await?;
        let first = metas.iter().take_while(|meta| self.is_own(meta)).last();
        match first.and_then(|first| first.parent_id.as_ref()) {
            Some(parent) => {
                self.read(|| {
                    self.parts
                        .checkpointer
                        .get(&self.plan.thread_id, Some(parent))
                })
                .await
            }
            None => Ok(None),
        }
    }

    fn is_own(&self, meta: &CheckpointMeta) -> bool {
        meta.run_id.as_ref() == Some(&self.plan.run_id)
    }
}

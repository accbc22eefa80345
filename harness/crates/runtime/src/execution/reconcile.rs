//! Completes the state and the stream of a run when its agent has stopped.

use std::sync::Arc;

use super::end_record::failure_of;
use super::stream_end::StreamEnd;
use crate::agent::{AgentEvent, AgentOutcome, StopKind};
use crate::checkpoint::PendingTask;
use crate::execution::Execution;

impl Execution {
    /// Adds to the saved state what subscribers have received: text streamed before a cancel, and
    /// changes since the last checkpoint.
    pub(super) async fn reconcile(&mut self, end: &StreamEnd) {
        match end {
            StreamEnd::Done(AgentOutcome {
                kind: StopKind::Completed,
                ..
            }) => self.progress.next.clear(),
            StreamEnd::Done(AgentOutcome {
                kind: StopKind::Question(interrupts),
                ..
            }) => self.attach_interrupts(interrupts),
            StreamEnd::Done(_) => {}
            _ => {
                let partial = self.open_messages.take_partial();
                for message in self.plan.agent().partial_answers(&partial) {
                    self.callbacks.events.write_human();
                    self.callbacks.events.partial_answer(message);
                }
                for update_event in self.callbacks.cancel_open_subagents() {
                    let cancelled = AgentEvent::Subagent(Box::new(update_event));
                    self.callbacks.on_event(&cancelled);
                    self.encoder.encode(&cancelled, &mut self.frames);
                }
                let retained = if self.plan.request().keep_partial {
                    partial
                } else {
                    Vec::new()
                };
                let agent = self.plan.agent();
                let update = agent.settle_all(&self.progress.state, retained);
                if !update.is_empty() {
                    let state = Arc::make_mut(&mut self.progress.state);
                    match state.apply(update, &*self.ports.ids) {
                        Ok(()) => self.progress.dirty = true,
                        Err(error) => {
                            tracing::warn!(%error, "cannot reduce the last messages of the run")
                        }
                    }
                }
                let error = match end {
                    StreamEnd::Cancelled(_) => "CancelledError()".to_owned(),
                    _ => failure_of(end)
                        .map(|failure| failure.message)
                        .unwrap_or_default(),
                };
                // A task with an open interrupt was not running.
                let running = self
                    .progress
                    .next
                    .iter_mut()
                    .filter(|task| task.interrupts.is_empty());
                running.for_each(|task| task.error = Some(error.clone()));
            }
        }
        if let Err(error) = self.save_final().await {
            tracing::warn!(?error, "cannot write the last checkpoint of the run yet");
        }
        if !awaits_human(end) {
            self.push_end_frames(end);
        }
        let _fenced = self.publish_frames().await;
    }

    /// Saves changes since the last checkpoint, and the checkpoint deferred to the end.
    async fn save_final(&mut self) -> Result<(), StreamEnd> {
        if self.progress.own_checkpoint.is_none() {
            self.progress.own_checkpoint = self.progress.base_checkpoint.take();
        }
        let saved = if self.is_changed() {
            self.save().await
        } else {
            Ok(())
        };
        if let Some(deferred_checkpoint) = self.deferred_checkpoint.take() {
            self.commit_buffer.checkpoint(*deferred_checkpoint);
        }
        saved
    }

    fn is_changed(&self) -> bool {
        self.progress.dirty
            || self
                .progress
                .own_checkpoint
                .as_ref()
                .is_some_and(|own| own.next != self.progress.next)
    }

    /// Attaches the interrupts to the first pending task, if the agent did not attach them to a
    /// task.
    fn attach_interrupts(&mut self, interrupts: &[serde_json::Value]) {
        if self
            .progress
            .next
            .iter()
            .any(|task| !task.interrupts.is_empty())
        {
            return;
        }
        if self.progress.next.is_empty() {
            let id = self.ports.ids.random().to_string();
            self.progress.next.push(PendingTask::new(id, "tools"));
        }
        self.progress.next[0].interrupts = interrupts.to_vec();
    }

    pub(super) fn push_end_frames(&mut self, end: &StreamEnd) {
        match end {
            StreamEnd::Done(AgentOutcome {
                kind: StopKind::Breakpoint,
                ..
            }) => self.encoder.interrupt(&[], &mut self.frames),
            StreamEnd::Done(AgentOutcome {
                kind: StopKind::Question(interrupts),
                ..
            }) => {
                self.encoder.interrupt(interrupts, &mut self.frames);
                self.encoder
                    .values(&self.progress.state, interrupts, &mut self.frames);
            }
            _ => {}
        }
        if matches!(end, StreamEnd::Done(_)) {
            self.encoder.end(&self.progress.state, &mut self.frames);
        }
    }
}

/// Reports whether the run stops for human input.
pub(super) fn awaits_human(end: &StreamEnd) -> bool {
    matches!(
        end,
        StreamEnd::Done(AgentOutcome {
            kind: StopKind::Question(_) | StopKind::Breakpoint,
            ..
        })
    )
}

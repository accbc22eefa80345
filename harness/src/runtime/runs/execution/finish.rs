//! The last hops: the end becomes durable, then known; then the run is tidied away.

use std::sync::Arc;

use bytes::Bytes;

use super::super::bell::Ring;
use super::super::live::{RunOutcome, RunValues};
use super::super::observer::{LifecycleKind, RunLifecycleEvent};
use super::super::record::ThreadStatus;
use super::super::recovery::{END_LATER, ROLLED_BACK, restored_input};
use super::super::spec::CancelAction;
use super::super::status::RunStatus;
use super::super::store::{CommitError, RunEnd, StoreError, WebhookCall};
use super::super::stored_end::terminal_of;
use super::Execution;
use super::end::{STORAGE_FULL, StreamEnd};
use super::journal::Unstored;
use crate::messages::{Message, kwargs};
use crate::runtime::actor_context::Owner;
use crate::runtime::agent::{AgentEvent, AgentOutcome, StopKind};
use crate::runtime::checkpoint::PendingTask;
use crate::runtime::compute::{Size, heavy_poll};
use crate::runtime::fail_points;
use crate::runtime::serialization::{error_frame, values_json};
use crate::runtime::stream_bridge::{BridgeError, TerminalKind};

impl Execution {
    /// Durable end first, then lifecycle events, then the terminal stream event: who sees the end finds everything in place.
    /// `None` when the run goes on elsewhere.
    #[tracing::instrument(name = "finish", skip_all)]
    pub(super) async fn finish(&mut self, end: StreamEnd) -> Option<RunOutcome> {
        heavy_poll(Size::messages(self.progress.state.messages())).await;
        let mut end = self.judge(end);
        let Some(mut status) = end.status() else {
            return self.part(&end).await;
        };
        let rolled_back = is_undone(&end);
        if !rolled_back {
            self.settle(&end).await;
        }
        fail_points::pass("end.settled");
        let mut stored = self.journal.confirm_steps().await;
        if stored.is_ok() {
            let error = error_of(&end);
            let error = error
                .as_ref()
                .map(|(name, text)| (name.as_str(), text.as_str()));
            self.callbacks.run_ended(
                status.as_str(),
                error,
                &self.progress.before,
                &self.progress.state,
            );
            let rows = if rolled_back {
                Vec::new()
            } else {
                self.callbacks.flush()
            };
            self.journal.events(rows);
            stored = self.journal.finish(self.run_end(&end, status)).await;
        }
        if let Err(Unstored::Steps(error)) = stored {
            tracing::error!(%error, "steps of the run cannot be stored and are given up");
            end = without_steps(end, &error);
            status = end.status()?;
            let input = if rolled_back {
                Default::default()
            } else {
                restored_input(&self.record, &self.parts).await
            };
            stored = self
                .journal
                .finish_without_steps(self.run_end(&end, status), input)
                .await;
        }
        match stored {
            Ok(()) => {}
            Err(Unstored::Steps(error) | Unstored::Refused(CommitError::Store(error))) => {
                tracing::error!(%error, "the end of the run cannot be stored; it is recovered at the next start");
                self.tell(LifecycleKind::RunLeft).await;
                return None;
            }
            Err(Unstored::Refused(refused)) => {
                tracing::warn!(reason = %refused, "the end of the run was refused");
                return self.part(&refused.into()).await;
            }
        }
        fail_points::pass("end.stored");
        self.live.set_status(status);
        if asks(&end) {
            // Nobody answers a question that a crash could have taken back.
            self.close_frames(&end);
            let _fenced = self.publish_frames().await;
        }
        if rolled_back
            && let Err(error) = self
                .parts
                .events
                .delete_run(&self.plan.thread_id, &self.plan.run_id)
                .await
        {
            tracing::warn!(%error, "the journal rows of a rolled-back run stay");
        }
        self.tell_end(&end, &self.run_end(&end, status)).await;
        fail_points::pass("end.told");
        let error = error_of(&end);
        self.publish_end(&end, error.clone()).await;
        let state = if rolled_back {
            &self.progress.before
        } else {
            &self.progress.state
        };
        Some(RunOutcome {
            status,
            error: error.filter(|_| {
                matches!(status, RunStatus::Error | RunStatus::Timeout) && !rolled_back
            }),
            values: Some(RunValues {
                state: state.clone(),
                questions: end.questions().to_vec(),
            }),
        })
    }

    /// What the store is to say of the end.
    fn run_end(&self, end: &StreamEnd, status: RunStatus) -> RunEnd {
        let (rolled_back, error) = (is_undone(end), error_of(end));
        let nodes_due = if rolled_back {
            self.progress.due_before
        } else {
            !self.progress.next.is_empty()
        };
        RunEnd {
            status,
            stop_reason: stop_reason(end),
            completion: self.callbacks.completion_data(),
            thread_status: thread_status(status, nodes_due, rolled_back),
            title: self.title(rolled_back),
            webhook: self.webhook(end, rolled_back, error.as_ref()),
            kept_values: self
                .goes_before_its_request()
                .then(|| self.last_values(end, rolled_back)),
            discard_checkpoints: rolled_back,
            forget_calls: self.record.attempt > 1 || self.journal.has_calls(),
            error_name: error.as_ref().map(|(name, _)| name.clone()),
            error: error.map(|(_, text)| text),
        }
    }

    /// Lets go of a run that is not ours to end.
    async fn part(&mut self, end: &StreamEnd) -> Option<RunOutcome> {
        let outcome = match end {
            StreamEnd::HandedOver => {
                if let Err(error) = self.hand_over().await {
                    tracing::warn!(%error, "the run could not be given back; it goes on once this process is known to be gone");
                }
                None
            }
            StreamEnd::Away => {
                self.hand_over_when_back().await;
                None
            }
            StreamEnd::Gone => {
                tracing::warn!(
                    "the run was deleted, or ended by somebody else; nothing more is written"
                );
                self.tell_stored_end().await
            }
            _ => {
                tracing::warn!("the run belongs to another attempt; nothing more is written");
                None
            }
        };
        self.tell(LifecycleKind::RunLeft).await;
        outcome
    }

    /// Tells viewers how somebody else has ended the run. Who waits here asks the store, unless the run was deleted.
    async fn tell_stored_end(&mut self) -> Option<RunOutcome> {
        let stored = match self
            .parts
            .query
            .get(&self.record.run_id, &Owner::None)
            .await
        {
            Ok(stored) => stored,
            Err(error) => {
                tracing::warn!(%error, "how the run ended cannot be read; who follows it asks again");
                return None;
            }
        };
        let kind = stored
            .as_ref()
            .map_or(Some(TerminalKind::Cancel), terminal_of)?;
        let failed = stored.as_ref().filter(|_| kind == TerminalKind::Error);
        let data = failed.map(|run| {
            error_frame(
                run.error_name(),
                run.error.as_deref().unwrap_or("the run failed"),
            )
            .data
            .into_bytes()
        });
        // Whoever ended it may have told already.
        let _told_before = self
            .parts
            .bridge
            .publish_terminal(&self.key, kind, data)
            .await;
        self.always_after().await;
        let error = ("RunLost".to_owned(), "the run was deleted".to_owned());
        stored.is_none().then_some(RunOutcome {
            status: RunStatus::Error,
            error: Some(error),
            values: None,
        })
    }

    /// Gives the run back where its last step ended. What was said since is said again by who goes on with it.
    async fn hand_over(&mut self) -> Result<(), CommitError> {
        self.journal.adds_up_to(self.callbacks.completion_data());
        if let Some(held) = self.held.take() {
            self.journal.checkpoint(held);
        }
        while let Ok(line) = self.lines.try_recv() {
            self.journal.call(line);
        }
        fail_points::pass("run.before-giving-back");
        self.journal.give_back().await?;
        fail_points::pass("run.given-back");
        self.parts.bell.ring(Ring::Waiting);
        Ok(())
    }

    /// Gives the run back once the store takes it, however long that is: nobody else can while this process lives.
    async fn hand_over_when_back(&mut self) {
        tracing::error!("the store is away for too long; the run goes on once it is back");
        while let Err(CommitError::Store(error)) = self.hand_over().await {
            tracing::warn!(%error, "the run cannot be given back yet");
            // A cancel waits too: it is given back with the run.
            if self
                .parts
                .tasks
                .token()
                .run_until_cancelled(tokio::time::sleep(END_LATER))
                .await
                .is_none()
            {
                return;
            }
        }
    }

    /// Forgets what only viewers under way still need.
    pub(super) async fn always_after(&mut self) {
        self.parts
            .bridge
            .cleanup(&self.record.run_id, self.plan.limits.stream_retention)
            .await;
    }

    /// An answer that only stands in for a failed provider makes the run a failed one, although the stream ended well.
    fn judge(&self, end: StreamEnd) -> StreamEnd {
        let StreamEnd::Done(AgentOutcome {
            kind: StopKind::Completed,
            ..
        }) = &end
        else {
            return end;
        };
        let last = self
            .progress
            .state
            .messages()
            .last()
            .filter(|message| message.is_ai() && message.flag(kwargs::ERROR_FALLBACK));
        last.map_or(end, |message| StreamEnd::Failed {
            name: fallback_text(message, "error_type").unwrap_or_else(|| "ModelError".to_owned()),
            message: fallback_text(message, "error_detail")
                .or_else(|| fallback_text(message, "error_reason"))
                .unwrap_or_else(|| message.content.text()),
            stop_reason: None,
        })
    }

    /// Brings the saved state up to what viewers saw: text streamed before a cancel, changes since the last checkpoint.
    async fn settle(&mut self, end: &StreamEnd) {
        match end {
            StreamEnd::Done(AgentOutcome {
                kind: StopKind::Completed,
                ..
            }) => self.progress.next.clear(),
            StreamEnd::Done(AgentOutcome {
                kind: StopKind::Question(questions),
                ..
            }) => self.attach_questions(questions),
            StreamEnd::Done(_) => {}
            _ => {
                let partial = self.partial.take();
                if let Some(message) = &partial {
                    self.callbacks.events.write_human();
                    self.callbacks.events.partial_answer(message);
                }
                for news in self.callbacks.cut_subagents() {
                    let cut = AgentEvent::Subagent(Box::new(news));
                    self.callbacks.hear(&cut);
                    self.encoder.encode(&cut, &mut self.frames);
                }
                let update = self.plan.agent.settle(
                    &self.progress.state,
                    partial.filter(|_| self.plan.keep_partial),
                );
                if !update.is_empty() {
                    let state = Arc::make_mut(&mut self.progress.state);
                    match state.apply(update, &*self.parts.ids) {
                        Ok(()) => self.progress.dirty = true,
                        Err(error) => {
                            tracing::warn!(%error, "the last words of the run cannot be reduced")
                        }
                    }
                }
                let error = match end {
                    StreamEnd::Cancelled(_) => "CancelledError()".to_owned(),
                    _ => error_of(end).map(|(_, text)| text).unwrap_or_default(),
                };
                // A task that waits for a person was not at work.
                let at_work = self
                    .progress
                    .next
                    .iter_mut()
                    .filter(|task| task.interrupts.is_empty());
                at_work.for_each(|task| task.error = Some(error.clone()));
            }
        }
        if let Err(error) = self.save_last().await {
            tracing::warn!(?error, "the last checkpoint of the run is not written yet");
        }
        if !asks(end) {
            self.close_frames(end);
        }
        let _fenced = self.publish_frames().await;
    }

    /// Writes what the last checkpoint does not say, and the checkpoint that was kept for the end.
    async fn save_last(&mut self) -> Result<(), StreamEnd> {
        if self.progress.own_checkpoint.is_none() {
            self.progress.own_checkpoint = self.progress.found.take();
        }
        let saved = if self.is_changed() {
            self.save().await
        } else {
            Ok(())
        };
        if let Some(held) = self.held.take() {
            self.journal.checkpoint(held);
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

    /// Agents may ask without naming the task that does.
    fn attach_questions(&mut self, questions: &[serde_json::Value]) {
        if self
            .progress
            .next
            .iter()
            .any(|task| !task.interrupts.is_empty())
        {
            return;
        }
        if self.progress.next.is_empty() {
            let id = self.parts.ids.random().to_string();
            self.progress.next.push(PendingTask::new(id, "tools"));
        }
        self.progress.next[0].interrupts = questions.to_vec();
    }

    fn close_frames(&mut self, end: &StreamEnd) {
        match end {
            StreamEnd::Done(AgentOutcome {
                kind: StopKind::Breakpoint,
                ..
            }) => self.encoder.interrupt(&[], &mut self.frames),
            StreamEnd::Done(AgentOutcome {
                kind: StopKind::Question(questions),
                ..
            }) => {
                self.encoder.interrupt(questions, &mut self.frames);
                self.encoder
                    .values(&self.progress.state, questions, &mut self.frames);
            }
            _ => {}
        }
        if matches!(end, StreamEnd::Done(_)) {
            self.encoder.end(&self.progress.state, &mut self.frames);
        }
    }

    fn webhook(
        &self,
        end: &StreamEnd,
        rolled_back: bool,
        error: Option<&(String, String)>,
    ) -> Option<WebhookCall> {
        let url = self.record.webhook.clone()?;
        let values = serde_json::from_slice(&self.last_values(end, rolled_back)).ok();
        Some(WebhookCall {
            url,
            started_at: self.record.updated_at,
            values,
            error: error.cloned(),
        })
    }

    /// Whether the run's state goes with its thread while its request may come again.
    fn goes_before_its_request(&self) -> bool {
        self.plan.temporary_thread && self.plan.request.is_some()
    }

    fn last_values(&self, end: &StreamEnd, rolled_back: bool) -> Bytes {
        let state = if rolled_back {
            &self.progress.before
        } else {
            &self.progress.state
        };
        values_json(state, end.questions())
    }

    fn title(&self, rolled_back: bool) -> Option<String> {
        if rolled_back {
            return None;
        }
        self.progress
            .state
            .title()
            .map(str::to_owned)
            .or_else(|| self.callbacks.title())
    }

    async fn publish_end(&self, end: &StreamEnd, error: Option<(String, String)>) {
        let (kind, data) = match (end, error) {
            (StreamEnd::Cancelled(_), _) => (TerminalKind::Cancel, None),
            (_, Some((name, text))) => {
                // An answer stood in for the failure: viewers have read it, and an error event would hide it.
                let shown = self
                    .progress
                    .state
                    .messages()
                    .last()
                    .is_some_and(|message| message.flag(kwargs::ERROR_FALLBACK));
                (
                    TerminalKind::Error,
                    (!shown).then(|| error_frame(&name, &text).data.into_bytes()),
                )
            }
            _ => (TerminalKind::End, None),
        };
        match self
            .parts
            .bridge
            .publish_terminal(&self.key, kind, data)
            .await
        {
            Ok(()) | Err(BridgeError::Ended(_) | BridgeError::Closed) => {}
            Err(error) => tracing::warn!(%error, "the end did not reach the stream"),
        }
    }

    async fn tell_end(&self, end: &StreamEnd, run_end: &RunEnd) {
        let completion = run_end.completion.clone();
        let kind = match end {
            StreamEnd::Done(_) => LifecycleKind::RunCompleted {
                completion,
                title: run_end.title.clone(),
            },
            StreamEnd::Cancelled(_) => LifecycleKind::RunCancelled { completion },
            _ => LifecycleKind::RunFailed {
                error: run_end.error.clone().unwrap_or_default(),
                completion,
            },
        };
        self.tell(kind).await;
        self.tell(LifecycleKind::ThreadStatusUpdated(run_end.thread_status))
            .await;
    }

    /// Tells the observer.
    pub(super) async fn tell(&self, kind: LifecycleKind) {
        RunLifecycleEvent::of(&self.record, kind)
            .tell(&*self.parts.observer)
            .await;
    }
}

/// Whether the run stops for a person, who is to say how it goes on.
fn asks(end: &StreamEnd) -> bool {
    matches!(
        end,
        StreamEnd::Done(AgentOutcome {
            kind: StopKind::Question(_) | StopKind::Breakpoint,
            ..
        })
    )
}

fn is_undone(end: &StreamEnd) -> bool {
    *end == StreamEnd::Cancelled(CancelAction::Rollback)
}

/// How a run ends whose steps are lost: one that was to be undone needs none, any other says so.
fn without_steps(end: StreamEnd, error: &StoreError) -> StreamEnd {
    if is_undone(&end) {
        return end;
    }
    StreamEnd::Failed {
        name: "StorageError".to_owned(),
        message: format!("the last steps of the run could not be stored and are lost: {error}"),
        stop_reason: matches!(error, StoreError::NotWritable(_)).then(|| STORAGE_FULL.to_owned()),
    }
}

fn fallback_text(message: &Message, key: &str) -> Option<String> {
    message
        .additional_kwargs
        .get(key)
        .and_then(serde_json::Value::as_str)
        .filter(|text| !text.is_empty())
        .map(str::to_owned)
}

/// The class and text of an end that is not a good one.
fn error_of(end: &StreamEnd) -> Option<(String, String)> {
    match end {
        StreamEnd::Failed { name, message, .. } => Some((name.clone(), message.clone())),
        StreamEnd::TimedOut(reason) => Some(("TimeoutError".to_owned(), (*reason).to_owned())),
        StreamEnd::Cancelled(CancelAction::Rollback) => {
            Some(("UserRollback".to_owned(), "Rolled back by user".to_owned()))
        }
        StreamEnd::Cancelled(CancelAction::Interrupt) | StreamEnd::Done(_) => None,
        StreamEnd::Gone | StreamEnd::Lost | StreamEnd::HandedOver | StreamEnd::Away => None,
    }
}

fn stop_reason(end: &StreamEnd) -> Option<String> {
    match end {
        StreamEnd::Done(outcome) => outcome.stop_reason.clone(),
        StreamEnd::Failed { stop_reason, .. } => stop_reason.clone(),
        StreamEnd::Cancelled(CancelAction::Rollback) => Some(ROLLED_BACK.to_owned()),
        _ => None,
    }
}

/// A rolled-back run leaves the thread as it found it.
fn thread_status(status: RunStatus, nodes_due: bool, rolled_back: bool) -> ThreadStatus {
    match (rolled_back, nodes_due) {
        (true, true) => ThreadStatus::Interrupted,
        (true, false) => ThreadStatus::Idle,
        (false, due) => ThreadStatus::after(status, due),
    }
}

#[cfg(test)]
#[path = "finish_tests.rs"]
mod tests;

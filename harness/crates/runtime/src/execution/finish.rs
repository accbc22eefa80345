//! Last phase of an execution: commits and publishes the end.

use std::time::Duration;

use super::commit_retry::CommitFailure;
use super::end_record::{failure_of, is_rollback};
use super::reconcile::awaits_human;
use super::stream_end::StreamEnd;
use crate::agent::{AgentOutcome, StopKind};
use crate::definition::{RunFailure, RunStatus, StopReason, StoreError};
use crate::encoding::error_frame;
use crate::execution::Execution;
use crate::kernel::{RunOutcome, RunValues};
use crate::ports::{CommitError, LifecycleKind, RunEnd, RunLifecycleEvent};
use crate::stream_bridge::{BridgeError, TerminalKind};
use crate::termination::restored_input;
use deerflow_core::compute::{Size, heavy_poll};
use deerflow_core::fail_points;
use deerflow_core::messages::{Message, kwargs};

/// Timeout of the comparison of files, which delays the end of a run.
const FILE_CHANGES_TIMEOUT: Duration = Duration::from_secs(10);

impl Execution {
    /// Ends the run: first the durable end, then lifecycle events, then the terminal stream event,
    /// so that subscribers who see the end can read all data. Returns `None` if this process did
    /// not end the run: another process continues it or has ended it, or its end could not be
    /// stored.
    #[tracing::instrument(name = "finish", skip_all)]
    pub(super) async fn finish(&mut self, end: StreamEnd) -> Option<RunOutcome> {
        heavy_poll(Size::messages(self.progress.state.messages())).await;
        let mut end = self.classify(end);
        let Some(mut status) = end.status() else {
            return self.end_without_commit(&end).await;
        };
        let rolled_back = is_rollback(&end);
        if !rolled_back {
            self.reconcile(&end).await;
        }
        fail_points::pass("end.settled");
        let mut end_events = Vec::new();
        let mut stored = self.commit_buffer.confirm_steps().await;
        if stored.is_ok() {
            self.callbacks.run_ended(
                status.as_str(),
                failure_of(&end).as_ref(),
                &self.progress.before,
                &self.progress.state,
            );
            let rows = if rolled_back {
                Vec::new()
            } else {
                self.add_file_changes().await;
                self.callbacks.flush()
            };
            self.commit_buffer.events(rows);
            let run_end = self.run_end(&end, status);
            end_events = lifecycle_events(&end, &run_end);
            stored = self.commit_buffer.finish(run_end).await;
        }
        let steps_lost = matches!(stored, Err(CommitFailure::Steps(_)));
        if let Err(CommitFailure::Steps(error)) = stored {
            tracing::error!(%error, "cannot store steps of the run; they are discarded");
            end = without_steps(end, &error);
            status = end.status()?;
            let input = if rolled_back {
                Default::default()
            } else {
                restored_input(&self.record, &self.ports).await
            };
            let run_end = self.run_end(&end, status);
            end_events = lifecycle_events(&end, &run_end);
            stored = self
                .commit_buffer
                .finish_without_steps(run_end, input)
                .await;
        }
        match stored {
            Ok(()) => {}
            Err(
                CommitFailure::Steps(error) | CommitFailure::Refused(CommitError::Store(error)),
            ) => {
                tracing::error!(
                    %error,
                    "cannot store the end of the run; it is recovered at the next start"
                );
                self.notify(LifecycleKind::RunLeft).await;
                return None;
            }
            Err(CommitFailure::Refused(refused)) => {
                tracing::warn!(reason = %refused, "the store rejected the end of the run");
                return self.end_without_commit(&refused.into()).await;
            }
        }
        fail_points::pass("end.stored");
        if !rolled_back && !steps_lost {
            self.retain_head();
        }
        self.active.set_status(status);
        if awaits_human(&end) {
            // Interrupts are published after the commit, so that no client answers an interrupt
            // that a crash reverts.
            self.push_end_frames(&end);
            let _fenced = self.publish_frames().await;
        }
        if rolled_back
            && let Err(error) = self
                .ports
                .events
                .delete_run(self.plan.thread_id(), self.plan.run_id())
                .await
        {
            tracing::warn!(%error, "cannot delete the journal of a rolled-back run");
        }
        for event in end_events {
            self.notify(event).await;
        }
        fail_points::pass("end.told");
        let failure = failure_of(&end);
        self.publish_end(&end, failure.as_ref()).await;
        let state = if rolled_back {
            &self.progress.before
        } else {
            &self.progress.state
        };
        Some(RunOutcome {
            status,
            error: failure
                .filter(|_| matches!(status, RunStatus::Error | RunStatus::Timeout) && !rolled_back)
                .map(Into::into),
            values: Some(RunValues {
                state: state.clone(),
                interrupts: end.interrupts().to_vec(),
            }),
        })
    }

    /// Journals the files that the run changed.
    async fn add_file_changes(&mut self) {
        let report = self.ports.file_changes.take(&self.record.run_id);
        match tokio::time::timeout(FILE_CHANGES_TIMEOUT, report).await {
            Ok(Some(report)) => self.callbacks.events.files_changed(report),
            Ok(None) => {}
            Err(_) => tracing::warn!("comparing the files of the run timed out"),
        }
    }

    /// Starts the retention period of the run's stream.
    pub(super) async fn clean_up(&mut self) {
        self.ports
            .bridge
            .cleanup(&self.record.run_id, self.plan.limits().stream_retention)
            .await;
    }

    /// Turns a successful end into a failure if the last answer is a placeholder for a provider
    /// error.
    fn classify(&self, end: StreamEnd) -> StreamEnd {
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

    async fn publish_end(&self, end: &StreamEnd, failure: Option<&RunFailure>) {
        let (kind, data) = match (end, failure) {
            (StreamEnd::Cancelled(_), _) => (TerminalKind::Cancel, None),
            (_, Some(RunFailure { name, message })) => {
                // Subscribers have received the placeholder answer, and an error event would hide
                // it.
                let was_published = self
                    .progress
                    .state
                    .messages()
                    .last()
                    .is_some_and(|message| message.flag(kwargs::ERROR_FALLBACK));
                (
                    TerminalKind::Error,
                    (!was_published).then(|| error_frame(name, message).data.into_bytes()),
                )
            }
            _ => (TerminalKind::End, None),
        };
        match self
            .ports
            .bridge
            .publish_terminal(&self.key, kind, data)
            .await
        {
            Ok(()) | Err(BridgeError::Ended(_) | BridgeError::Closed) => {}
            Err(error) => tracing::warn!(%error, "cannot publish the end of the run to its stream"),
        }
    }

    /// Notifies the observer.
    pub(super) async fn notify(&self, kind: LifecycleKind) {
        RunLifecycleEvent::of(&self.record, kind)
            .notify(&*self.ports.observer)
            .await;
    }
}

/// Returns the events of which the observer is notified after the end is stored, in this order.
fn lifecycle_events(end: &StreamEnd, run_end: &RunEnd) -> Vec<LifecycleKind> {
    let completion = run_end.completion.clone();
    let ended = match end {
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
    let thread = LifecycleKind::ThreadStatusUpdated(run_end.thread_status);
    vec![ended, thread]
}

/// Returns the end of a run whose steps are lost: a failure, unless a rollback was requested, which
/// needs no steps.
fn without_steps(end: StreamEnd, error: &StoreError) -> StreamEnd {
    if is_rollback(&end) {
        return end;
    }
    StreamEnd::Failed {
        name: "StorageError".to_owned(),
        message: format!("the last steps of the run could not be stored and are lost: {error}"),
        stop_reason: matches!(error, StoreError::NotWritable(_)).then_some(StopReason::StorageFull),
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

#[cfg(test)]
#[path = "finish_tests.rs"]
mod tests;

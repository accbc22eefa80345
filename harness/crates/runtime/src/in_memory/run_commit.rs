//! Commits of runs.

use std::sync::Arc;

use async_trait::async_trait;

use super::tables::{InMemoryStores, OutboxEntry};
use crate::definition::{RunStatus, StoreError, ThreadStatus};
use crate::ports::{CommitError, RunCommit, RunCommitStore, WebhookDelivery};

#[async_trait]
impl RunCommitStore for InMemoryStores {
    async fn commit(&self, commit: Arc<RunCommit>) -> Result<(), CommitError> {
        let mut commit = Arc::unwrap_or_clone(commit);
        let mut tables = self.0.lock();
        let tables = &mut *tables;
        let run = tables
            .runs
            .get_mut(&commit.run_id)
            .ok_or_else(|| CommitError::Gone(commit.run_id.clone()))?;
        let owned = run.record.attempt == commit.attempt;
        if owned && (1..=run.last_batch).contains(&commit.batch) {
            return Ok(());
        }
        if run.record.status.is_terminal() {
            return Err(CommitError::AlreadyTerminal(commit.run_id));
        }
        if !owned {
            return Err(CommitError::OwnershipLost {
                run_id: commit.run_id,
                attempt: commit.attempt,
            });
        }
        let illegal = |error: crate::runs::InvalidTransition| StoreError::Failed(error.to_string());
        if let Some(end) = commit.end.as_ref().filter(|end| !end.status.is_terminal()) {
            return Err(StoreError::Failed(format!("a run cannot end in {}", end.status)).into());
        }
        let mut status = run.record.status;
        for next in commit
            .advance
            .into_iter()
            .chain(commit.end.as_ref().map(|end| end.status))
        {
            status = status.advance(next).map_err(illegal)?;
        }
        let thread = tables.threads.entry(commit.thread_id.clone()).or_default();
        if commit
            .end
            .as_ref()
            .is_some_and(|end| end.discard_checkpoints)
        {
            commit.checkpoints.clear();
        }
        thread
            .validate_writes(&commit.checkpoints)
            .map_err(StoreError::Failed)?;
        run.last_batch = run.last_batch.max(commit.batch);
        run.record.status = status;
        run.record.updated_at = commit.at;
        if commit.advance == Some(RunStatus::Running) {
            run.started.get_or_insert(commit.at);
        }
        if let Some(so_far) = commit.so_far {
            run.record.completion = *so_far;
        }
        if status == RunStatus::Pending && commit.advance.is_some() {
            // Released: the previous owner must not write any more.
            run.record.attempt += 1;
            run.losses += u32::from(commit.is_loss);
            run.last_batch = 0;
            run.owner = None;
        }
        run.calls.extend(
            commit
                .calls
                .into_iter()
                .map(|call| (call.key, call.progress)),
        );
        thread.append(commit.events);
        for write in commit.checkpoints {
            thread.store_checkpoint(write);
        }
        let Some(end) = commit.end else { return Ok(()) };
        run.owner = None;
        if !end.is_poisoned() {
            run.recipe = None;
        }
        if end.forget_calls {
            run.calls.clear();
        }
        run.record.error = end.error;
        run.record.error_name = end.error_name;
        run.record.stop_reason = end.stop_reason;
        run.record.completion = end.completion;
        thread.status = end.thread_status;
        thread.title = end.title.or(thread.title.take());
        if end.discard_checkpoints {
            thread
                .checkpoints
                .retain(|_, checkpoint| checkpoint.meta.run_id.as_ref() != Some(&commit.run_id));
            thread.status = ThreadStatus::at_rest(
                thread
                    .newest()
                    .is_some_and(|newest| !newest.meta.next.is_empty()),
            );
        }
        let ended = run.record.clone();
        tables.runs.mark_ended(&commit.run_id);
        if let Some(call) = end.webhook {
            let delivery = WebhookDelivery {
                run: ended,
                call,
                ended_at: commit.at,
                tries: 0,
            };
            tables.outbox.insert(
                commit.run_id.clone(),
                OutboxEntry {
                    delivery,
                    due_at: Some(commit.at),
                    died: None,
                    last_error: None,
                },
            );
        }
        let temporary = thread.temporary;
        if let Some(values) = end.kept_values
            && let Some(request) = tables.request_of(&commit.run_id)
        {
            request.values = Some(values);
        }
        if tables.runs.has_unfinished(&commit.thread_id) {
            tables.threads.entry(commit.thread_id).or_default().status = ThreadStatus::Busy;
        } else if temporary {
            tables.threads.remove(&commit.thread_id);
            for id in tables.runs.ids_of_thread(&commit.thread_id) {
                let Some(run) = tables.runs.get_mut(&id) else {
                    continue;
                };
                run.recipe = None;
                run.record.kwargs = serde_json::json!({}).into();
                run.record.completion = std::mem::take(&mut run.record.completion).without_text();
            }
        }
        Ok(())
    }
}

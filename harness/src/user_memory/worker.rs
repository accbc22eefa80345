//! Background worker that processes pending memory updates one after the other. Updates that are
//! unfinished at shutdown stay in the store and are processed after the next start or by another
//! worker.

use std::pin::pin;
use std::time::Duration;

use chrono::TimeDelta;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::dialogue::Dialogue;
use super::learn::{Learned, Learner};
use super::merge::merge;
use super::rules::MemoryRules;
use super::service::{MemoryError, UserMemories};
use crate::models::{ModelError, UsageRecorder};
use crate::runtime::checkpoint::{CheckpointError, Checkpointer};
use crate::runtime::runs::store::StoreError;
use deerflow_runtime::user_memory::MemoryDocument;
use deerflow_runtime::user_memory::PendingUpdate;

/// Maximum number of updates that are claimed at once.
const MAX_CLAIMED: usize = 4;
/// Lease of a claim, after which other workers may claim the update.
const CLAIM_LEASE: TimeDelta = TimeDelta::minutes(15);
/// Maximum number of attempts of one update.
const MAX_ATTEMPTS: i64 = 3;
/// Delay before another attempt.
const RETRY_DELAY: TimeDelta = TimeDelta::minutes(2);
/// Delay between polls.
const POLL_INTERVAL: Duration = Duration::from_secs(2);
/// Timeout of releasing one claim.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(3);

/// Errors of processing an update.
#[derive(Debug, thiserror::Error)]
enum LearnError {
    #[error(transparent)]
    Model(#[from] ModelError),
    #[error(transparent)]
    Memory(#[from] MemoryError),
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
}

/// Processes pending memory updates in the background.
#[derive(Debug)]
pub struct MemoryWorker {
    memories: UserMemories,
    checkpoints: std::sync::Arc<dyn Checkpointer>,
    usage_recorder: UsageRecorder,
    /// Claimed updates that are not processed yet.
    claimed: Mutex<Vec<PendingUpdate>>,
}

impl MemoryWorker {
    /// Creates a worker that reads threads from `checkpoints` and records token usage in
    /// `usage_recorder`.
    pub fn new(
        memories: UserMemories,
        checkpoints: std::sync::Arc<dyn Checkpointer>,
        usage_recorder: UsageRecorder,
    ) -> Self {
        Self {
            memories,
            checkpoints,
            usage_recorder,
            claimed: Mutex::default(),
        }
    }

    /// Runs until `token` is cancelled. The current poll is then finished and a last one follows,
    /// within the time that the rules allow. `now` returns the current rules and models.
    pub async fn run(
        self,
        token: CancellationToken,
        now: impl Fn() -> (MemoryRules, Learner) + Send + Sync,
    ) {
        let mut deadline = pin!(async {
            token.cancelled().await;
            tokio::time::sleep(now().0.flush).await;
        });
        loop {
            let is_last = token.is_cancelled();
            let (rules, learner) = now();
            let polled = tokio::select! {
                biased;
                polled = self.poll(&rules, &learner) => Some(polled),
                () = &mut deadline => None,
            };
            let released = self.release_claims().await;
            if let Some(Err(error)) = &polled {
                tracing::warn!(%error, "cannot process pending memory updates, retrying at the next poll");
            }
            if is_last || polled.is_none() {
                return tracing::info!(
                    drained = released == 0,
                    released_claims = released,
                    "memory worker stopped"
                );
            }
            if !matches!(polled, Some(Ok(1..))) {
                token
                    .run_until_cancelled(tokio::time::sleep(POLL_INTERVAL))
                    .await;
            }
        }
    }

    /// Processes the updates that are due now and returns their number.
    pub async fn poll(&self, rules: &MemoryRules, learner: &Learner) -> Result<usize, StoreError> {
        if !rules.learns {
            return Ok(0);
        }
        let now = self.memories.clock().now();
        let claimed = self
            .memories
            .store()
            .take(now, now + CLAIM_LEASE, MAX_CLAIMED)
            .await?;
        self.claimed.lock().clone_from(&claimed);
        for update in &claimed {
            self.process(update, rules, learner).await?;
            self.claimed.lock().remove(0);
        }
        Ok(claimed.len())
    }

    #[doc(hidden)]
    #[deprecated(note = "use `poll`")]
    pub async fn look(&self, rules: &MemoryRules, learner: &Learner) -> Result<usize, StoreError> {
        self.poll(rules, learner).await
    }

    /// Releases the claims that are not processed and returns their number.
    async fn release_claims(&self) -> usize {
        let unfinished = std::mem::take(&mut *self.claimed.lock());
        for update in &unfinished {
            let result =
                tokio::time::timeout(RELEASE_TIMEOUT, self.memories.store().give_back(update))
                    .await;
            if !matches!(result, Ok(Ok(()))) {
                tracing::warn!(thread_id = %update.thread, "cannot release a pending memory update, other workers claim it after its lease");
            }
        }
        unfinished.len()
    }

    async fn process(
        &self,
        update: &PendingUpdate,
        rules: &MemoryRules,
        learner: &Learner,
    ) -> Result<(), StoreError> {
        let store = self.memories.store();
        match self.learn(update, rules, learner).await {
            Ok(Some(watermark)) => store.done(update, Some(&watermark)).await,
            Ok(None) => store.forget_thread(&update.thread).await,
            Err(error) if update.tries + 1 < MAX_ATTEMPTS => {
                tracing::warn!(%error, thread_id = %update.thread, "cannot process a memory update, retrying later");
                store
                    .again(update, self.memories.clock().now() + RETRY_DELAY)
                    .await
            }
            Err(error) => {
                // The messages are read again with the next update of the thread.
                tracing::error!(%error, thread_id = %update.thread, "cannot process a memory update, giving up after the last attempt");
                store.done(update, update.watermark.as_deref()).await
            }
        }
    }

    /// Processes one update and returns the id of the last message; `None` if the thread was
    /// deleted or has no messages.
    async fn learn(
        &self,
        update: &PendingUpdate,
        rules: &MemoryRules,
        learner: &Learner,
    ) -> Result<Option<String>, LearnError> {
        let Some(snapshot) = self.checkpoints.get(&update.thread, None).await? else {
            return Ok(None);
        };
        for _ in 0..MAX_ATTEMPTS {
            let document = self
                .memories
                .read(&update.scope)
                .await
                .map_err(MemoryError::from)?
                .document;
            let dialogue = Dialogue::since(
                snapshot.state.messages(),
                update.watermark.as_deref(),
                document.forgotten_at,
            );
            let Some(last) = dialogue.last.clone() else {
                return Ok(None);
            };
            if dialogue.is_empty() {
                return Ok(Some(last));
            }
            let usage = self.usage_recorder.open();
            let learned = learner.learn(&document, &dialogue, usage.caller()).await;
            usage
                .record(Some(&update.thread), Some(&update.scope.user))
                .await;
            let learned = learned?;
            let Some(learned) = learned else {
                tracing::warn!(thread_id = %update.thread, "cannot parse the model's memory update, skipping the messages");
                return Ok(Some(last));
            };
            match self
                .save(update, rules, &document, &dialogue, &learned)
                .await
            {
                Err(MemoryError::Busy) => {
                    tracing::debug!(thread_id = %update.thread, "a memory was changed during extraction")
                }
                saved => return saved.map(|()| Some(last)).map_err(Into::into),
            }
        }
        Err(MemoryError::Busy.into())
    }

    /// Merges the changes into the document if it is still at the revision that the model has read.
    /// A document that was changed after that, for example cleared, must not be overwritten.
    async fn save(
        &self,
        update: &PendingUpdate,
        rules: &MemoryRules,
        base: &MemoryDocument,
        dialogue: &Dialogue,
        learned: &Learned,
    ) -> Result<(), MemoryError> {
        let (ids, now) = (self.memories.ids(), self.memories.clock().now());
        let merged = self.memories.change(&update.scope, false, |document| {
            if document.revision != base.revision {
                return Err(MemoryError::Busy);
            }
            if let Some(next) = merge(document, learned, dialogue, &update.thread, rules, ids, now)
            {
                *document = next;
            }
            Ok(())
        });
        merged.await.map(drop)
    }
}

#[cfg(test)]
#[path = "worker_tests.rs"]
mod tests;

//! Learns from threads that have news, one after the other, until it is told to stop. What is not done then is done after the next
//! start: the news are in the store.

use std::time::Duration;

use chrono::TimeDelta;
use tokio_util::sync::CancellationToken;

use super::dialogue::Dialogue;
use super::document::MemoryDocument;
use super::learn::{Learned, Learner};
use super::memories::{Memories, MemoryError};
use super::merge::merge;
use super::rules::MemoryRules;
use super::store::Noted;
use crate::models::ModelError;
use crate::runtime::checkpoint::{CheckpointError, Checkpointer};
use crate::runtime::runs::store::StoreError;

/// Threads that are taken at once.
const MOST_TAKEN: usize = 4;
/// How long a worker may take for them before others do.
const LEASE: TimeDelta = TimeDelta::minutes(15);
/// Tries of one thread's news.
const MOST_TRIES: i64 = 3;
/// The pause before another try.
const RETRY_PAUSE: TimeDelta = TimeDelta::minutes(2);
/// The pause between looks.
const PAUSE: Duration = Duration::from_secs(2);

/// Why a thread's news were not learned.
#[derive(Debug, thiserror::Error)]
enum NotLearned {
    #[error(transparent)]
    Model(#[from] ModelError),
    #[error(transparent)]
    Memory(#[from] MemoryError),
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
}

/// Learns in the background.
#[derive(Debug)]
pub struct MemoryWorker {
    memories: Memories,
    checkpoints: std::sync::Arc<dyn Checkpointer>,
}

impl MemoryWorker {
    /// A worker that reads threads from `checkpoints`.
    pub fn new(memories: Memories, checkpoints: std::sync::Arc<dyn Checkpointer>) -> Self {
        Self { memories, checkpoints }
    }

    /// Works until `token` is cancelled. `now` gives the rules in force, and whom to ask.
    pub async fn run(self, token: CancellationToken, now: impl Fn() -> (MemoryRules, Learner) + Send + Sync) {
        loop {
            let (rules, learner) = now();
            let looked = async {
                match self.look(&rules, &learner).await {
                    Ok(0) => tokio::time::sleep(PAUSE).await,
                    Ok(_) => {}
                    Err(error) => {
                        tracing::warn!(%error, "what threads have to tell waits for the next look");
                        tokio::time::sleep(PAUSE).await;
                    }
                }
            };
            if token.run_until_cancelled(looked).await.is_none() {
                return;
            }
        }
    }

    /// Learns from the threads that are due now, and says how many there were.
    pub async fn look(&self, rules: &MemoryRules, learner: &Learner) -> Result<usize, StoreError> {
        if !rules.learns {
            return Ok(0);
        }
        let now = self.memories.clock().now();
        let taken = self.memories.store().take(now, now + LEASE, MOST_TAKEN).await?;
        for noted in &taken {
            self.work(noted, rules, learner).await?;
        }
        Ok(taken.len())
    }

    async fn work(&self, noted: &Noted, rules: &MemoryRules, learner: &Learner) -> Result<(), StoreError> {
        let store = self.memories.store();
        match self.learn(noted, rules, learner).await {
            Ok(Some(watermark)) => store.done(noted, Some(&watermark)).await,
            Ok(None) => store.forget_thread(&noted.thread).await,
            Err(error) if noted.tries + 1 < MOST_TRIES => {
                tracing::warn!(%error, thread_id = %noted.thread, "a thread's news were not learned; another try follows");
                store.again(noted, self.memories.clock().now() + RETRY_PAUSE).await
            }
            Err(error) => {
                // They are read again with the next news of the thread.
                tracing::error!(%error, thread_id = %noted.thread, "a thread's news were not learned");
                store.done(noted, noted.watermark.as_deref()).await
            }
        }
    }

    /// The last message that was learned from; `None` when the thread is gone.
    async fn learn(&self, noted: &Noted, rules: &MemoryRules, learner: &Learner) -> Result<Option<String>, NotLearned> {
        let Some(snapshot) = self.checkpoints.get(&noted.thread, None).await? else { return Ok(None) };
        let dialogue = Dialogue::since(snapshot.state.messages(), noted.watermark.as_deref());
        let Some(last) = dialogue.last.clone() else { return Ok(None) };
        if dialogue.is_empty() {
            return Ok(Some(last));
        }
        for _ in 0..MOST_TRIES {
            let document = self.memories.read(&noted.scope).await.map_err(MemoryError::from)?.document;
            let learned = learner.learn(&document, &dialogue, self.memories.clock(), self.memories.ids()).await?;
            let Some(learned) = learned else {
                tracing::warn!(thread_id = %noted.thread, "a model's answer was no memory; what the thread has to tell is passed over");
                return Ok(Some(last));
            };
            match self.keep(noted, rules, &document, &dialogue, &learned).await {
                Err(MemoryError::Busy) => tracing::debug!(thread_id = %noted.thread, "a memory changed while it was learned for"),
                kept => return kept.map(|()| Some(last)).map_err(Into::into),
            }
        }
        Err(MemoryError::Busy.into())
    }

    /// Merges into the document that the model was shown. What another one says, such as an emptied one, is not to be overwritten by
    /// what followed from this.
    async fn keep(
        &self,
        noted: &Noted,
        rules: &MemoryRules,
        shown: &MemoryDocument,
        dialogue: &Dialogue,
        learned: &Learned,
    ) -> Result<(), MemoryError> {
        let (ids, now) = (self.memories.ids(), self.memories.clock().now());
        let merged = self.memories.change(&noted.scope, false, |document| {
            if document.revision != shown.revision {
                return Err(MemoryError::Busy);
            }
            if let Some(next) = merge(document, learned, dialogue, &noted.thread, rules, ids, now) {
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

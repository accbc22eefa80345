//! Learns from threads that have news, one after the other, until it is told to stop. What it does not come to then is done after
//! the next start, or by others: the news are in the store.

use std::pin::pin;
use std::time::Duration;

use chrono::TimeDelta;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::dialogue::Dialogue;
use super::document::MemoryDocument;
use super::learn::{Learned, Learner};
use super::memories::{Memories, MemoryError};
use super::merge::merge;
use super::rules::MemoryRules;
use super::store::Noted;
use crate::models::{ModelError, Till};
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
/// How long the store may take at the end.
const END_LIMIT: Duration = Duration::from_secs(3);

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
    till: Till,
    /// What was taken and is not learned yet.
    taken: Mutex<Vec<Noted>>,
}

impl MemoryWorker {
    /// A worker that reads threads from `checkpoints` and books its questions in `till`.
    pub fn new(
        memories: Memories,
        checkpoints: std::sync::Arc<dyn Checkpointer>,
        till: Till,
    ) -> Self {
        Self {
            memories,
            checkpoints,
            till,
            taken: Mutex::default(),
        }
    }

    /// Works until `token` is cancelled. A look that is under way then comes to its end, and a last one follows, as far as the rules
    /// give time for it. `now` gives the rules in force, and whom to ask.
    pub async fn run(
        self,
        token: CancellationToken,
        now: impl Fn() -> (MemoryRules, Learner) + Send + Sync,
    ) {
        let mut over = pin!(async {
            token.cancelled().await;
            tokio::time::sleep(now().0.flush).await;
        });
        loop {
            let is_last = token.is_cancelled();
            let (rules, learner) = now();
            let looked = tokio::select! {
                biased;
                looked = self.look(&rules, &learner) => Some(looked),
                () = &mut over => None,
            };
            let left = self.give_back().await;
            if let Some(Err(error)) = &looked {
                tracing::warn!(%error, "what threads have to tell waits for the next look");
            }
            if is_last || looked.is_none() {
                return tracing::info!(
                    drained = left == 0,
                    threads_left = left,
                    "no more is learned from threads"
                );
            }
            if !matches!(looked, Some(Ok(1..))) {
                token.run_until_cancelled(tokio::time::sleep(PAUSE)).await;
            }
        }
    }

    /// Learns from the threads that are due now, and says how many there were.
    pub async fn look(&self, rules: &MemoryRules, learner: &Learner) -> Result<usize, StoreError> {
        if !rules.learns {
            return Ok(0);
        }
        let now = self.memories.clock().now();
        let taken = self
            .memories
            .store()
            .take(now, now + LEASE, MOST_TAKEN)
            .await?;
        self.taken.lock().clone_from(&taken);
        for noted in &taken {
            self.work(noted, rules, learner).await?;
            self.taken.lock().remove(0);
        }
        Ok(taken.len())
    }

    /// Leaves to others what was taken and not learned, and says how much that was.
    async fn give_back(&self) -> usize {
        let left = std::mem::take(&mut *self.taken.lock());
        for noted in &left {
            let given =
                tokio::time::timeout(END_LIMIT, self.memories.store().give_back(noted)).await;
            if !matches!(given, Ok(Ok(()))) {
                tracing::warn!(thread_id = %noted.thread, "a thread's news could not be given back; others take them when the lease is over");
            }
        }
        left.len()
    }

    async fn work(
        &self,
        noted: &Noted,
        rules: &MemoryRules,
        learner: &Learner,
    ) -> Result<(), StoreError> {
        let store = self.memories.store();
        match self.learn(noted, rules, learner).await {
            Ok(Some(watermark)) => store.done(noted, Some(&watermark)).await,
            Ok(None) => store.forget_thread(&noted.thread).await,
            Err(error) if noted.tries + 1 < MOST_TRIES => {
                tracing::warn!(%error, thread_id = %noted.thread, "a thread's news were not learned; another try follows");
                store
                    .again(noted, self.memories.clock().now() + RETRY_PAUSE)
                    .await
            }
            Err(error) => {
                // They are read again with the next news of the thread.
                tracing::error!(%error, thread_id = %noted.thread, "a thread's news were not learned");
                store.done(noted, noted.watermark.as_deref()).await
            }
        }
    }

    /// The last message that was learned from; `None` when the thread is gone.
    async fn learn(
        &self,
        noted: &Noted,
        rules: &MemoryRules,
        learner: &Learner,
    ) -> Result<Option<String>, NotLearned> {
        let Some(snapshot) = self.checkpoints.get(&noted.thread, None).await? else {
            return Ok(None);
        };
        for _ in 0..MOST_TRIES {
            let document = self
                .memories
                .read(&noted.scope)
                .await
                .map_err(MemoryError::from)?
                .document;
            let dialogue = Dialogue::since(
                snapshot.state.messages(),
                noted.watermark.as_deref(),
                document.forgotten_at,
            );
            let Some(last) = dialogue.last.clone() else {
                return Ok(None);
            };
            if dialogue.is_empty() {
                return Ok(Some(last));
            }
            let tab = self.till.open();
            let learned = learner.learn(&document, &dialogue, tab.asker()).await;
            tab.book(Some(&noted.thread), Some(&noted.scope.user)).await;
            let learned = learned?;
            let Some(learned) = learned else {
                tracing::warn!(thread_id = %noted.thread, "a model's answer was no memory; what the thread has to tell is passed over");
                return Ok(Some(last));
            };
            match self
                .keep(noted, rules, &document, &dialogue, &learned)
                .await
            {
                Err(MemoryError::Busy) => {
                    tracing::debug!(thread_id = %noted.thread, "a memory changed while it was learned for")
                }
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

//! User memory store in the memory of one process.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use parking_lot::Mutex;

use super::document::MemoryDocument;
use super::store::{MemoryScope, PendingUpdate, StoredMemory, UserMemoryStore};
use crate::definition::StoreError;
use deerflow_core::ids::ThreadId;

/// Stores user memories in memory; their lifetime is that of the process.
#[derive(Debug, Default)]
pub struct InMemoryUserMemoryStore(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    documents: BTreeMap<MemoryScope, StoredMemory>,
    entries: BTreeMap<(MemoryScope, String), Entry>,
}

#[derive(Debug)]
struct Entry {
    update: PendingUpdate,
    /// Time from which a worker may claim the update; `None` if no update is pending.
    due: Option<DateTime<Utc>>,
    /// End of the last claim.
    claimed_until: Option<DateTime<Utc>>,
}

fn key(scope: &MemoryScope, thread: &ThreadId) -> (MemoryScope, String) {
    (scope.clone(), thread.to_string())
}

impl InMemoryUserMemoryStore {
    fn change(&self, update: &PendingUpdate, change: impl FnOnce(&mut Entry)) {
        if let Some(entry) = self
            .0
            .lock()
            .entries
            .get_mut(&key(&update.scope, &update.thread))
        {
            entry.claimed_until = None;
            change(entry);
        }
    }
}

#[async_trait]
impl UserMemoryStore for InMemoryUserMemoryStore {
    async fn read(&self, scope: &MemoryScope) -> Result<Option<StoredMemory>, StoreError> {
        Ok(self.0.lock().documents.get(scope).cloned())
    }

    async fn agents(&self, user: &str) -> Result<Vec<String>, StoreError> {
        let state = self.0.lock();
        let scopes = state
            .documents
            .keys()
            .chain(state.entries.keys().map(|(scope, _)| scope))
            .filter(|scope| scope.user == user);
        Ok(scopes
            .filter_map(|scope| scope.agent.clone())
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect())
    }

    async fn write(
        &self,
        scope: &MemoryScope,
        document: &MemoryDocument,
        edited: bool,
        _at: DateTime<Utc>,
    ) -> Result<bool, StoreError> {
        let mut state = self.0.lock();
        let current = state.documents.get(scope);
        if current.map_or(0, |current| current.document.revision) != document.revision {
            return Ok(false);
        }
        let edits = current.map_or(0, |current| current.edits) + i64::from(edited);
        let document = MemoryDocument {
            revision: document.revision + 1,
            ..document.clone()
        };
        state
            .documents
            .insert(scope.clone(), StoredMemory { document, edits });
        Ok(true)
    }

    async fn note(
        &self,
        scope: &MemoryScope,
        thread: &ThreadId,
        due: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        let mut state = self.0.lock();
        let update = || PendingUpdate {
            scope: scope.clone(),
            thread: thread.clone(),
            watermark: None,
            number: 0,
            tries: 0,
        };
        let entry = state
            .entries
            .entry(key(scope, thread))
            .or_insert_with(|| Entry {
                update: update(),
                due: None,
                claimed_until: None,
            });
        entry.due = Some(due);
        entry.update.number += 1;
        entry.update.tries = 0;
        Ok(())
    }

    async fn take(
        &self,
        now: DateTime<Utc>,
        until: DateTime<Utc>,
        most: usize,
    ) -> Result<Vec<PendingUpdate>, StoreError> {
        let mut state = self.0.lock();
        let is_free = |entry: &Entry| entry.claimed_until.is_none_or(|claimed| claimed <= now);
        let mut ready: Vec<&mut Entry> = state
            .entries
            .values_mut()
            .filter(|entry| entry.due.is_some_and(|due| due <= now) && is_free(entry))
            .collect();
        ready.sort_by_key(|entry| entry.due);
        let claimed = ready.into_iter().take(most).map(|entry| {
            entry.claimed_until = Some(until);
            entry.update.clone()
        });
        Ok(claimed.collect())
    }

    async fn done(
        &self,
        update: &PendingUpdate,
        watermark: Option<&str>,
    ) -> Result<(), StoreError> {
        self.change(update, |entry| {
            entry.update.watermark = watermark.map(str::to_owned);
            entry.update.tries = 0;
            if entry.update.number == update.number {
                entry.due = None;
            }
        });
        Ok(())
    }

    async fn again(&self, update: &PendingUpdate, due: DateTime<Utc>) -> Result<(), StoreError> {
        self.change(update, |entry| {
            entry.update.tries += 1;
            entry.due = Some(due);
        });
        Ok(())
    }

    async fn give_back(&self, update: &PendingUpdate) -> Result<(), StoreError> {
        self.change(update, |_| {});
        Ok(())
    }

    async fn hurry(&self, thread: &ThreadId, due: DateTime<Utc>) -> Result<(), StoreError> {
        let mut state = self.0.lock();
        let of_thread = state
            .entries
            .values_mut()
            .filter(|entry| entry.update.thread == *thread);
        of_thread.for_each(|entry| entry.due = entry.due.map(|_| due));
        Ok(())
    }

    async fn forget_thread(&self, thread: &ThreadId) -> Result<(), StoreError> {
        self.0
            .lock()
            .entries
            .retain(|(_, of), _| of != thread.as_str());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    async fn fresh() -> crate::testkit::memories::UserMemoryStores {
        crate::testkit::memories::UserMemoryStores {
            memories: Arc::new(InMemoryUserMemoryStore::default()),
            keep: Arc::new(()),
        }
    }

    crate::memory_store_suite!([#[tokio::test]] fresh);
}

//! A memory store for one process that forgets everything at its end.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use parking_lot::Mutex;

use super::document::MemoryDocument;
use super::store::{MemoryScope, MemoryStore, Noted, Stored};
use crate::ids::ThreadId;
use crate::runtime::runs::store::StoreError;

/// Memories of one process.
#[derive(Debug, Default)]
pub struct VolatileMemoryStore(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    documents: BTreeMap<MemoryScope, Stored>,
    news: BTreeMap<(MemoryScope, String), News>,
}

#[derive(Debug)]
struct News {
    noted: Noted,
    due: Option<DateTime<Utc>>,
    taken_until: Option<DateTime<Utc>>,
}

fn key(scope: &MemoryScope, thread: &ThreadId) -> (MemoryScope, String) {
    (scope.clone(), thread.to_string())
}

impl VolatileMemoryStore {
    fn change(&self, noted: &Noted, change: impl FnOnce(&mut News)) {
        if let Some(news) = self
            .0
            .lock()
            .news
            .get_mut(&key(&noted.scope, &noted.thread))
        {
            news.taken_until = None;
            change(news);
        }
    }
}

#[async_trait]
impl MemoryStore for VolatileMemoryStore {
    async fn read(&self, scope: &MemoryScope) -> Result<Option<Stored>, StoreError> {
        Ok(self.0.lock().documents.get(scope).cloned())
    }

    async fn agents(&self, user: &str) -> Result<Vec<String>, StoreError> {
        let kept = self.0.lock();
        let scopes = kept
            .documents
            .keys()
            .chain(kept.news.keys().map(|(scope, _)| scope))
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
        let mut kept = self.0.lock();
        let held = kept.documents.get(scope);
        if held.map_or(0, |held| held.document.revision) != document.revision {
            return Ok(false);
        }
        let edits = held.map_or(0, |held| held.edits) + i64::from(edited);
        let document = MemoryDocument {
            revision: document.revision + 1,
            ..document.clone()
        };
        kept.documents
            .insert(scope.clone(), Stored { document, edits });
        Ok(true)
    }

    async fn note(
        &self,
        scope: &MemoryScope,
        thread: &ThreadId,
        due: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        let mut kept = self.0.lock();
        let noted = || Noted {
            scope: scope.clone(),
            thread: thread.clone(),
            watermark: None,
            number: 0,
            tries: 0,
        };
        let news = kept.news.entry(key(scope, thread)).or_insert_with(|| News {
            noted: noted(),
            due: None,
            taken_until: None,
        });
        news.due = Some(due);
        news.noted.number += 1;
        news.noted.tries = 0;
        Ok(())
    }

    async fn take(
        &self,
        now: DateTime<Utc>,
        until: DateTime<Utc>,
        most: usize,
    ) -> Result<Vec<Noted>, StoreError> {
        let mut kept = self.0.lock();
        let is_free = |news: &News| news.taken_until.is_none_or(|taken| taken <= now);
        let mut ready: Vec<&mut News> = kept
            .news
            .values_mut()
            .filter(|news| news.due.is_some_and(|due| due <= now) && is_free(news))
            .collect();
        ready.sort_by_key(|news| news.due);
        let taken = ready.into_iter().take(most).map(|news| {
            news.taken_until = Some(until);
            news.noted.clone()
        });
        Ok(taken.collect())
    }

    async fn done(&self, noted: &Noted, watermark: Option<&str>) -> Result<(), StoreError> {
        self.change(noted, |news| {
            news.noted.watermark = watermark.map(str::to_owned);
            news.noted.tries = 0;
            if news.noted.number == noted.number {
                news.due = None;
            }
        });
        Ok(())
    }

    async fn again(&self, noted: &Noted, due: DateTime<Utc>) -> Result<(), StoreError> {
        self.change(noted, |news| {
            news.noted.tries += 1;
            news.due = Some(due);
        });
        Ok(())
    }

    async fn give_back(&self, noted: &Noted) -> Result<(), StoreError> {
        self.change(noted, |_| {});
        Ok(())
    }

    async fn hurry(&self, thread: &ThreadId, due: DateTime<Utc>) -> Result<(), StoreError> {
        let mut kept = self.0.lock();
        let of_thread = kept
            .news
            .values_mut()
            .filter(|news| news.noted.thread == *thread);
        of_thread.for_each(|news| news.due = news.due.map(|_| due));
        Ok(())
    }

    async fn forget_thread(&self, thread: &ThreadId) -> Result<(), StoreError> {
        self.0
            .lock()
            .news
            .retain(|(_, of), _| of != thread.as_str());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    async fn fresh() -> crate::testkit::memories::MemoryStores {
        crate::testkit::memories::MemoryStores {
            memories: Arc::new(VolatileMemoryStore::default()),
            keep: Arc::new(()),
        }
    }

    crate::memory_store_suite!([#[tokio::test]] fresh);
}

//! Crons in memory: for tests, and for embedders that keep nothing.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use harness::runtime::memory::MemoryStores;
use harness::runtime::runs::store::{Made, RequestKey, RequestStore, StoreError};
use parking_lot::Mutex;
use uuid::Uuid;

use super::{Created, Cron, CronSearch, CronStore, Due};

/// Crons that go with the process. It knows no threads: every thread is taken to exist.
#[derive(Debug)]
pub struct MemoryCronStore {
    kept: Mutex<BTreeMap<Uuid, Kept>>,
    requests: Arc<dyn RequestStore>,
}

#[derive(Debug)]
struct Kept {
    cron: Cron,
    /// The firing under way, and since when.
    taken: Option<(DateTime<Utc>, DateTime<Utc>)>,
}

impl Default for MemoryCronStore {
    fn default() -> Self {
        Self::beside(Arc::new(MemoryStores::new()))
    }
}

impl MemoryCronStore {
    /// Crons beside the keys of the requests that make them.
    pub fn beside(requests: Arc<dyn RequestStore>) -> Self {
        Self {
            kept: Mutex::default(),
            requests,
        }
    }

    fn of(&self, user: &str) -> Vec<Cron> {
        self.kept
            .lock()
            .values()
            .filter(|kept| kept.cron.user_id == user)
            .map(|kept| kept.cron.clone())
            .collect()
    }
}

#[async_trait]
impl CronStore for MemoryCronStore {
    async fn create(&self, cron: Cron, request: Option<RequestKey>) -> Result<Created, StoreError> {
        if let Some(key) = request
            && let Some(known) = self
                .requests
                .keep(&key, Made::Cron(cron.cron_id), cron.created_at)
                .await?
        {
            return Ok(Created::Known(known));
        }
        self.kept
            .lock()
            .insert(cron.cron_id, Kept { cron, taken: None });
        Ok(Created::New)
    }

    async fn get(&self, user: &str, cron: Uuid) -> Result<Option<Cron>, StoreError> {
        Ok(self
            .kept
            .lock()
            .get(&cron)
            .map(|kept| kept.cron.clone())
            .filter(|cron| cron.user_id == user))
    }

    async fn search(&self, user: &str, search: &CronSearch) -> Result<Vec<Cron>, StoreError> {
        Ok(search.answer(self.of(user)))
    }

    async fn count(&self, user: &str, search: &CronSearch) -> Result<u64, StoreError> {
        Ok(self
            .of(user)
            .iter()
            .filter(|cron| search.matches(cron))
            .count() as u64)
    }

    async fn update(
        &self,
        cron: Cron,
        seen: DateTime<Utc>,
        reschedule: bool,
    ) -> Result<bool, StoreError> {
        let mut crons = self.kept.lock();
        let mine =
            |kept: &&mut Kept| kept.cron.user_id == cron.user_id && kept.cron.updated_at == seen;
        let Some(kept) = crons.get_mut(&cron.cron_id).filter(mine) else {
            return Ok(false);
        };
        let next_run_date = if reschedule {
            cron.next_run_date
        } else {
            kept.cron.next_run_date
        };
        kept.cron = Cron {
            next_run_date,
            ..cron
        };
        Ok(true)
    }

    async fn delete(&self, user: &str, cron: Uuid) -> Result<bool, StoreError> {
        let mut crons = self.kept.lock();
        let is_mine = crons
            .get(&cron)
            .is_some_and(|kept| kept.cron.user_id == user);
        Ok(is_mine && crons.remove(&cron).is_some())
    }

    async fn due(
        &self,
        at: DateTime<Utc>,
        lost: DateTime<Utc>,
        limit: usize,
    ) -> Result<Vec<Due>, StoreError> {
        let crons = self.kept.lock();
        let mut due: Vec<Due> = crons
            .values()
            .filter_map(|Kept { cron, taken }| {
                match (
                    cron.next_run_date
                        .filter(|next| cron.enabled && *next <= at),
                    taken,
                ) {
                    (Some(fires_for), _) => Some(Due {
                        cron: cron.clone(),
                        fires_for,
                        taken_at: None,
                    }),
                    (None, Some((fires_for, taken_at))) if *taken_at < lost => Some(Due {
                        cron: cron.clone(),
                        fires_for: *fires_for,
                        taken_at: Some(*taken_at),
                    }),
                    _ => None,
                }
            })
            .collect();
        due.sort_by_key(|due| (due.fires_for, due.cron.cron_id));
        due.truncate(limit);
        Ok(due)
    }

    async fn take(
        &self,
        due: &Due,
        next: Option<DateTime<Utc>>,
        at: DateTime<Utc>,
    ) -> Result<bool, StoreError> {
        let mut crons = self.kept.lock();
        let Some(kept) = crons.get_mut(&due.cron.cron_id) else {
            return Ok(false);
        };
        let ours = match due.taken_at {
            None => kept.cron.enabled && kept.cron.next_run_date == Some(due.fires_for),
            Some(taken_at) => kept.taken == Some((due.fires_for, taken_at)),
        };
        if ours {
            kept.taken = Some((due.fires_for, at));
            if due.taken_at.is_none() {
                kept.cron.next_run_date = next;
            }
        }
        Ok(ours)
    }

    async fn finish(&self, cron: Uuid, fires_for: DateTime<Utc>) -> Result<(), StoreError> {
        if let Some(kept) = self
            .kept
            .lock()
            .get_mut(&cron)
            .filter(|kept| kept.taken.is_some_and(|(taken, _)| taken == fires_for))
        {
            kept.taken = None;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::MemoryCronStore;
    use crate::testkit::crons::CronStores;

    async fn memory() -> CronStores {
        CronStores {
            crons: Arc::new(MemoryCronStore::default()),
            threads: None,
            keep: Arc::new(()),
        }
    }

    crate::cron_store_suite!([#[tokio::test]] memory);
}

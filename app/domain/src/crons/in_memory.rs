//! Crons in memory, for tests and embedders without persistence.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use deerflow_runtime::in_memory::InMemoryStores;
use deerflow_runtime::runs::store::{CreatedResource, RequestKey, RequestStore, StoreError};
use parking_lot::Mutex;
use uuid::Uuid;

use super::{Created, Cron, CronSearch, CronStore, DueFiring};

/// Crons in memory. It knows neither threads nor accounts: every thread exists, and no
/// account is disabled.
#[derive(Debug)]
pub struct InMemoryCronStore {
    stored: Mutex<BTreeMap<Uuid, StoredCron>>,
    requests: Arc<dyn RequestStore>,
}

#[derive(Debug)]
struct StoredCron {
    cron: Cron,
    /// Scheduled time of the claimed firing, and when it was claimed.
    claim: Option<(DateTime<Utc>, DateTime<Utc>)>,
}

impl Default for InMemoryCronStore {
    fn default() -> Self {
        Self::with_requests(Arc::new(InMemoryStores::new()))
    }
}

impl InMemoryCronStore {
    /// Creates a store that records idempotency keys in `requests`.
    pub fn with_requests(requests: Arc<dyn RequestStore>) -> Self {
        Self {
            stored: Mutex::default(),
            requests,
        }
    }

    fn of(&self, user: &str) -> Vec<Cron> {
        self.stored
            .lock()
            .values()
            .filter(|stored| stored.cron.user_id == user)
            .map(|stored| stored.cron.clone())
            .collect()
    }
}

#[async_trait]
impl CronStore for InMemoryCronStore {
    async fn create(&self, cron: Cron, request: Option<RequestKey>) -> Result<Created, StoreError> {
        if let Some(key) = request
            && let Some(known) = self
                .requests
                .keep(&key, CreatedResource::Cron(cron.cron_id), cron.created_at)
                .await?
        {
            return Ok(Created::Known(known));
        }
        self.stored
            .lock()
            .insert(cron.cron_id, StoredCron { cron, claim: None });
        Ok(Created::New)
    }

    async fn get(&self, user: &str, cron: Uuid) -> Result<Option<Cron>, StoreError> {
        Ok(self
            .stored
            .lock()
            .get(&cron)
            .map(|stored| stored.cron.clone())
            .filter(|cron| cron.user_id == user))
    }

    async fn search(&self, user: &str, search: &CronSearch) -> Result<Vec<Cron>, StoreError> {
        Ok(search.apply(self.of(user)))
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
        let mut crons = self.stored.lock();
        let is_target = |stored: &&mut StoredCron| {
            stored.cron.user_id == cron.user_id && stored.cron.updated_at == seen
        };
        let Some(stored) = crons.get_mut(&cron.cron_id).filter(is_target) else {
            return Ok(false);
        };
        let next_run_date = if reschedule {
            cron.next_run_date
        } else {
            stored.cron.next_run_date
        };
        stored.cron = Cron {
            next_run_date,
            ..cron
        };
        Ok(true)
    }

    async fn delete(&self, user: &str, cron: Uuid) -> Result<bool, StoreError> {
        let mut crons = self.stored.lock();
        let is_mine = crons
            .get(&cron)
            .is_some_and(|stored| stored.cron.user_id == user);
        Ok(is_mine && crons.remove(&cron).is_some())
    }

    async fn due(
        &self,
        at: DateTime<Utc>,
        claimed_before: DateTime<Utc>,
        limit: usize,
    ) -> Result<Vec<DueFiring>, StoreError> {
        let crons = self.stored.lock();
        let mut due: Vec<(&StoredCron, DueFiring)> = crons
            .values()
            .filter_map(|stored| {
                let StoredCron { cron, claim } = stored;
                let next = cron
                    .next_run_date
                    .filter(|next| cron.enabled && *next <= at);
                let (fires_for, claimed_at) = match (next, claim) {
                    (Some(fires_for), _) => (fires_for, None),
                    (None, Some((fires_for, claimed_at))) if *claimed_at < claimed_before => {
                        (*fires_for, Some(*claimed_at))
                    }
                    _ => return None,
                };
                let firing = DueFiring {
                    cron: cron.clone(),
                    fires_for,
                    claimed_at,
                };
                Some((stored, firing))
            })
            .collect();
        due.sort_by_key(|(StoredCron { cron, claim }, _)| {
            (claim.map(|(_, at)| at), cron.next_run_date, cron.cron_id)
        });
        due.truncate(limit);
        let mut due: Vec<DueFiring> = due.into_iter().map(|(_, firing)| firing).collect();
        due.sort_by_key(|due| (due.fires_for, due.cron.cron_id));
        Ok(due)
    }

    async fn claim(
        &self,
        due: &DueFiring,
        next: Option<DateTime<Utc>>,
        at: DateTime<Utc>,
    ) -> Result<bool, StoreError> {
        let mut crons = self.stored.lock();
        let Some(stored) = crons.get_mut(&due.cron.cron_id) else {
            return Ok(false);
        };
        let is_claimable = match due.claimed_at {
            None => stored.cron.enabled && stored.cron.next_run_date == Some(due.fires_for),
            Some(claimed_at) => stored.claim == Some((due.fires_for, claimed_at)),
        };
        if is_claimable {
            stored.claim = Some((due.fires_for, at));
            if due.claimed_at.is_none() {
                stored.cron.next_run_date = next;
            }
        }
        Ok(is_claimable)
    }

    async fn finish(&self, cron: Uuid, fires_for: DateTime<Utc>) -> Result<(), StoreError> {
        if let Some(stored) = self
            .stored
            .lock()
            .get_mut(&cron)
            .filter(|stored| stored.claim.is_some_and(|(claim, _)| claim == fires_for))
        {
            stored.claim = None;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::InMemoryCronStore;
    use crate::testkit::crons::CronStores;

    async fn memory() -> CronStores {
        CronStores {
            crons: Arc::new(InMemoryCronStore::default()),
            threads: None,
            accounts: None,
            keep: Arc::new(()),
        }
    }

    crate::cron_store_suite!([#[tokio::test]] memory);
}

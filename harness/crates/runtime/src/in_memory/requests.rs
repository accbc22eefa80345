//! Idempotency keys of requests.

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::tables::{InMemoryStores, RequestRow, Scope, Tables};
use crate::definition::{RequestKey, StoreError};
use crate::ports::{CreatedResource, KeyState, RequestStore};
use deerflow_core::ids::RunId;

fn scope(key: &RequestKey) -> Scope {
    (
        key.user_id.clone(),
        key.route.clone(),
        key.name.clone(),
        key.part,
    )
}

impl Tables {
    /// Returns the state of a key.
    pub(super) fn key_state(&self, key: &RequestKey, at: DateTime<Utc>) -> Option<KeyState> {
        let first = self
            .requests
            .get(&scope(key))
            .filter(|first| first.key.expires_at > at)?;
        Some(if first.key.digest == key.digest {
            KeyState::Again(first.resource.clone())
        } else {
            KeyState::Other
        })
    }

    /// Records the resource that a request with a new key created.
    pub(super) fn record_key(&mut self, key: RequestKey, resource: CreatedResource) {
        self.requests.insert(
            scope(&key),
            RequestRow {
                key,
                resource,
                values: None,
            },
        );
    }

    /// Returns the request that created a run.
    pub(super) fn request_of(&mut self, run: &RunId) -> Option<&mut RequestRow> {
        self.requests
            .values_mut()
            .find(|request| matches!(&request.resource, CreatedResource::Run(_, created) if created == run))
    }

    /// Removes the final state of a run from its request.
    pub(super) fn forget_values(&mut self, run: &RunId) {
        if let Some(request) = self.request_of(run) {
            request.values = None;
        }
    }
}

#[async_trait]
impl RequestStore for InMemoryStores {
    async fn known(
        &self,
        key: &RequestKey,
        at: DateTime<Utc>,
    ) -> Result<Option<KeyState>, StoreError> {
        Ok(self.0.lock().key_state(key, at))
    }

    async fn keep(
        &self,
        key: &RequestKey,
        resource: CreatedResource,
        at: DateTime<Utc>,
    ) -> Result<Option<KeyState>, StoreError> {
        let mut tables = self.0.lock();
        let state = tables.key_state(key, at);
        if state.is_none() {
            tables.record_key(key.clone(), resource);
        }
        Ok(state)
    }

    async fn forget(&self, key: &RequestKey) -> Result<(), StoreError> {
        self.0.lock().requests.remove(&scope(key));
        Ok(())
    }

    async fn sweep(&self, at: DateTime<Utc>, most: usize) -> Result<usize, StoreError> {
        let mut tables = self.0.lock();
        let expired: Vec<Scope> = tables
            .requests
            .iter()
            .filter(|(_, request)| request.key.expires_at <= at)
            .map(|(scope, _)| scope.clone())
            .take(most)
            .collect();
        for scope in &expired {
            tables.requests.remove(scope);
        }
        Ok(expired.len())
    }
}

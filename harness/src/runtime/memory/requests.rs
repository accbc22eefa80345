//! What requests made.

use async_trait::async_trait;
use bytes::Bytes;
use chrono::{DateTime, Utc};

use super::{MemoryStores, Tables};
use crate::ids::RunId;
use crate::runtime::runs::store::{Known, Made, RequestKey, RequestStore, StoreError};

/// What a request made, and what its run left for it.
#[derive(Debug)]
pub(super) struct Request {
    key: RequestKey,
    made: Made,
    pub(super) values: Option<Bytes>,
}

/// User, route, name and part of a key.
pub(super) type Scope = (String, String, String, u32);

fn scope(key: &RequestKey) -> Scope {
    (
        key.user_id.clone(),
        key.route.clone(),
        key.name.clone(),
        key.part,
    )
}

impl Tables {
    /// What is known of a key.
    pub(super) fn known(&self, key: &RequestKey, at: DateTime<Utc>) -> Option<Known> {
        let first = self
            .requests
            .get(&scope(key))
            .filter(|first| first.key.expires_at > at)?;
        Some(if first.key.digest == key.digest {
            Known::Again(first.made.clone())
        } else {
            Known::Other
        })
    }

    /// Keeps what a request made whose key is not known.
    pub(super) fn keep(&mut self, key: RequestKey, made: Made) {
        self.requests.insert(
            scope(&key),
            Request {
                key,
                made,
                values: None,
            },
        );
    }

    /// The request that made a run.
    pub(super) fn request_of(&mut self, run: &RunId) -> Option<&mut Request> {
        self.requests
            .values_mut()
            .find(|request| matches!(&request.made, Made::Run(_, made) if made == run))
    }

    /// Forgets what a run left for its request.
    pub(super) fn forget_values(&mut self, run: &RunId) {
        if let Some(request) = self.request_of(run) {
            request.values = None;
        }
    }
}

#[async_trait]
impl RequestStore for MemoryStores {
    async fn known(
        &self,
        key: &RequestKey,
        at: DateTime<Utc>,
    ) -> Result<Option<Known>, StoreError> {
        Ok(self.0.lock().known(key, at))
    }

    async fn keep(
        &self,
        key: &RequestKey,
        made: Made,
        at: DateTime<Utc>,
    ) -> Result<Option<Known>, StoreError> {
        let mut tables = self.0.lock();
        let known = tables.known(key, at);
        if known.is_none() {
            tables.keep(key.clone(), made);
        }
        Ok(known)
    }

    async fn forget(&self, key: &RequestKey) -> Result<(), StoreError> {
        self.0.lock().requests.remove(&scope(key));
        Ok(())
    }

    async fn sweep(&self, at: DateTime<Utc>, most: usize) -> Result<usize, StoreError> {
        let mut tables = self.0.lock();
        let over: Vec<Scope> = tables
            .requests
            .iter()
            .filter(|(_, request)| request.key.expires_at <= at)
            .map(|(scope, _)| scope.clone())
            .take(most)
            .collect();
        for scope in &over {
            tables.requests.remove(scope);
        }
        Ok(over.len())
    }
}

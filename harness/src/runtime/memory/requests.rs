//! What requests made.

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::{MemoryStores, Tables};
use crate::runtime::runs::store::{Known, Made, RequestKey, RequestStore, StoreError};

/// User, route, name and part of a key.
pub(super) type Scope = (String, String, String, u32);

fn scope(key: &RequestKey) -> Scope {
    (key.user_id.clone(), key.route.clone(), key.name.clone(), key.part)
}

impl Tables {
    /// What is known of a key.
    pub(super) fn known(&self, key: &RequestKey, at: DateTime<Utc>) -> Option<Known> {
        let (first, made) = self.requests.get(&scope(key)).filter(|(first, _)| first.expires_at > at)?;
        Some(if first.digest == key.digest { Known::Again(made.clone()) } else { Known::Other })
    }

    /// Keeps what a request made whose key is not known.
    pub(super) fn keep(&mut self, key: RequestKey, made: Made) {
        self.requests.insert(scope(&key), (key, made));
    }
}

#[async_trait]
impl RequestStore for MemoryStores {
    async fn known(&self, key: &RequestKey, at: DateTime<Utc>) -> Result<Option<Known>, StoreError> {
        Ok(self.0.lock().known(key, at))
    }

    async fn keep(&self, key: &RequestKey, made: Made, at: DateTime<Utc>) -> Result<Option<Known>, StoreError> {
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
        let over: Vec<Scope> =
            tables.requests.iter().filter(|(_, (key, _))| key.expires_at <= at).map(|(scope, _)| scope.clone()).take(most).collect();
        for scope in &over {
            tables.requests.remove(scope);
        }
        Ok(over.len())
    }
}

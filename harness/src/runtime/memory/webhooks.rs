//! The outbox of webhooks.

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::MemoryStores;
use crate::ids::RunId;
use crate::runtime::runs::store::{StoreError, WebhookDelivery, WebhookOutbox};

#[async_trait]
impl WebhookOutbox for MemoryStores {
    async fn due(&self, now: DateTime<Utc>, leased_until: DateTime<Utc>, limit: usize) -> Result<Vec<WebhookDelivery>, StoreError> {
        let mut tables = self.0.lock();
        let mut calls: Vec<_> = tables.outbox.values_mut().filter(|call| call.due.is_some_and(|due| due <= now)).collect();
        calls.sort_by_key(|call| call.due);
        calls.truncate(limit);
        Ok(calls
            .into_iter()
            .map(|call| {
                call.due = Some(leased_until);
                call.delivery.clone()
            })
            .collect())
    }

    async fn delivered(&self, run: &RunId) -> Result<(), StoreError> {
        self.0.lock().outbox.remove(run);
        Ok(())
    }

    async fn failed(&self, run: &RunId, _error: &str, again_at: Option<DateTime<Utc>>) -> Result<(), StoreError> {
        if let Some(call) = self.0.lock().outbox.get_mut(run) {
            call.delivery.tries += 1;
            call.due = again_at;
        }
        Ok(())
    }
}

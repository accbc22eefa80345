//! The webhook outbox.

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::tables::{InMemoryStores, OutboxEntry};
use crate::definition::StoreError;
use crate::ports::{WebhookDelivery, WebhookOutbox, WebhookOutboxEntry};
use deerflow_core::ids::RunId;

#[async_trait]
impl WebhookOutbox for InMemoryStores {
    async fn due(
        &self,
        now: DateTime<Utc>,
        leased_until: DateTime<Utc>,
        limit: usize,
    ) -> Result<Vec<WebhookDelivery>, StoreError> {
        let mut tables = self.0.lock();
        let mut calls: Vec<_> = tables
            .outbox
            .values_mut()
            .filter(|call| call.due_at.is_some_and(|due_at| due_at <= now))
            .collect();
        calls.sort_by_key(|call| call.due_at);
        calls.truncate(limit);
        Ok(calls
            .into_iter()
            .map(|call| {
                call.due_at = Some(leased_until);
                call.delivery.clone()
            })
            .collect())
    }

    async fn delivered(&self, run: &RunId) -> Result<(), StoreError> {
        self.0.lock().outbox.remove(run);
        Ok(())
    }

    async fn failed(
        &self,
        runs: &[RunId],
        error: &str,
        again_at: Option<DateTime<Utc>>,
        at: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        let mut tables = self.0.lock();
        for run in runs {
            let Some(call) = tables.outbox.get_mut(run) else {
                continue;
            };
            call.delivery.tries += 1;
            call.due_at = again_at;
            call.died = again_at.is_none().then_some(at);
            call.last_error = Some(error.to_owned());
        }
        Ok(())
    }

    async fn put_back(&self, runs: &[RunId], at: DateTime<Utc>) -> Result<(), StoreError> {
        let mut tables = self.0.lock();
        for run in runs {
            if let Some(call) = tables
                .outbox
                .get_mut(run)
                .filter(|call| call.due_at.is_some())
            {
                call.due_at = Some(at);
            }
        }
        Ok(())
    }

    async fn letters(
        &self,
        only_dead: bool,
        limit: usize,
    ) -> Result<Vec<WebhookOutboxEntry>, StoreError> {
        let tables = self.0.lock();
        let mut calls: Vec<_> = tables
            .outbox
            .values()
            .filter(|call| !only_dead || call.due_at.is_none())
            .collect();
        calls.sort_by_key(|call| {
            std::cmp::Reverse((call.delivery.ended_at, call.delivery.run.run_id.clone()))
        });
        let to_entry = |call: &OutboxEntry| WebhookOutboxEntry {
            run_id: call.delivery.run.run_id.clone(),
            url: call.delivery.call.url.clone(),
            ended_at: call.delivery.ended_at,
            tries: call.delivery.tries,
            due_at: call.due_at,
            died_at: call.died,
            last_error: call.last_error.clone(),
        };
        Ok(calls.into_iter().take(limit).map(to_entry).collect())
    }

    async fn resend(&self, run: &RunId, at: DateTime<Utc>) -> Result<bool, StoreError> {
        let mut tables = self.0.lock();
        let Some(call) = tables.outbox.get_mut(run) else {
            return Ok(false);
        };
        (call.delivery.tries, call.due_at, call.died) = (0, Some(at), None);
        Ok(true)
    }

    async fn sweep(&self, before: DateTime<Utc>, most: usize) -> Result<usize, StoreError> {
        let mut tables = self.0.lock();
        let is_expired = |call: &OutboxEntry| call.died.is_some_and(|died| died <= before);
        let expired: Vec<RunId> = tables
            .outbox
            .iter()
            .filter(|(_, call)| is_expired(call))
            .map(|(run, _)| run.clone())
            .take(most)
            .collect();
        for run in &expired {
            tables.outbox.remove(run);
        }
        Ok(expired.len())
    }
}

//! Audit log in memory.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use deerflow_runtime::runs::store::StoreError;

use super::InMemoryAccounts;
use crate::accounts::audit::{AuditEntry, AuditLog, AuditQuery, NewAuditEntry};

#[async_trait]
impl AuditLog for InMemoryAccounts {
    async fn append(&self, entry: NewAuditEntry) -> Result<(), StoreError> {
        self.0.lock().append(entry);
        Ok(())
    }

    async fn list(&self, query: &AuditQuery) -> Result<Vec<AuditEntry>, StoreError> {
        let tables = self.0.lock();
        let concerns = |AuditEntry { seq, entry }: &AuditEntry| {
            let by_user =
                query.user.is_none() || entry.actor == query.user || entry.object == query.user;
            by_user
                && query.action.is_none_or(|action| entry.action == action)
                && query.before.is_none_or(|before| *seq < before)
        };
        Ok(tables
            .audit
            .iter()
            .rev()
            .filter(|entry| concerns(entry))
            .take(usize::try_from(query.limit).unwrap_or(usize::MAX))
            .cloned()
            .collect())
    }

    async fn purge(&self, before: DateTime<Utc>) -> Result<u64, StoreError> {
        let mut tables = self.0.lock();
        let all = tables.audit.len();
        tables.audit.retain(|entry| entry.entry.at >= before);
        Ok((all - tables.audit.len()) as u64)
    }
}

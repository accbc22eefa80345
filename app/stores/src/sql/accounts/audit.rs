//! Audit log over SQL.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use deerflow_domain::accounts::{AuditEntry, AuditLog, AuditQuery, NewAuditEntry};
use deerflow_runtime::runs::store::StoreError;
use sea_orm::{
    ColumnTrait, Condition, DatabaseTransaction, EntityTrait, QueryFilter, QueryOrder, QuerySelect,
};

use super::SqlAccountStore;
use super::audit_row::{self, readable};
use crate::db::entity::{audit, micros, plain};
use crate::db::error::read;
use crate::db::tx::TxFuture;

#[async_trait]
impl AuditLog for SqlAccountStore {
    async fn append(&self, entry: NewAuditEntry) -> Result<(), StoreError> {
        self.db.writes().run(entry, append).await
    }

    async fn list(&self, query: &AuditQuery) -> Result<Vec<AuditEntry>, StoreError> {
        let concerns = query.user.as_deref().map(|user| {
            Condition::any()
                .add(audit::Column::Actor.eq(plain(user)))
                .add(audit::Column::Object.eq(plain(user)))
        });
        let action = query
            .action
            .map(|action| audit::Column::Action.eq(action.as_str()));
        let before = query.before.map(|before| audit::Column::Seq.lt(before));
        let selection = Condition::all()
            .add_option(concerns)
            .add_option(action)
            .add_option(before);
        let rows = audit::Entity::find()
            .filter(selection)
            .order_by_desc(audit::Column::Seq)
            .limit(query.limit.min(i64::MAX as u64))
            .all(self.db.reads())
            .await;
        Ok(read(rows)?.into_iter().filter_map(readable).collect())
    }

    async fn purge(&self, before: DateTime<Utc>) -> Result<u64, StoreError> {
        self.db.writes().release(micros(before), purge).await
    }
}

fn append<'a>(tx: &'a DatabaseTransaction, entry: &'a NewAuditEntry) -> TxFuture<'a, ()> {
    Box::pin(async move { Ok(audit_row::append(tx, entry).await?) })
}

fn purge<'a>(tx: &'a DatabaseTransaction, before: &'a i64) -> TxFuture<'a, u64> {
    Box::pin(async move {
        let deleted = audit::Entity::delete_many()
            .filter(audit::Column::RecordedAt.lt(*before))
            .exec(tx)
            .await?;
        Ok(deleted.rows_affected)
    })
}

//! Encrypted credentials of bots over SQL.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use deerflow_domain::channels::{ChannelStoreError, CredentialStore, StoredCredentials};
use sea_orm::{ConnectionTrait, DatabaseTransaction, DbErr, QueryResult, Statement, Value};

use super::SqlChannelStore;
use crate::db::entity::{micros, moment, plain};
use crate::db::error::read;
use crate::db::statement_batch::StatementBatch;
use crate::db::tx::TxFuture;

const ALL: &str = "\
    SELECT provider, sealed, version, updated_at FROM channel_credentials WHERE sealed IS NOT NULL ORDER BY provider";

const PUT: &str = "\
    INSERT INTO channel_credentials (provider, sealed, version, updated_at) VALUES (?, ?, 1, ?) \
    ON CONFLICT (provider) DO UPDATE SET sealed = excluded.sealed, version = channel_credentials.version + 1, \
        updated_at = excluded.updated_at";

/// The row stays, so that a later entry has a higher version.
const DELETE: &str = "\
    UPDATE channel_credentials SET sealed = NULL WHERE provider = ? AND sealed IS NOT NULL RETURNING 'deleted'";

#[async_trait]
impl CredentialStore for SqlChannelStore {
    async fn all(&self) -> Result<Vec<StoredCredentials>, ChannelStoreError> {
        let reads = self.db.reads();
        let statement = Statement::from_string(reads.get_database_backend(), ALL);
        let rows = read(reads.query_all_raw(statement).await)?;
        Ok(read(rows.iter().map(record).collect())?)
    }

    async fn put(
        &self,
        provider: &str,
        sealed: &str,
        at: DateTime<Utc>,
    ) -> Result<(), ChannelStoreError> {
        let values = vec![
            plain(provider).into(),
            plain(sealed).into(),
            micros(at).into(),
        ];
        self.db.writes().create((PUT, values), change).await?;
        Ok(())
    }

    async fn delete(&self, provider: &str) -> Result<bool, ChannelStoreError> {
        let values = vec![plain(provider).into()];
        let changed = self.db.writes().release((DELETE, values), change).await?;
        Ok(changed > 0)
    }
}

/// Runs one statement; returns the number of its rows.
fn change<'a>(
    tx: &'a DatabaseTransaction,
    (sql, values): &'a (&'static str, Vec<Value>),
) -> TxFuture<'a, usize, ChannelStoreError> {
    Box::pin(async move {
        let mut statements = StatementBatch::new(tx);
        statements.add_values(sql, values.clone());
        Ok(statements.run(tx).await?.len())
    })
}

fn record(row: &QueryResult) -> Result<StoredCredentials, DbErr> {
    Ok(StoredCredentials {
        provider: row.try_get_by_index(0)?,
        sealed: row.try_get_by_index(1)?,
        version: row.try_get_by_index(2)?,
        updated_at: moment(row.try_get_by_index(3)?),
    })
}

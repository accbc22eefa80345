//! Leases of accounts over SQL.

use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use deerflow_domain::channels::{
    Account, AccountClaim, AccountLeases, ChannelStoreError, LeaseRecord, lease_end,
};
use sea_orm::{ConnectionTrait, DatabaseTransaction, DbErr, QueryResult, Statement, Value};

use super::SqlChannelStore;
use super::fence::account_values;
use crate::db::entity::{micros, moment, plain};
use crate::db::error::read;
use crate::db::statement_batch::{StatementBatch, tagged};
use crate::db::tx::TxFuture;

/// An acquisition takes effect if the account is free, expired, or held by the same node. A lease that
/// ends much later than any lease acquired now is from a time when the clock was wrong.
const ACQUIRE: &str = "\
    INSERT INTO channel_leases (provider, account, epoch, node, since, expires_at) VALUES (?, ?, 1, ?, ?, ?) \
    ON CONFLICT (provider, account) DO UPDATE SET epoch = channel_leases.epoch + 1, node = excluded.node, \
        since = excluded.since, expires_at = excluded.expires_at \
    WHERE channel_leases.node = excluded.node OR channel_leases.expires_at <= excluded.since \
        OR channel_leases.expires_at > excluded.expires_at + 3600000000 \
    RETURNING 'lease', epoch";

const RENEW: &str = "\
    UPDATE channel_leases SET expires_at = ? WHERE provider = ? AND account = ? AND epoch = ? RETURNING 'lease', epoch";

const RELEASE: &str = "\
    UPDATE channel_leases SET expires_at = ? WHERE provider = ? AND account = ? AND epoch = ? AND expires_at > ? \
    RETURNING 'lease', epoch";

const LEASE: &str = "\
    SELECT epoch, node, since, expires_at FROM channel_leases WHERE provider = $1 AND account = $2";

const ALL: &str = "\
    SELECT epoch, node, since, expires_at, provider, account FROM channel_leases ORDER BY provider, account";

const REVOKE: &str = "\
    UPDATE channel_leases SET epoch = epoch + 1, node = '', expires_at = CASE WHEN expires_at < ? THEN expires_at ELSE ? END \
    WHERE provider = ? AND account = ? RETURNING 'lease', epoch";

/// Statement on the lease of one account, with its values.
struct LeaseWrite {
    sql: &'static str,
    values: Vec<Value>,
}

impl SqlChannelStore {
    /// Returns the epoch of the lease that the statement changed.
    async fn write_lease(
        &self,
        sql: &'static str,
        values: Vec<Value>,
    ) -> Result<Option<i64>, ChannelStoreError> {
        self.db
            .lease_writes()
            .release(LeaseWrite { sql, values }, write_lease)
            .await
    }
}

fn write_lease<'a>(
    tx: &'a DatabaseTransaction,
    write: &'a LeaseWrite,
) -> TxFuture<'a, Option<i64>, ChannelStoreError> {
    Box::pin(async move {
        let mut statements = StatementBatch::new(tx);
        statements.add_values(write.sql, write.values.clone());
        let rows = statements.run(tx).await?;
        let epoch = tagged(&rows, "lease").map(|row| row.try_get_by_index(1));
        Ok(epoch.transpose()?)
    })
}

#[async_trait]
impl AccountLeases for SqlChannelStore {
    async fn acquire(
        &self,
        account: &Account,
        node: &str,
        duration: Duration,
        at: DateTime<Utc>,
    ) -> Result<Option<AccountClaim>, ChannelStoreError> {
        let [provider, id] = account_values(account);
        let end = micros(lease_end(at, duration)).into();
        let values = vec![provider, id, plain(node).into(), micros(at).into(), end];
        let epoch = self.write_lease(ACQUIRE, values).await?;
        Ok(epoch.map(|epoch| AccountClaim {
            account: account.clone(),
            epoch,
            node: node.to_owned(),
        }))
    }

    async fn renew(
        &self,
        claim: &AccountClaim,
        duration: Duration,
        at: DateTime<Utc>,
    ) -> Result<(), ChannelStoreError> {
        let [provider, id] = account_values(&claim.account);
        let end = micros(lease_end(at, duration)).into();
        let values = vec![end, provider, id, claim.epoch.into()];
        let renewed = self.write_lease(RENEW, values).await?;
        renewed.map(drop).ok_or(ChannelStoreError::Fenced)
    }

    async fn release(
        &self,
        claim: &AccountClaim,
        at: DateTime<Utc>,
    ) -> Result<(), ChannelStoreError> {
        let [provider, id] = account_values(&claim.account);
        let at = micros(at);
        let values = vec![at.into(), provider, id, claim.epoch.into(), at.into()];
        self.write_lease(RELEASE, values).await.map(drop)
    }

    async fn lease(&self, account: &Account) -> Result<Option<LeaseRecord>, ChannelStoreError> {
        let connection = self.db.lease_reads();
        let statement = Statement::from_sql_and_values(
            connection.get_database_backend(),
            LEASE,
            account_values(account),
        );
        let row = read(connection.query_one_raw(statement).await)?;
        let lease = row.map(|row| record(account.clone(), &row)).transpose();
        Ok(read(lease)?)
    }

    async fn all(&self) -> Result<Vec<LeaseRecord>, ChannelStoreError> {
        let connection = self.db.lease_reads();
        let statement = Statement::from_string(connection.get_database_backend(), ALL);
        let rows = read(connection.query_all_raw(statement).await)?;
        Ok(read(rows.iter().map(record_with_account).collect())?)
    }

    async fn revoke(
        &self,
        account: &Account,
        free_at: DateTime<Utc>,
    ) -> Result<bool, ChannelStoreError> {
        let [provider, id] = account_values(account);
        let free_at = micros(free_at);
        let values = vec![free_at.into(), free_at.into(), provider, id];
        Ok(self.write_lease(REVOKE, values).await?.is_some())
    }
}

fn record_with_account(row: &QueryResult) -> Result<LeaseRecord, DbErr> {
    let (provider, id): (String, String) = (row.try_get_by_index(4)?, row.try_get_by_index(5)?);
    record(Account::new(provider, id), row)
}

fn record(account: Account, row: &QueryResult) -> Result<LeaseRecord, DbErr> {
    Ok(LeaseRecord {
        claim: AccountClaim {
            account,
            epoch: row.try_get_by_index(0)?,
            node: row.try_get_by_index(1)?,
        },
        since: moment(row.try_get_by_index(2)?),
        expires_at: moment(row.try_get_by_index(3)?),
    })
}

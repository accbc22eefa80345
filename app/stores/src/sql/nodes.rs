//! Node leases, by the database's clock.

use std::time::Duration;

use async_trait::async_trait;
use deerflow_core::ids::{NodeId, RunId, ThreadId};
use deerflow_runtime::runs::store::{
    Lease, NodeRecord, NodeStore, OwnedRun, StoreError, StoreLockStatus,
};
use sea_orm::{
    ColumnTrait, ConnectionTrait, DatabaseTransaction, DbBackend, DbErr, EntityTrait, QueryFilter,
    QueryOrder, QueryResult, QuerySelect, Statement, Value,
};

use crate::db::clock::now_of;
use crate::db::connect::Database;
use crate::db::entity::{moment, run};
use crate::db::error::read;
use crate::db::json::from_word;
use crate::db::statement_batch::StatementBatch;
use crate::db::tx::TxFuture;

/// Lease end of a process that uses the database exclusively.
const NEVER_EXPIRES: i64 = i64::MAX;

/// Node store over SQL.
#[derive(Debug, Clone)]
pub struct SqlNodeStore {
    db: Database,
    address: Option<String>,
}

impl SqlNodeStore {
    /// Creates a store over `db`.
    pub fn new(db: Database) -> Self {
        Self { db, address: None }
    }

    /// Sets the address at which other nodes reach this process.
    #[must_use]
    pub fn with_address(self, address: String) -> Self {
        Self {
            address: Some(address),
            ..self
        }
    }
}

/// Values of a registration or a renewal.
struct LeaseWrite {
    node: NodeId,
    address: Option<String>,
    ttl: Option<Duration>,
}

impl LeaseWrite {
    /// SQL expression for the end of the lease.
    fn expires_at_sql(&self, backend: DbBackend) -> String {
        match self.ttl {
            Some(ttl) => format!(
                "{} + {}",
                now_of(backend),
                i64::try_from(ttl.as_micros()).unwrap_or(NEVER_EXPIRES / 2)
            ),
            None => NEVER_EXPIRES.to_string(),
        }
    }
}

#[async_trait]
impl NodeStore for SqlNodeStore {
    async fn register(&self, node: &NodeId, ttl: Duration) -> Result<Lease, StoreError> {
        let exclusive = self.db.is_exclusive();
        let writing = LeaseWrite {
            node: node.clone(),
            address: self.address.clone(),
            ttl: (!exclusive).then_some(ttl),
        };
        self.db.lease_writes().release(writing, register).await?;
        Ok(if exclusive {
            Lease::Alone
        } else {
            Lease::Shared(ttl)
        })
    }

    async fn renew(&self, node: &NodeId, ttl: Duration) -> Result<bool, StoreError> {
        let exclusive = self.db.is_exclusive();
        self.db
            .lease_writes()
            .release(
                LeaseWrite {
                    node: node.clone(),
                    address: None,
                    ttl: (!exclusive).then_some(ttl),
                },
                renew,
            )
            .await
    }

    async fn leave(&self, node: &NodeId) -> Result<(), StoreError> {
        self.db.lease_writes().release(node.clone(), leave).await
    }

    async fn owned(&self, node: &NodeId) -> Result<Vec<OwnedRun>, StoreError> {
        let columns = [
            run::Column::RunId,
            run::Column::ThreadId,
            run::Column::Attempt,
            run::Column::CancelAction,
        ];
        let rows = run::Entity::find()
            .filter(run::is_owned())
            .filter(run::Column::Owner.eq(node.as_str()))
            .order_by_asc(run::Column::RunId);
        let rows = rows
            .select_only()
            .columns(columns)
            .into_tuple()
            .all(self.db.lease_reads())
            .await;
        Ok(read(rows)?.into_iter().filter_map(owned_run).collect())
    }

    async fn hold(&self) -> Result<StoreLockStatus, StoreError> {
        self.db.hold().await
    }

    async fn list(&self) -> Result<Vec<NodeRecord>, StoreError> {
        let backend = self.db.reads().get_database_backend();
        let now = now_of(backend);
        let sql = format!(
            "SELECT node_id, address, since, renewed_at, lease_until, lease_until - {now} AS micros_left, (SELECT COUNT(*) FROM runs \
                WHERE runs.owner = nodes.node_id AND runs.status IN ('starting', 'running')) AS owned \
            FROM nodes WHERE lease_until > {now} ORDER BY since, node_id"
        );
        let rows = read(
            self.db
                .reads()
                .query_all_raw(Statement::from_string(backend, sql))
                .await,
        )?;
        read(rows.iter().map(node_record).collect())
    }
}

/// Returns `None` for an unreadable row: this process then stops the run, as if another node owned
/// it.
fn owned_run(
    (run, thread, attempt, cancel): (String, String, i64, Option<String>),
) -> Option<OwnedRun> {
    let cancel = cancel.and_then(|word| {
        from_word(word)
            .inspect_err(|error| tracing::error!(run, error, "unknown cancel action"))
            .ok()
    });
    let (run_id, thread_id) = (RunId::parse(run).ok()?, ThreadId::parse(thread).ok()?);
    Some(OwnedRun {
        run_id,
        thread_id,
        attempt: u32::try_from(attempt).ok()?,
        cancel,
    })
}

fn node_record(row: &QueryResult) -> Result<NodeRecord, DbErr> {
    let lease_until: i64 = row.try_get("", "lease_until")?;
    let remaining: i64 = row.try_get("", "micros_left")?;
    let node: String = row.try_get("", "node_id")?;
    Ok(NodeRecord {
        node: NodeId::parse(node).map_err(|error| DbErr::Type(error.to_string()))?,
        address: row.try_get("", "address")?,
        renewed_at: moment(
            row.try_get::<Option<i64>>("", "renewed_at")?
                .unwrap_or_default(),
        ),
        since: moment(row.try_get("", "since")?),
        left: (lease_until != NEVER_EXPIRES)
            .then(|| Duration::from_micros(remaining.unsigned_abs())),
        runs: row.try_get::<i64>("", "owned")?.unsigned_abs(),
    })
}

fn register<'a>(tx: &'a DatabaseTransaction, new: &'a LeaseWrite) -> TxFuture<'a, ()> {
    Box::pin(async move {
        let backend = tx.get_database_backend();
        let now = now_of(backend);
        // With exclusive use, all other nodes are removed; otherwise the expired ones, and those
        // registered by a former exclusive user: its lock would exclude this process, so it has
        // ended.
        let delete_sql = match new.ttl {
            None => "DELETE FROM nodes".to_owned(),
            Some(_) => {
                format!(
                    "DELETE FROM nodes WHERE lease_until <= {now} OR lease_until = {NEVER_EXPIRES}"
                )
            }
        };
        tx.execute_unprepared(&delete_sql).await?;
        let sql = format!(
            "INSERT INTO nodes (node_id, address, since, renewed_at, lease_until) VALUES ($1, $2, {now}, {now}, {})",
            new.expires_at_sql(backend)
        );
        tx.execute_raw(Statement::from_sql_and_values(
            backend,
            sql,
            [Value::from(new.node.as_str()), new.address.clone().into()],
        ))
        .await?;
        Ok(())
    })
}

fn renew<'a>(tx: &'a DatabaseTransaction, of: &'a LeaseWrite) -> TxFuture<'a, bool> {
    Box::pin(async move {
        let backend = tx.get_database_backend();
        let sql = format!(
            "UPDATE nodes SET lease_until = {}, renewed_at = {now} WHERE node_id = $1 AND lease_until > {now}",
            of.expires_at_sql(backend),
            now = now_of(backend)
        );
        let renewed = tx
            .execute_raw(Statement::from_sql_and_values(
                backend,
                sql,
                [Value::from(of.node.as_str())],
            ))
            .await?;
        Ok(renewed.rows_affected() == 1)
    })
}

fn leave<'a>(tx: &'a DatabaseTransaction, node: &'a NodeId) -> TxFuture<'a, ()> {
    Box::pin(async move {
        let mut statements = StatementBatch::new(tx);
        statements.add(
            "DELETE FROM nodes WHERE node_id = ?",
            [node.as_str().into()],
        );
        statements.run(tx).await?;
        Ok(())
    })
}

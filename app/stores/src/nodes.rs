//! Which processes live, by the database's clock.

use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use harness::ids::{NodeId, RunId, ThreadId};
use harness::runtime::runs::store::{Hold, Lease, NodeRecord, NodeStore, OwnedRun, StoreError};
use sea_orm::{
    ColumnTrait, ConnectionTrait, DatabaseTransaction, DbBackend, DbErr, EntityTrait, QueryFilter,
    QueryOrder, QueryResult, QuerySelect, Statement, Value,
};

use crate::connect::Database;
use crate::entity::{moment, run};
use crate::error::read;
use crate::runs::{from_word, is_owned};
use crate::script::Script;
use crate::tx::TxError;

/// The lease of a process that has the database for itself.
const FOR_EVER: i64 = i64::MAX;

/// Who lives, over SQL.
#[derive(Debug, Clone)]
pub struct SqlNodeStore {
    db: Database,
    address: Option<String>,
}

impl SqlNodeStore {
    /// A view of `db`.
    pub fn new(db: Database) -> Self {
        Self { db, address: None }
    }

    /// The same for a process that can be found at `address`.
    #[must_use]
    pub fn found_at(self, address: String) -> Self {
        Self {
            address: Some(address),
            ..self
        }
    }
}

/// The database's time, in the unit of every moment. Within one process a lease never lapses, so there no time will do.
pub(crate) fn now_of(backend: DbBackend) -> &'static str {
    match backend {
        DbBackend::Postgres => "(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000)::BIGINT",
        _ => "CAST(unixepoch('subsec') * 1000000 AS INTEGER)",
    }
}

/// What a registration or a renewal writes.
struct Writing {
    node: NodeId,
    address: Option<String>,
    ttl: Option<Duration>,
}

impl Writing {
    /// Until when, as SQL.
    fn until(&self, backend: DbBackend) -> String {
        match self.ttl {
            Some(ttl) => format!(
                "{} + {}",
                now_of(backend),
                i64::try_from(ttl.as_micros()).unwrap_or(FOR_EVER / 2)
            ),
            None => FOR_EVER.to_string(),
        }
    }
}

#[async_trait]
impl NodeStore for SqlNodeStore {
    async fn register(&self, node: &NodeId, ttl: Duration) -> Result<Lease, StoreError> {
        let alone = self.db.is_alone();
        let writing = Writing {
            node: node.clone(),
            address: self.address.clone(),
            ttl: (!alone).then_some(ttl),
        };
        self.db.lease_writes().release(writing, register).await?;
        Ok(if alone {
            Lease::Alone
        } else {
            Lease::Shared(ttl)
        })
    }

    async fn renew(&self, node: &NodeId, ttl: Duration) -> Result<bool, StoreError> {
        let alone = self.db.is_alone();
        self.db
            .lease_writes()
            .release(
                Writing {
                    node: node.clone(),
                    address: None,
                    ttl: (!alone).then_some(ttl),
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
            .filter(is_owned())
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

    async fn hold(&self) -> Result<Hold, StoreError> {
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

/// What cannot be read is let go, as if somebody else had it.
fn owned_run(
    (run, thread, attempt, cancel): (String, String, i64, Option<String>),
) -> Option<OwnedRun> {
    let cancel = cancel.and_then(|word| {
        from_word(word)
            .inspect_err(|error| tracing::error!(run, error, "an unknown cancel"))
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
    let until: i64 = row.try_get("", "lease_until")?;
    let left: i64 = row.try_get("", "micros_left")?;
    let node: String = row.try_get("", "node_id")?;
    Ok(NodeRecord {
        node: NodeId::parse(node).map_err(|error| DbErr::Type(error.to_string()))?,
        address: row.try_get("", "address")?,
        renewed_at: moment(
            row.try_get::<Option<i64>>("", "renewed_at")?
                .unwrap_or_default(),
        ),
        since: moment(row.try_get("", "since")?),
        left: (until != FOR_EVER).then(|| Duration::from_micros(left.unsigned_abs())),
        runs: row.try_get::<i64>("", "owned")?.unsigned_abs(),
    })
}

fn register<'a>(
    tx: &'a DatabaseTransaction,
    new: &'a Writing,
) -> BoxFuture<'a, Result<(), TxError<StoreError>>> {
    Box::pin(async move {
        let backend = tx.get_database_backend();
        let now = now_of(backend);
        // Those that lapsed are of no use to anybody; with the database for ourselves, nobody else lives.
        // Who shares it holds a lock that whoever had it for itself would have held: that one is gone, too.
        let gone = match new.ttl {
            None => "DELETE FROM nodes".to_owned(),
            Some(_) => {
                format!("DELETE FROM nodes WHERE lease_until <= {now} OR lease_until = {FOR_EVER}")
            }
        };
        tx.execute_unprepared(&gone).await?;
        let sql = format!(
            "INSERT INTO nodes (node_id, address, since, renewed_at, lease_until) VALUES ($1, $2, {now}, {now}, {})",
            new.until(backend)
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

fn renew<'a>(
    tx: &'a DatabaseTransaction,
    of: &'a Writing,
) -> BoxFuture<'a, Result<bool, TxError<StoreError>>> {
    Box::pin(async move {
        let backend = tx.get_database_backend();
        let sql = format!(
            "UPDATE nodes SET lease_until = {}, renewed_at = {now} WHERE node_id = $1 AND lease_until > {now}",
            of.until(backend),
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

fn leave<'a>(
    tx: &'a DatabaseTransaction,
    node: &'a NodeId,
) -> BoxFuture<'a, Result<(), TxError<StoreError>>> {
    Box::pin(async move {
        let mut script = Script::new(tx);
        script.add(
            "DELETE FROM nodes WHERE node_id = ?",
            [node.as_str().into()],
        );
        script.run(tx).await?;
        Ok(())
    })
}

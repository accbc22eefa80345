//! Who does what one process does for all, and old rows of the journal.

use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use deerflow_domain::upkeep::UpkeepStore;
use futures_util::future::BoxFuture;
use harness::runtime::runs::store::StoreError;
use sea_orm::{ConnectionTrait, DatabaseTransaction, Statement, Value};

use crate::connect::Database;
use crate::entity::micros;
use crate::nodes::now_of;
use crate::script::Script;
use crate::tx::TxError;

/// Upkeep over SQL.
#[derive(Debug, Clone)]
pub struct SqlUpkeepStore {
    db: Database,
}

impl SqlUpkeepStore {
    /// A view of `db`.
    pub fn new(db: Database) -> Self {
        Self { db }
    }
}

type Done<'a, T> = BoxFuture<'a, Result<T, TxError<StoreError>>>;

#[async_trait]
impl UpkeepStore for SqlUpkeepStore {
    async fn take_duty(&self, duty: &str, holder: &str, ttl: Duration) -> Result<bool, StoreError> {
        let ttl = i64::try_from(ttl.as_micros()).unwrap_or(i64::MAX / 2);
        self.db.writes().run((duty.to_owned(), holder.to_owned(), ttl), take_duty).await
    }

    async fn forget_events(&self, before: DateTime<Utc>, most: usize) -> Result<usize, StoreError> {
        self.db.writes().run((micros(before), i64::try_from(most).unwrap_or(i64::MAX)), forget_events).await
    }
}

fn take_duty<'a>(tx: &'a DatabaseTransaction, (duty, holder, ttl): &'a (String, String, i64)) -> Done<'a, bool> {
    Box::pin(async move {
        let backend = tx.get_database_backend();
        let now = now_of(backend);
        let sql = format!(
            "INSERT INTO duties (name, holder, held_until) VALUES ($1, $2, {now} + {ttl}) \
             ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, held_until = excluded.held_until \
             WHERE duties.holder = excluded.holder OR duties.held_until <= {now}"
        );
        let values = [Value::from(duty.as_str()), Value::from(holder.as_str())];
        let taken = tx.execute_raw(Statement::from_sql_and_values(backend, sql, values)).await?;
        Ok(taken.rows_affected() == 1)
    })
}

/// The runs come from an index of their own, their rows from the journal's.
const FORGET_EVENTS: &str = "\
    DELETE FROM run_events WHERE (thread_id, seq) IN (\
        SELECT run_events.thread_id, run_events.seq FROM runs \
        JOIN run_events ON run_events.thread_id = runs.thread_id AND run_events.run_id = runs.run_id \
        WHERE runs.status NOT IN ('pending', 'starting', 'running') AND runs.updated_at <= ? LIMIT ?) \
    RETURNING 'gone'";

fn forget_events<'a>(tx: &'a DatabaseTransaction, (before, most): &'a (i64, i64)) -> Done<'a, usize> {
    Box::pin(async move {
        let mut script = Script::new(tx);
        script.add(FORGET_EVENTS, [(*before).into(), (*most).into()]);
        Ok(script.run(tx).await?.len())
    })
}

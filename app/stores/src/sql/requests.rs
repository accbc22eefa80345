//! Idempotency keys over SQL. A key is claimed before any other write of its transaction, so that
//! repeated requests wait for each other there and nowhere else.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use deerflow_core::ids::RunId;
use deerflow_runtime::runs::store::{
    CreatedResource, KeyState, RequestKey, RequestStore, StoreError,
};
use sea_orm::{
    ColumnTrait, ConnectionTrait, DatabaseTransaction, DbErr, EntityTrait, QueryFilter,
    QueryResult, QuerySelect, Statement,
};

use crate::db::connect::Database;
use crate::db::entity::{micros, plain, request_key};
use crate::db::error::read;
use crate::db::json::{from_json, json_text};
use crate::db::statement_batch::{StatementBatch, tagged};
use crate::db::tx::TxFuture;

/// Idempotency key store over SQL.
#[derive(Debug, Clone)]
pub struct SqlRequestStore {
    db: Database,
}

impl SqlRequestStore {
    /// Creates a store over `db`.
    pub fn new(db: Database) -> Self {
        Self { db }
    }
}

/// Claims a key if it is free or expired.
const CLAIM_KEY: &str = "\
    INSERT INTO request_keys (user_id, route, name, part, digest, made_json, expires_at, run_id) VALUES (?, ?, ?, ?, ?, ?, ?, ?) \
    ON CONFLICT (user_id, route, name, part) DO UPDATE SET digest = excluded.digest, made_json = excluded.made_json, \
        expires_at = excluded.expires_at, run_id = excluded.run_id, values_json = NULL \
    WHERE request_keys.expires_at <= ? RETURNING 'key'";

/// Adds the claim of a key to a batch; [`key_claimed`] reads its result.
pub(crate) fn claim_key(
    statements: &mut StatementBatch,
    key: &RequestKey,
    made: &CreatedResource,
    at: DateTime<Utc>,
) {
    let [user, route, name] = [&key.user_id, &key.route, &key.name].map(|text| plain(text).into());
    let (part, digest, made_json) = (
        i64::from(key.part).into(),
        plain(&key.digest).into(),
        json_text(made).into(),
    );
    let run = match made {
        CreatedResource::Run(_, run) => Some(run.as_str()),
        CreatedResource::Thread(_) | CreatedResource::Cron(_) | CreatedResource::Answer(_) => None,
    };
    statements.add(
        CLAIM_KEY,
        [
            user,
            route,
            name,
            part,
            digest,
            made_json,
            micros(key.expires_at).into(),
            run.into(),
            micros(at).into(),
        ],
    );
}

pub(crate) const STORE_VALUES: &str = "UPDATE request_keys SET values_json = ? WHERE run_id = ?";

/// Stores a run's last state with the idempotency key of its request. A repeated request returns it
/// if the thread was temporary.
pub(crate) fn store_values(statements: &mut StatementBatch, run: &RunId, values: &[u8]) {
    let values = String::from_utf8_lossy(values).into_owned();
    statements.add(STORE_VALUES, [values.into(), run.as_str().into()]);
}

/// Returns the stored last state of a run.
pub(crate) async fn stored_values(
    db: &impl ConnectionTrait,
    run: &RunId,
) -> Result<Option<String>, DbErr> {
    let sql = "SELECT values_json FROM request_keys WHERE run_id = $1 AND values_json IS NOT NULL";
    let row = db
        .query_one_raw(Statement::from_sql_and_values(
            db.get_database_backend(),
            sql,
            [run.as_str().into()],
        ))
        .await?;
    row.map(|row| row.try_get_by_index(0)).transpose()
}

/// Deletes the stored state of a run.
pub(crate) fn delete_values(statements: &mut StatementBatch, run: &str) {
    statements.add(
        "UPDATE request_keys SET values_json = NULL WHERE run_id = ? AND values_json IS NOT NULL",
        [run.into()],
    );
}

/// Deletes the stored states of a thread's runs. Active runs have none yet.
pub(crate) fn delete_thread_values(statements: &mut StatementBatch, thread: &str) {
    const DELETE_VALUES: &str = "\
        UPDATE request_keys SET values_json = NULL \
        WHERE run_id IN (SELECT run_id FROM runs WHERE thread_id = ?) AND values_json IS NOT NULL";
    statements.add(DELETE_VALUES, [thread.into()]);
}

/// Returns `true` if the batch claimed the key.
pub(crate) fn key_claimed(rows: &[QueryResult]) -> bool {
    tagged(rows, "key").is_some()
}

/// Returns the state of a key that could not be claimed.
pub(crate) async fn lookup_key(
    tx: &impl ConnectionTrait,
    key: &RequestKey,
) -> Result<KeyState, DbErr> {
    let row = of_key(key).one(tx).await?;
    // The key was swept in the meantime.
    let row = row
        .ok_or_else(|| DbErr::Custom("an idempotency key expired while it was read".to_owned()))?;
    known(row, key)
}

fn of_key(key: &RequestKey) -> sea_orm::Select<request_key::Entity> {
    request_key::Entity::find_by_id((
        plain(&key.user_id),
        plain(&key.route),
        plain(&key.name),
        i64::from(key.part),
    ))
}

fn known(row: request_key::Model, key: &RequestKey) -> Result<KeyState, DbErr> {
    if row.digest != plain(&key.digest) {
        return Ok(KeyState::Other);
    }
    let created = from_json(&row.made_json)
        .map_err(|reason| DbErr::Type(format!("an idempotency key is damaged: {reason}")))?;
    Ok(KeyState::Again(created))
}

#[async_trait]
impl RequestStore for SqlRequestStore {
    async fn known(
        &self,
        key: &RequestKey,
        at: DateTime<Utc>,
    ) -> Result<Option<KeyState>, StoreError> {
        let row = of_key(key)
            .filter(request_key::Column::ExpiresAt.gt(micros(at)))
            .one(self.db.reads())
            .await;
        read(row.and_then(|row| row.map(|row| known(row, key)).transpose()))
    }

    async fn keep(
        &self,
        key: &RequestKey,
        made: CreatedResource,
        at: DateTime<Utc>,
    ) -> Result<Option<KeyState>, StoreError> {
        self.db.writes().run((key.clone(), made, at), keep).await
    }

    async fn forget(&self, key: &RequestKey) -> Result<(), StoreError> {
        self.db.writes().release(key.clone(), forget).await
    }

    async fn sweep(&self, at: DateTime<Utc>, limit: usize) -> Result<usize, StoreError> {
        let over =
            request_key::Entity::find().filter(request_key::Column::ExpiresAt.lte(micros(at)));
        // Avoids a write if there is none.
        if read(over.limit(1).one(self.db.reads()).await)?.is_none() {
            return Ok(0);
        }
        self.db
            .writes()
            .release(
                (micros(at), i64::try_from(limit).unwrap_or(i64::MAX)),
                sweep,
            )
            .await
    }
}

fn keep<'a>(
    tx: &'a DatabaseTransaction,
    (key, made, at): &'a (RequestKey, CreatedResource, DateTime<Utc>),
) -> TxFuture<'a, Option<KeyState>> {
    Box::pin(async move {
        let mut statements = StatementBatch::new(tx);
        claim_key(&mut statements, key, made, *at);
        Ok(if key_claimed(&statements.run(tx).await?) {
            None
        } else {
            Some(lookup_key(tx, key).await?)
        })
    })
}

fn forget<'a>(tx: &'a DatabaseTransaction, key: &'a RequestKey) -> TxFuture<'a, ()> {
    Box::pin(async move {
        let key = (
            plain(&key.user_id),
            plain(&key.route),
            plain(&key.name),
            i64::from(key.part),
        );
        request_key::Entity::delete_by_id(key).exec(tx).await?;
        Ok(())
    })
}

const SWEEP: &str = "\
    DELETE FROM request_keys WHERE (user_id, route, name, part) IN (\
        SELECT user_id, route, name, part FROM request_keys WHERE expires_at <= ? LIMIT ?) AND expires_at <= ? RETURNING 'gone'";

fn sweep<'a>(tx: &'a DatabaseTransaction, (at, limit): &'a (i64, i64)) -> TxFuture<'a, usize> {
    Box::pin(async move {
        let mut statements = StatementBatch::new(tx);
        statements.add(SWEEP, [(*at).into(), (*limit).into(), (*at).into()]);
        Ok(statements.run(tx).await?.len())
    })
}

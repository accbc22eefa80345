//! What requests made that may come again. A key is taken before anything else of a transaction, so that twins wait for each other
//! there and nowhere else.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use futures_util::future::BoxFuture;
use harness::ids::RunId;
use harness::runtime::runs::store::{Known, Made, RequestKey, RequestStore, StoreError};
use sea_orm::{
    ColumnTrait, ConnectionTrait, DatabaseTransaction, DbErr, EntityTrait, QueryFilter,
    QueryResult, QuerySelect, Statement,
};

use crate::connect::Database;
use crate::entity::{micros, plain, request_key};
use crate::error::read;
use crate::runs::{from_json, json_text};
use crate::script::{Script, tagged};
use crate::tx::TxError;

/// Keys of requests over SQL.
#[derive(Debug, Clone)]
pub struct SqlRequestStore {
    db: Database,
}

impl SqlRequestStore {
    /// A view of `db`.
    pub fn new(db: Database) -> Self {
        Self { db }
    }
}

/// Takes a key that is free or over.
const TAKE: &str = "\
    INSERT INTO request_keys (user_id, route, name, part, digest, made_json, expires_at, run_id) VALUES (?, ?, ?, ?, ?, ?, ?, ?) \
    ON CONFLICT (user_id, route, name, part) DO UPDATE SET digest = excluded.digest, made_json = excluded.made_json, \
        expires_at = excluded.expires_at, run_id = excluded.run_id, values_json = NULL \
    WHERE request_keys.expires_at <= ? RETURNING 'key'";

/// Takes the key as part of a script; [`was_taken`] says whether that worked.
pub(crate) fn take(script: &mut Script, key: &RequestKey, made: &Made, at: DateTime<Utc>) {
    let [user, route, name] = [&key.user_id, &key.route, &key.name].map(|text| plain(text).into());
    let (part, digest, made_json) = (
        i64::from(key.part).into(),
        plain(&key.digest).into(),
        json_text(made).into(),
    );
    let run = match made {
        Made::Run(_, run) => Some(run.as_str()),
        Made::Thread(_) | Made::Cron(_) | Made::Answer(_) => None,
    };
    script.add(
        TAKE,
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

/// Keeps a run's last state with the key of its request, for which a twin waits that holds nothing but a thread of its own.
pub(crate) fn keep_values(script: &mut Script, run: &RunId, values: &[u8]) {
    let values = String::from_utf8_lossy(values).into_owned();
    script.add(
        "UPDATE request_keys SET values_json = ? WHERE run_id = ?",
        [values.into(), run.as_str().into()],
    );
}

/// The last state that was kept of a run.
pub(crate) async fn kept_values(
    db: &impl ConnectionTrait,
    run: &RunId,
) -> Result<Option<String>, DbErr> {
    let sql = "SELECT values_json FROM request_keys WHERE run_id = $1 AND values_json IS NOT NULL";
    let kept = db
        .query_one_raw(Statement::from_sql_and_values(
            db.get_database_backend(),
            sql,
            [run.as_str().into()],
        ))
        .await?;
    kept.map(|row| row.try_get_by_index(0)).transpose()
}

/// Forgets what was kept of a run.
pub(crate) fn forget_values(script: &mut Script, run: &str) {
    script.add(
        "UPDATE request_keys SET values_json = NULL WHERE run_id = ? AND values_json IS NOT NULL",
        [run.into()],
    );
}

/// Forgets what was kept of a thread's runs. Those that are at work have nothing yet, and nobody waits for them here.
pub(crate) fn forget_values_on(script: &mut Script, thread: &str) {
    const FORGET: &str = "\
        UPDATE request_keys SET values_json = NULL \
        WHERE run_id IN (SELECT run_id FROM runs WHERE thread_id = ?) AND values_json IS NOT NULL";
    script.add(FORGET, [thread.into()]);
}

/// Whether the script took the key.
pub(crate) fn was_taken(rows: &[QueryResult]) -> bool {
    tagged(rows, "key").is_some()
}

/// What is known of a key that could not be taken.
pub(crate) async fn known_of(tx: &impl ConnectionTrait, key: &RequestKey) -> Result<Known, DbErr> {
    let row = of_key(key).one(tx).await?;
    // Swept in between.
    let row = row.ok_or_else(|| {
        DbErr::Custom("the key of a request ended while it was asked for".to_owned())
    })?;
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

fn known(row: request_key::Model, key: &RequestKey) -> Result<Known, DbErr> {
    if row.digest != plain(&key.digest) {
        return Ok(Known::Other);
    }
    let made = from_json(&row.made_json)
        .map_err(|reason| DbErr::Type(format!("the key of a request is damaged: {reason}")))?;
    Ok(Known::Again(made))
}

type Done<'a, T> = BoxFuture<'a, Result<T, TxError<StoreError>>>;

#[async_trait]
impl RequestStore for SqlRequestStore {
    async fn known(
        &self,
        key: &RequestKey,
        at: DateTime<Utc>,
    ) -> Result<Option<Known>, StoreError> {
        let row = of_key(key)
            .filter(request_key::Column::ExpiresAt.gt(micros(at)))
            .one(self.db.reads())
            .await;
        read(row.and_then(|row| row.map(|row| known(row, key)).transpose()))
    }

    async fn keep(
        &self,
        key: &RequestKey,
        made: Made,
        at: DateTime<Utc>,
    ) -> Result<Option<Known>, StoreError> {
        self.db.writes().run((key.clone(), made, at), keep).await
    }

    async fn forget(&self, key: &RequestKey) -> Result<(), StoreError> {
        self.db.writes().release(key.clone(), forget).await
    }

    async fn sweep(&self, at: DateTime<Utc>, most: usize) -> Result<usize, StoreError> {
        let over =
            request_key::Entity::find().filter(request_key::Column::ExpiresAt.lte(micros(at)));
        // Nothing is written while there is none.
        if read(over.limit(1).one(self.db.reads()).await)?.is_none() {
            return Ok(0);
        }
        self.db
            .writes()
            .release((micros(at), i64::try_from(most).unwrap_or(i64::MAX)), sweep)
            .await
    }
}

fn keep<'a>(
    tx: &'a DatabaseTransaction,
    (key, made, at): &'a (RequestKey, Made, DateTime<Utc>),
) -> Done<'a, Option<Known>> {
    Box::pin(async move {
        let mut script = Script::new(tx);
        take(&mut script, key, made, *at);
        Ok(if was_taken(&script.run(tx).await?) {
            None
        } else {
            Some(known_of(tx, key).await?)
        })
    })
}

fn forget<'a>(tx: &'a DatabaseTransaction, key: &'a RequestKey) -> Done<'a, ()> {
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

fn sweep<'a>(tx: &'a DatabaseTransaction, (at, most): &'a (i64, i64)) -> Done<'a, usize> {
    Box::pin(async move {
        let mut script = Script::new(tx);
        script.add(SWEEP, [(*at).into(), (*most).into(), (*at).into()]);
        Ok(script.run(tx).await?.len())
    })
}

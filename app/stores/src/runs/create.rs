//! Admission: two statements in one transaction, whichever way the thread comes to be.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use futures_util::future::BoxFuture;
use harness::ids::RunId;
use harness::runtime::runs::store::{AdmitError, NewRun, RunCreateStore, StoreError};
use harness::runtime::runs::{CancelAction, IfNotExists, RunRecord};
use sea_orm::sea_query::OnConflict;
use sea_orm::{
    ColumnTrait, ConnectionTrait, DatabaseTransaction, EntityTrait, IntoActiveModel, QueryFilter, Statement, Value, sea_query::Expr,
};

use super::SqlRunStore;
use super::row::{admitted, cancel_word, is_active, new_row, record};
use crate::entity::{micros, plain, run};
use crate::tx::TxError;

#[async_trait]
impl RunCreateStore for SqlRunStore {
    async fn admit(&self, run: NewRun) -> Result<RunRecord, AdmitError> {
        self.db.writes().run(run, |tx, run| Box::pin(admit(tx, run))).await
    }

    async fn request_cancel(&self, run: &RunId, action: CancelAction, at: DateTime<Utc>) -> Result<Option<RunRecord>, StoreError> {
        self.db.writes().run((run.clone(), action, at), request_cancel).await
    }
}

/// Makes the thread or takes it, if it is the user's. No row changes when it is somebody else's, or when a deleted thread of
/// somebody else had its id.
const MAKE_OR_TAKE_THREAD: &str = "\
    INSERT INTO threads_meta (thread_id, assistant_id, user_id, run_assistant_id, status, metadata_json, pinned, temporary, \
        created_at, updated_at) \
    SELECT $1, $2, $3, $4, 'busy', '{}', FALSE, $6, $5, $5 \
    WHERE NOT EXISTS (SELECT 1 FROM deleted_threads WHERE thread_id = $1 AND user_id IS DISTINCT FROM $3) \
    ON CONFLICT (thread_id) DO UPDATE SET status = 'busy', updated_at = excluded.updated_at, \
        run_assistant_id = CASE WHEN threads_meta.assistant_id IS NULL THEN excluded.run_assistant_id \
            ELSE threads_meta.run_assistant_id END, \
        assistant_id = COALESCE(threads_meta.assistant_id, excluded.assistant_id) \
    WHERE threads_meta.user_id IS NOT DISTINCT FROM excluded.user_id";

const TAKE_THREAD: &str = "\
    UPDATE threads_meta SET status = 'busy', updated_at = $5, assistant_id = COALESCE(assistant_id, $2), \
        run_assistant_id = CASE WHEN assistant_id IS NULL THEN $4 ELSE run_assistant_id END \
    WHERE thread_id = $1 AND user_id IS NOT DISTINCT FROM $3";

async fn admit(tx: &DatabaseTransaction, new: &NewRun) -> Result<RunRecord, TxError<AdmitError>> {
    // The thread comes first, here and at the end of a run: transactions that lock in one order do not lock each other out.
    let named = new.metadata.get("assistant_id").and_then(serde_json::Value::as_str).map(plain);
    let mut values: Vec<Value> = vec![
        new.thread_id.as_str().into(),
        plain(&new.assistant).into(),
        new.user_id.clone().into(),
        named.into(),
        micros(new.created_at).into(),
    ];
    let sql = match new.if_not_exists {
        IfNotExists::Create => {
            values.push(new.temporary_thread.into());
            MAKE_OR_TAKE_THREAD
        }
        IfNotExists::Reject => TAKE_THREAD,
    };
    let taken = tx.execute_raw(Statement::from_sql_and_values(tx.get_database_backend(), sql, values)).await?;
    if taken.rows_affected() == 0 {
        return Err(TxError::Refused(AdmitError::ThreadNotFound(new.thread_id.clone())));
    }
    let insert = run::Entity::insert(new_row(new).into_active_model()).on_conflict(OnConflict::new().do_nothing().to_owned());
    if insert.exec_without_returning(tx).await? == 1 {
        return Ok(admitted(new));
    }
    Err(TxError::Refused(why_not(tx, new).await?))
}

async fn why_not(tx: &DatabaseTransaction, new: &NewRun) -> Result<AdmitError, TxError<AdmitError>> {
    let damaged = |reason: String| TxError::Refused(AdmitError::Store(StoreError::Failed(reason)));
    if run::Entity::find_by_id(new.run_id.as_str()).one(tx).await?.is_some() {
        return Ok(AdmitError::RunExists(new.run_id.clone()));
    }
    let holder = run::Entity::find()
        .filter(run::Column::ThreadId.eq(new.thread_id.as_str()))
        .filter(is_active())
        .one(tx)
        .await?
        .ok_or_else(|| damaged("the run was refused, but nothing stands against it".to_owned()))?;
    let active = RunId::parse(holder.run_id).map_err(|error| damaged(error.to_string()))?;
    Ok(AdmitError::ThreadBusy { thread_id: new.thread_id.clone(), active })
}

fn request_cancel<'a>(
    tx: &'a DatabaseTransaction,
    (id, action, at): &'a (RunId, CancelAction, DateTime<Utc>),
) -> BoxFuture<'a, Result<Option<RunRecord>, TxError<StoreError>>> {
    Box::pin(async move {
        run::Entity::update_many()
            .col_expr(run::Column::CancelAction, Expr::value(cancel_word(*action)))
            .col_expr(run::Column::UpdatedAt, Expr::value(micros(*at)))
            .filter(run::Column::RunId.eq(id.as_str()))
            .filter(run::Column::CancelAction.is_null())
            .filter(is_active())
            .exec(tx)
            .await?;
        let row = run::Entity::find_by_id(id.as_str()).one(tx).await?;
        Ok(row.map(record).transpose()?)
    })
}

//! Admission of runs: two statements in one transaction if the thread is free, else a few more.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use deerflow_core::compute::{Size, heavy_poll};
use deerflow_core::ids::{NodeId, RunId};
use deerflow_core::quota::{Quota, QuotaExceeded};
use deerflow_runtime::runs::store::{
    AdmitError, Admitted, Claimed, CreatedResource, NewRun, RunCreateStore, StoreError,
};
use deerflow_runtime::runs::{CancelAction, IfNotExists, RunRecord, RunStatus, UserRunLimits};
use sea_orm::sea_query::{Expr, InsertStatement, OnConflict, Query};
use sea_orm::{
    ActiveModelTrait, ColumnTrait, ConnectionTrait, DatabaseTransaction, DbBackend, DbErr,
    EntityTrait, ExprTrait, IntoActiveModel, Iterable, QueryFilter, QueryResult, Value,
};

use super::SqlRunStore;
use super::busy_thread::admit_to_busy_thread;
use super::row::{admitted, cancel_word, head, named_assistant, readable, record};
use super::serialized_run::SerializedRun;
use super::unreadable::{end_unreadable, sanitised};
use super::{admission_function, large_texts, prepared_admission, queue, takeover, user_runs};
use crate::db::entity::{micros, plain, run, thread};
use crate::db::quotas::QuotaCheck;
use crate::db::space::WriteClass;
use crate::db::statement_batch::{StatementBatch, tagged};
use crate::db::tx::{FastWork, TxError, TxFuture};
use crate::sql::requests::{claim_key, key_claimed, lookup_key};

#[async_trait]
impl RunCreateStore for SqlRunStore {
    async fn admit(&self, run: NewRun) -> Result<Admitted, AdmitError> {
        let check = self.db.quota_check(run.user_id.as_deref()).await;
        let backend = self.db.reads().get_database_backend();
        heavy_poll(Size::bytes(
            run.request().presentation.request_echo.text().len(),
        ))
        .await;
        let run = SerializedRun::new(run, backend);
        self.db
            .writes()
            .run_fast(
                WriteClass::Creation,
                (run, check),
                |tx, (run, check)| Box::pin(admit(tx, run, check)),
                Some(FastWork {
                    sqlite: prepared_admission::admit,
                    postgres: Some(admission_function::admit),
                }),
            )
            .await
    }

    async fn claim(
        &self,
        node: &NodeId,
        now: DateTime<Utc>,
        limits: UserRunLimits,
    ) -> Result<Option<Claimed>, StoreError> {
        queue::claim(&self.db, node, now, limits).await
    }

    async fn take_over(
        &self,
        node: &NodeId,
        now: DateTime<Utc>,
    ) -> Result<Option<Claimed>, StoreError> {
        takeover::take_over(&self.db, node, now).await
    }

    async fn next_due(&self, now: DateTime<Utc>) -> Result<Option<DateTime<Utc>>, StoreError> {
        queue::next_due(&self.db, now).await
    }

    async fn request_cancel(
        &self,
        run: &RunId,
        action: CancelAction,
        at: DateTime<Utc>,
    ) -> Result<Option<RunRecord>, StoreError> {
        self.db
            .writes()
            .release((run.clone(), action, at), request_cancel)
            .await
    }
}

/// Creates the thread, or locks it if it belongs to the user. Changes no row if another user owns
/// the thread, or owned a deleted thread with this id.
const CREATE_OR_LOCK_THREAD: &str = "\
    INSERT INTO threads_meta (thread_id, assistant_id, user_id, run_assistant_id, status, metadata_json, pinned, temporary, \
        created_at, updated_at, state_updated_at, ttl_micros, keep_latest) \
    SELECT new.thread_id, new.assistant_id, new.user_id, new.named, 'busy', '{}', FALSE, new.temporary, new.at, new.at, new.at, \
        new.ttl, new.keep_latest \
    FROM (SELECT CAST(? AS TEXT) AS thread_id, CAST(? AS TEXT) AS assistant_id, CAST(? AS TEXT) AS user_id, CAST(? AS TEXT) AS named, \
        CAST(? AS BOOLEAN) AS temporary, CAST(? AS BIGINT) AS at, CAST(? AS BIGINT) AS ttl, CAST(? AS BOOLEAN) AS keep_latest) AS new \
    WHERE NOT EXISTS (SELECT 1 FROM deleted_threads AS gone WHERE gone.thread_id = new.thread_id \
        AND gone.user_id IS DISTINCT FROM new.user_id) \
    ON CONFLICT (thread_id) DO UPDATE SET status = 'busy', updated_at = excluded.updated_at, \
        run_assistant_id = CASE WHEN threads_meta.assistant_id IS NULL THEN excluded.run_assistant_id \
            ELSE threads_meta.run_assistant_id END, \
        assistant_id = COALESCE(threads_meta.assistant_id, excluded.assistant_id) \
    WHERE threads_meta.user_id IS NOT DISTINCT FROM excluded.user_id \
    RETURNING 'thread', CASE WHEN created_at = updated_at THEN 1 ELSE 0 END";

const LOCK_EXISTING_THREAD: &str = "\
    UPDATE threads_meta SET status = 'busy', updated_at = ?, \
        run_assistant_id = CASE WHEN assistant_id IS NULL THEN ? ELSE run_assistant_id END, assistant_id = COALESCE(assistant_id, ?) \
    WHERE thread_id = ? AND user_id IS NOT DISTINCT FROM ? \
    RETURNING 'thread', 0";

/// Retains the content of a flow while the thread exists. Changes no row without the thread.
const PIN_CONTENT: &str = "\
    INSERT INTO flow_pins (thread_id, content_hash) \
    SELECT thread_id, CAST(? AS TEXT) FROM threads_meta WHERE thread_id = ? ON CONFLICT DO NOTHING";

async fn admit(
    tx: &DatabaseTransaction,
    run: &SerializedRun,
    check: &QuotaCheck,
) -> Result<Admitted, TxError<AdmitError>> {
    let new = &run.new;
    // Admission, claim and end of a run all lock the thread first: one lock order prevents
    // deadlocks, and while the thread is locked, no other transaction changes which of its runs is
    // active. Only the idempotency key is locked before the thread, and never after it.
    let request = new.request();
    let mut statements = StatementBatch::new(tx);
    if let Some(key) = request.idempotency_key() {
        claim_key(
            &mut statements,
            key,
            &CreatedResource::Run(new.thread_id.clone(), new.run_id.clone()),
            new.at,
        );
    }
    let (thread, assistant, user): (Value, Value, Value) = (
        new.thread_id.as_str().into(),
        plain(&request.assistant).into(),
        new.user_id.clone().into(),
    );
    let named: Value = named_assistant(new).into();
    let at = micros(new.at);
    match request.scope.if_not_exists() {
        IfNotExists::Create => {
            let thread_ttl = request.created_thread_ttl();
            let ttl = thread_ttl.and_then(|ttl| ttl.after.num_microseconds());
            let (temporary, keep_latest) = (
                request.scope.is_temporary().into(),
                thread::keeps_latest(thread_ttl).into(),
            );
            statements.add(
                CREATE_OR_LOCK_THREAD,
                [
                    thread,
                    assistant,
                    user,
                    named,
                    temporary,
                    at.into(),
                    ttl.into(),
                    keep_latest,
                ],
            );
        }
        IfNotExists::Reject => statements.add(
            LOCK_EXISTING_THREAD,
            [at.into(), named, assistant, thread, user],
        ),
    }
    if let Some(pin) = &new.recipe.pin {
        let thread = new.thread_id.as_str();
        statements.add(
            PIN_CONTENT,
            [plain(&pin.content_hash).into(), thread.into()],
        );
    }
    if new.created_at <= new.at {
        statements.add_built(&insert_if_free(run, tx.get_database_backend())?);
    }
    let rows = statements.run(tx).await?;
    if let Some(key) = request.idempotency_key().filter(|_| !key_claimed(&rows)) {
        return Err(TxError::Refused(AdmitError::KnownRequest(
            lookup_key(tx, key).await?,
        )));
    }
    let Some(thread) = tagged(&rows, "thread") else {
        return Err(TxError::Refused(AdmitError::ThreadNotFound(
            new.thread_id.clone(),
        )));
    };
    let is_new_thread = is_created(thread)?;
    if let Some(row) = tagged(&rows, "run") {
        large_texts::insert(tx, &new.run_id, run.texts_apart()).await?;
        check_inserted(tx, check, is_new_thread).await?;
        return Ok(Admitted {
            run: admitted(new, RunStatus::Starting),
            displaced: Vec::new(),
            head: head(row.try_get_by_index(1)?, row.try_get_by_index(2)?),
        });
    }
    let admitted = admit_to_busy_thread(tx, run).await?;
    check_inserted(tx, check, is_new_thread).await?;
    Ok(admitted)
}

/// Checks the quotas after the run was inserted.
async fn check_inserted(
    tx: &DatabaseTransaction,
    check: &QuotaCheck,
    is_new_thread: bool,
) -> Result<(), TxError<AdmitError>> {
    if is_new_thread {
        return check.inserted(tx, Quota::Threads).await;
    }
    let refused = |exceeded: QuotaExceeded| TxError::Refused(exceeded.into());
    check.size().map_err(refused)
}

/// Reads whether the thread was created by the statement. A thread that was created in the same
/// microsecond is counted as well.
fn is_created(thread: &QueryResult) -> Result<bool, DbErr> {
    Ok(thread.try_get_by_index::<i32>(1)? == 1)
}

/// Builds an insert that takes effect if the thread has no unfinished run, the user certainly has
/// fewer active runs than permitted, and the run's id is new.
fn insert_if_free(run: &SerializedRun, backend: DbBackend) -> Result<InsertStatement, DbErr> {
    let new = &run.new;
    let row = run.row(RunStatus::Starting).into_active_model();
    let (columns, values): (Vec<_>, Vec<_>) = run::Column::iter()
        .filter_map(|column| {
            row.get(column)
                .into_value()
                .map(|value| (column, Expr::val(value)))
        })
        .unzip();
    let others = Query::select()
        .expr(Expr::val(1))
        .from(run::Entity)
        .and_where(run::Column::ThreadId.eq(new.thread_id.as_str()))
        .and_where(run::is_active())
        .take();
    let values = Query::select()
        .exprs(values)
        .and_where(Expr::exists(others).not())
        .and_where_option(user_runs::may_start_unlocked(new, backend))
        .take();
    let mut insert = Query::insert();
    insert
        .into_table(run::Entity)
        .columns(columns)
        .on_conflict(OnConflict::new().do_nothing().to_owned());
    insert
        .select_from(values)
        .map_err(|error| DbErr::Custom(error.to_string()))?;
    insert.returning(Query::returning().exprs([
        Expr::val("run"),
        Expr::cust(NEWEST_CHECKPOINT),
        Expr::cust(LOG_TAIL),
    ]));
    Ok(insert)
}

/// Parts of the head of the inserted run's thread. The thread is locked, so no other transaction
/// changes them.
const NEWEST_CHECKPOINT: &str = "\
    (SELECT head.checkpoint_id FROM checkpoints AS head WHERE head.thread_id = runs.thread_id ORDER BY head.checkpoint_id DESC LIMIT 1)";
const LOG_TAIL: &str = "\
    (SELECT COALESCE(MAX(log.place), 0) FROM checkpoint_messages AS log WHERE log.thread_id = runs.thread_id)";

fn request_cancel<'a>(
    tx: &'a DatabaseTransaction,
    (id, action, at): &'a (RunId, CancelAction, DateTime<Utc>),
) -> TxFuture<'a, Option<RunRecord>> {
    Box::pin(async move {
        run::Entity::update_many()
            .col_expr(run::Column::CancelAction, Expr::value(cancel_word(*action)))
            .col_expr(run::Column::UpdatedAt, Expr::value(micros(*at)))
            .filter(run::Column::RunId.eq(id.as_str()))
            .filter(run::Column::CancelAction.is_null())
            .filter(run::is_active())
            .exec(tx)
            .await?;
        let find = || run::Entity::find_by_id(id.as_str()).one(tx);
        let row = match find().await? {
            Some(row) if row.status == RunStatus::Pending.as_str() => match readable(&row) {
                Ok(()) => Some(row),
                Err(reason) => {
                    end_unreadable(tx, row, &reason, micros(*at)).await?;
                    find().await?
                }
            },
            row => row.map(sanitised),
        };
        Ok(row.map(record).transpose()?)
    })
}

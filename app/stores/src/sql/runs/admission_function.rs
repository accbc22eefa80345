//! Admission of a run to a free thread by a function of Postgres.
//!
//! Admissions with an idempotency key or a delay, those to busy threads, and those of users near
//! their quotas or limits are left to [`super::create`].

use deerflow_core::quota::Quota;
use deerflow_runtime::runs::store::{AdmitError, Admitted, NewRun};
use deerflow_runtime::runs::{IfNotExists, RunStatus};
use futures_util::future::BoxFuture;
use sqlx::PgPool;

use super::row::{admitted, head, named_assistant};
use super::serialized_run::SerializedRun;
use super::user_runs::max_active_unlocked;
use crate::db::entity::{plain, thread};
use crate::db::quotas::QuotaCheck;
use crate::db::tx::Prepared;

const ADMIT: &str = "\
    SELECT is_admitted, head_checkpoint, log_tail \
    FROM deerflow_admit_run($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20)";

/// Columns of [`ADMIT`].
type Row = (bool, Option<String>, Option<i64>);

/// Admits a run.
pub(super) fn admit<'a>(
    pool: &'a PgPool,
    (run, check): &'a (SerializedRun, QuotaCheck),
) -> BoxFuture<'a, sqlx::Result<Prepared<Admitted, AdmitError>>> {
    Box::pin(async move {
        let new = &run.new;
        if !is_usual(new, check) {
            return Ok(Prepared::Unsuited);
        }
        let request = new.request();
        let ttl = request.created_thread_ttl();
        let content = new.recipe.pin.as_ref().map(|pin| plain(&pin.content_hash));
        let row = run.row_without_texts(RunStatus::Starting);
        let (is_admitted, checkpoint, log_tail): Row = sqlx::query_as(ADMIT)
            .bind(row.thread_id)
            .bind(row.run_id)
            .bind(row.assistant_id)
            .bind(row.user_id)
            .bind(named_assistant(new))
            .bind(creates_thread(new) && check.permits_uncounted(Quota::Threads))
            .bind(request.scope.is_temporary())
            .bind(ttl.and_then(|ttl| ttl.after.num_microseconds()))
            .bind(thread::keeps_latest(ttl))
            .bind(content)
            .bind(max_active_unlocked(new))
            .bind(row.model_name)
            .bind(row.multitask_strategy)
            .bind(row.metadata_json)
            .bind(run.kwargs_json())
            .bind(run.recipe_json())
            .bind(row.webhook)
            .bind(row.owner)
            .bind(row.created_at)
            .bind(row.updated_at)
            .fetch_one(pool)
            .await?;
        if !is_admitted {
            return Ok(Prepared::Unsuited);
        }
        Ok(Prepared::Done(Ok(Admitted {
            run: admitted(new, RunStatus::Starting),
            displaced: Vec::new(),
            head: head(checkpoint, log_tail.unwrap_or_default()),
        })))
    })
}

/// Returns `true` if the function can admit the run to a free thread.
fn is_usual(new: &NewRun, check: &QuotaCheck) -> bool {
    new.request().idempotency_key().is_none() && new.created_at <= new.at && check.size().is_ok()
}

fn creates_thread(new: &NewRun) -> bool {
    new.request().scope.if_not_exists() == IfNotExists::Create
}

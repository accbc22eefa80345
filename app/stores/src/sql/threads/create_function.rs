//! Creation of a thread by a function of Postgres.
//!
//! Threads with an idempotency key, those whose id is in use, and those of users near their quota
//! are left to [`super::write::create`].

use deerflow_core::quota::Quota;
use deerflow_domain::threads::{Created, NewThread};
use futures_util::future::BoxFuture;
use sqlx::PgPool;

use super::row::{new_row, record};
use super::write::CreateRefusal;
use crate::db::fact_index::fact_set;
use crate::db::quotas::QuotaCheck;
use crate::db::tx::Prepared;

const CREATE: &str = "SELECT deerflow_create_thread($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)";

/// Creates a thread.
pub(super) fn create<'a>(
    pool: &'a PgPool,
    (new, check): &'a (NewThread, QuotaCheck),
) -> BoxFuture<'a, sqlx::Result<Prepared<Created, CreateRefusal>>> {
    Box::pin(async move {
        let row = new_row(new);
        let Some(created) = record(row.clone()).ok().filter(|_| new.request.is_none()) else {
            return Ok(Prepared::Unsuited);
        };
        if !check.permits_uncounted(Quota::Threads) {
            return Ok(Prepared::Unsuited);
        }
        let (paths, values): (Vec<_>, Vec<_>) = fact_set(&new.metadata).into_iter().unzip();
        let is_created: bool = sqlx::query_scalar(CREATE)
            .bind(row.thread_id)
            .bind(row.assistant_id)
            .bind(row.user_id)
            .bind(row.metadata_json)
            .bind(row.pinned)
            .bind(row.created_at)
            .bind(row.ttl_micros)
            .bind(row.run_assistant_id)
            .bind(row.keep_latest)
            .bind(paths)
            .bind(values)
            .fetch_one(pool)
            .await?;
        Ok(if is_created {
            Prepared::Done(Ok(Created::New(created)))
        } else {
            Prepared::Unsuited
        })
    })
}

//! `DELETE /threads/{t}` and `POST /threads/prune`: removes threads with their runs, events, states
//! and files.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use deerflow_domain::threads::{Deleted, ThreadSearch};
use harness::ids::ThreadId;
use harness::runtime::actor_context::{Owner, effective_user_id};
use harness::runtime::fail_points;
use harness::runtime::runs::DeletedThreads;
use serde_json::json;

use crate::dialect::Dialect;
use crate::error::ApiError;
use crate::extract::{Body, Ids, parse_thread_id};
use crate::requests::bodies::{PruneStrategy, ThreadPrune};
use crate::routes::{App, JsonResult, ResponseResult, run_to_completion};
use crate::state::GatewayState;

pub(crate) async fn delete(State(state): App, dialect: Dialect, ids: Ids) -> ResponseResult {
    let thread = ids.thread()?;
    let removed = remove(&state, &thread).await?;
    match removed.row {
        _ if removed.files_remain => Err(ApiError::FilesRemain(thread.to_string())),
        Deleted::Removed if dialect.is_platform() => Ok(StatusCode::NO_CONTENT.into_response()),
        Deleted::Removed => {
            let message = format!("Deleted local thread data for {thread}");
            Ok(Json(json!({ "success": true, "message": message })).into_response())
        }
        Deleted::NotFound => Err(ApiError::ThreadNotFound(thread.to_string())),
        Deleted::Busy => Err(ApiError::Conflict(
            "Thread has work in flight. Delete it after the work finishes.".to_owned(),
        )),
    }
}

/// Maximum number of threads per request: each is a transaction.
const MAX_PRUNED: usize = 1_000;

/// Removes several threads, or only their history; busy and unknown threads are not counted.
pub(crate) async fn prune(
    State(state): App,
    dialect: Dialect,
    body: Body<ThreadPrune>,
) -> JsonResult {
    let (body, mut issues) = body.parts();
    let threads = body.thread_ids;
    // DeerFlow has only one strategy.
    let strategies = if dialect.is_platform() {
        PruneStrategy::WORDS
    } else {
        &PruneStrategy::WORDS[..1]
    };
    let keep_latest = issues
        .word("strategy", &body.strategy, strategies)
        .unwrap_or_default();
    if threads.len() > MAX_PRUNED {
        let text = format!("thread_ids should have at most {MAX_PRUNED} entries");
        let _none: Option<()> = issues.refuse("too_long", "thread_ids", text, &json!(null));
    }
    issues.finish()?;
    let threads: Vec<ThreadId> = threads
        .iter()
        .map(|thread| parse_thread_id(thread, dialect, "body"))
        .collect::<Result<_, _>>()?;
    let mut pruned = 0_u64;
    for thread in &threads {
        let outcome = if keep_latest {
            state
                .thread_services
                .threads
                .delete_past_checkpoints(thread, &Owner::Auto)
                .await?
        } else {
            remove(&state, thread).await?.row
        };
        pruned += u64::from(outcome == Deleted::Removed);
    }
    Ok(Json(json!({ "pruned_count": pruned })))
}

/// Removes every thread that a search finds, except busy ones.
pub(crate) async fn delete_matching(
    state: &Arc<GatewayState>,
    search: ThreadSearch,
) -> Result<(), ApiError> {
    let mut skipped = 0;
    loop {
        let page = ThreadSearch {
            limit: 100,
            offset: skipped,
            ..search.clone()
        };
        let matches = state
            .thread_services
            .threads
            .search(&page, &Owner::Auto)
            .await?;
        for thread in &matches {
            skipped += usize::from(remove(state, &thread.thread_id).await?.row == Deleted::Busy);
        }
        if matches.is_empty() {
            return Ok(());
        }
    }
}

/// Outcome of a removal.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Removed {
    row: Deleted,
    /// `true` if some files could not be removed; a later sweep removes them.
    files_remain: bool,
}

/// Removes the row, then the files.
async fn remove(state: &Arc<GatewayState>, thread: &ThreadId) -> Result<Removed, ApiError> {
    let (shared, thread) = (Arc::clone(state), thread.clone());
    run_to_completion(state, "delete a thread", async move {
        let user = effective_user_id();
        let note = async |is_removed| {
            if let Err(error) = shared.thread_services.files.note_removal(&user, &thread, is_removed).await {
                tracing::warn!(thread_id = %thread, %error, "failed to record the removal of a thread");
            }
        };
        note(true).await;
        let deleted_threads = DeletedThreads::new(shared.runs.runtime());
        let runs = deleted_threads.runs_of(&thread, &Owner::Auto).await;
        let deleted = shared.thread_services.threads.delete(&thread, &Owner::Auto).await;
        if !matches!(deleted, Ok(Deleted::Removed | Deleted::NotFound)) {
            note(false).await;
        }
        let row = deleted?;
        if row == Deleted::Removed {
            deleted_threads.release([&thread], &runs).await;
        }
        fail_points::pass("thread.deleted");
        // Files are also removed if the row no longer exists: after a crash or a disk failure they
        // may remain.
        let files = if row == Deleted::Busy { Ok(()) } else { shared.thread_services.files.delete_thread(&user, &thread).await };
        let files_remain = files.is_err();
        if let Err(error) = files {
            tracing::error!(thread_id = %thread, %error, "failed to remove files of a deleted thread");
        }
        Ok(Removed { row, files_remain })
    })
    .await
}

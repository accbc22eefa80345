//! `DELETE /threads/{t}` and `POST /threads/prune`: the row with all runs, events, states and files.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use deerflow_domain::threads::{Deleted, ThreadSearch};
use harness::ids::ThreadId;
use harness::runtime::actor_context::{Owner, effective_user_id};
use harness::runtime::fail_points;
use serde_json::json;

use crate::dialect::Dialect;
use crate::error::ApiError;
use crate::extract::{Body, Ids, parse_thread_id};
use crate::routes::{Answer, App, Reply, to_its_end};
use crate::state::GatewayState;

pub(crate) async fn delete(State(state): App, dialect: Dialect, ids: Ids) -> Reply {
    let thread = ids.thread()?;
    let removed = remove(&state, &thread).await?;
    match removed.row {
        _ if removed.leaves_files => Err(ApiError::FilesLeft(thread.to_string())),
        Deleted::Done if dialect.is_platform() => Ok(StatusCode::NO_CONTENT.into_response()),
        Deleted::Done => {
            let message = format!("Deleted local thread data for {thread}");
            Ok(Json(json!({ "success": true, "message": message })).into_response())
        }
        Deleted::NotFound => Err(ApiError::ThreadNotFound(thread.to_string())),
        Deleted::Busy => Err(ApiError::Conflict(
            "Thread has work in flight. Delete it after the work finishes.".to_owned(),
        )),
    }
}

/// The most threads that one request removes: each is a transaction.
const MOST_PRUNED: usize = 1_000;

/// Removes several, or their past; those that are busy or unknown stay out of the count.
pub(crate) async fn prune(State(state): App, dialect: Dialect, Body(mut body): Body) -> Answer {
    let threads = body.texts("thread_ids");
    if threads.is_none() && body.value("thread_ids").is_none() {
        body.missing("thread_ids");
    }
    // DeerFlow knows one way.
    let ways: &[(&str, bool)] = if dialect.is_platform() {
        &[("delete", false), ("keep_latest", true)]
    } else {
        &[("delete", false)]
    };
    let keep_latest = body.word("strategy", ways).unwrap_or_default();
    if threads
        .as_ref()
        .is_some_and(|threads| threads.len() > MOST_PRUNED)
    {
        let text = format!("thread_ids should have at most {MOST_PRUNED} entries");
        let _none: Option<()> = body.refuse("too_long", "thread_ids", text, &json!(null));
    }
    body.finish()?;
    let threads: Vec<ThreadId> = threads
        .unwrap_or_default()
        .iter()
        .map(|thread| parse_thread_id(thread, dialect, "body"))
        .collect::<Result<_, _>>()?;
    let mut pruned = 0_u64;
    for thread in &threads {
        let done = if keep_latest {
            state.threads.forget_past(thread, &Owner::Auto).await?
        } else {
            remove(&state, thread).await?.row
        };
        pruned += u64::from(done == Deleted::Done);
    }
    Ok(Json(json!({ "pruned_count": pruned })))
}

/// Removes every thread that a search finds, except those that are busy.
pub(crate) async fn delete_matching(
    state: &Arc<GatewayState>,
    search: ThreadSearch,
) -> Result<(), ApiError> {
    let mut kept = 0;
    loop {
        let page = ThreadSearch {
            limit: 100,
            offset: kept,
            ..search.clone()
        };
        let found = state.threads.search(&page, &Owner::Auto).await?;
        for thread in &found {
            kept += usize::from(remove(state, &thread.thread_id).await?.row == Deleted::Busy);
        }
        if found.is_empty() {
            return Ok(());
        }
    }
}

/// What became of a thread.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Removed {
    row: Deleted,
    /// Whether files are left, which a later sweep tries again.
    leaves_files: bool,
}

/// Removes the row, then the files.
async fn remove(state: &Arc<GatewayState>, thread: &ThreadId) -> Result<Removed, ApiError> {
    let (shared, thread) = (Arc::clone(state), thread.clone());
    to_its_end(state, "delete a thread", async move {
        let user = effective_user_id();
        let note = async |is_removed| {
            if let Err(error) = shared.files.note_removal(&user, &thread, is_removed).await {
                tracing::warn!(thread_id = %thread, %error, "the removal of a thread cannot be noted");
            }
        };
        note(true).await;
        let deleted = shared.threads.delete(&thread, &Owner::Auto).await;
        if !matches!(deleted, Ok(Deleted::Done | Deleted::NotFound)) {
            note(false).await;
        }
        let row = deleted?;
        fail_points::pass("thread.deleted");
        // Also of one that is gone: a process that died here, or a disk that failed, may have left them.
        let files = if row == Deleted::Busy { Ok(()) } else { shared.files.delete_thread(&user, &thread).await };
        let leaves_files = files.is_err();
        if let Err(error) = files {
            tracing::error!(thread_id = %thread, %error, "files of a deleted thread are left behind");
        }
        Ok(Removed { row, leaves_files })
    })
    .await
}

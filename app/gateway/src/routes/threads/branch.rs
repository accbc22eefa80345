//! `POST /threads/{t}/branches`: a new thread that continues after an earlier turn.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use deerflow_domain::branches::NewBranch;
use deerflow_domain::threads::{NewThread, ThreadRecord};
use harness::ids::{CheckpointId, ThreadId};
use harness::runtime::actor_context::effective_user_id;
use harness::runtime::checkpoint::{CheckpointMeta, CheckpointSource, HistoryQuery, Snapshot};
use harness::runtime::fail_points;
use harness::runtime::runs::ThreadStatus;
use harness::runtime::runs::store::{EventQuery, RunEvent, category};
use serde_json::{Map, Value, json};

use crate::error::{ApiError, truncated};
use crate::extract::{Body, Ids};
use crate::queries::branch::{Seed, TurnPosition, repeated, turn_position};
use crate::queries::threads::{all_events, all_runs, hidden, require_thread};
use crate::requests::bodies::ThreadBranch;
use crate::routes::{App, JsonResult, run_to_completion};
use crate::state::{GatewayState, ThreadServices};
use harness::clock::iso;

/// Number of checkpoints read at a time.
const PAGE: usize = 200;
/// Maximum length of a title in characters.
const MAX_TITLE_CHARS: usize = 256;
/// Metadata of the original that its branch does not have.
const OWN_METADATA: [&str; 1] = ["deerflow_pinned"];

pub(crate) async fn branch(State(state): App, ids: Ids, body: Body<ThreadBranch>) -> JsonResult {
    let (body, mut issues) = body.parts();
    let title = body.title.filter(|title| !title.trim().is_empty());
    if let Some(title) = title
        .as_ref()
        .filter(|title| title.chars().count() > MAX_TITLE_CHARS)
    {
        let text = format!("String should have at most {MAX_TITLE_CHARS} characters");
        let _none: Option<()> =
            issues.refuse("string_too_long", "title", text, &title.as_str().into());
    }
    issues.finish()?;
    let original = require_thread(&state, &ids.thread()?).await?;
    if original.metadata.get("deerflow_sidecar") == Some(&Value::Bool(true)) {
        return Err(ApiError::Conflict(
            "Side conversations cannot be branched.".to_owned(),
        ));
    }
    let request = Request {
        original,
        message: body.message_id,
        title,
    };
    let work = created(Arc::clone(&state), request);
    Ok(Json(
        run_to_completion(&state, "branch a thread", work).await?,
    ))
}

/// A valid request.
struct Request {
    original: ThreadRecord,
    message: String,
    title: Option<String>,
}

async fn created(state: Arc<GatewayState>, request: Request) -> Result<Value, ApiError> {
    let Request {
        original,
        message,
        title,
    } = request;
    let (start, mut is_followed) = start(&state, &original.thread_id, &message).await?;
    let branch = state.process.ids.thread_id();
    let runs = all_runs(&state, &original.thread_id).await?;
    let hidden = hidden(&state, &original.thread_id, &runs).await?;
    let journal = rows_of(&state, &original.thread_id, category::MESSAGE).await?;
    let mut details = rows_of(&state, &original.thread_id, category::SUBAGENT).await?;
    details.extend(rows_of(&state, &original.thread_id, category::WORKSPACE).await?);
    let seed = Seed {
        original: &original.thread_id,
        branch: &branch,
        user: original.user_id.as_deref(),
    };
    let repeated = repeated(&journal, &details, start.state.messages(), &hidden, seed);
    is_followed |= repeated.is_followed;
    if !is_followed && original.status == ThreadStatus::Busy {
        return Err(ApiError::Conflict(
            "Thread has a run in flight. Branch from this turn after the run finishes.".to_owned(),
        ));
    }
    let seeded = if repeated.rows.is_empty() {
        "skipped_empty"
    } else {
        "seeded"
    };
    let files = if is_followed {
        "skipped_historical_turn"
    } else {
        copy_files(&state, &original.thread_id, &branch).await?
    };
    fail_points::pass("branch.files_copied");
    let own = branch_metadata(
        &state,
        &original.thread_id,
        &start.meta.checkpoint_id,
        &message,
    );
    let new = NewBranch {
        thread: new_thread(&state, &original, branch.clone(), &own),
        title: title
            .or_else(|| start.state.title().map(str::to_owned))
            .or(original.title),
        original: original.thread_id.clone(),
        checkpoint: start.meta.checkpoint_id.clone(),
        metadata: own,
        events: repeated.rows,
    };
    let stored = state.thread_services.branches.branch(new).await;
    // An error does not prove that the rows were rolled back: then a sweep decides.
    let is_created = stored?.is_some();
    fail_points::pass("branch.stored");
    settle_files(&state, &branch, is_created).await;
    if !is_created {
        return Err(no_longer_available());
    }
    Ok(json!({
        "thread_id": branch,
        "parent_thread_id": original.thread_id,
        "parent_checkpoint_id": start.meta.checkpoint_id,
        "branched_from_message_id": message,
        "workspace_clone_mode": files,
        "history_seed_mode": seeded,
    }))
}

/// Returns the rows of a category in a thread's journal.
async fn rows_of(
    state: &GatewayState,
    thread: &ThreadId,
    category: &str,
) -> Result<Vec<RunEvent>, ApiError> {
    let query = EventQuery {
        category: Some(category.to_owned()),
        ..EventQuery::default()
    };
    all_events(state, thread, query, |_| false).await
}

fn new_thread(
    state: &GatewayState,
    original: &ThreadRecord,
    branch: ThreadId,
    own: &Map<String, Value>,
) -> NewThread {
    let mut metadata = original.metadata.clone();
    metadata.retain(|key, _| !OWN_METADATA.contains(&key.as_str()));
    metadata.extend(own.clone());
    NewThread {
        thread_id: branch,
        user_id: original.user_id.clone(),
        assistant: original.assistant.clone(),
        assistant_id: original.assistant_id.clone(),
        metadata,
        ttl: original.ttl,
        request: None,
        at: state.process.clock.now(),
    }
}

fn branch_metadata(
    state: &GatewayState,
    original: &ThreadId,
    checkpoint: &CheckpointId,
    message: &str,
) -> Map<String, Value> {
    let entries = [
        ("deerflow_branch", true.into()),
        ("branch_parent_thread_id", original.as_str().into()),
        ("branch_parent_checkpoint_id", checkpoint.as_str().into()),
        ("branch_parent_message_id", message.into()),
        ("branch_created_at", json!(iso(state.process.clock.now()))),
    ];
    entries
        .map(|(key, value)| (key.to_owned(), value))
        .into_iter()
        .collect()
}

/// Copies the files and returns the mode that the response states.
///
/// # Errors
/// [`ApiError::QuotaExceeded`] if the quota of files does not permit a copy.
async fn copy_files(
    state: &GatewayState,
    original: &ThreadId,
    branch: &ThreadId,
) -> Result<&'static str, ApiError> {
    let user = effective_user_id();
    let ThreadServices {
        files, file_quota, ..
    } = &state.thread_services;
    let reservation = file_quota.reserve_copy(&user, original).await?;
    Ok(match files.copy_thread(&user, original, branch).await {
        Ok(true) => {
            if let Some(reservation) = reservation {
                let copied = reservation.bytes();
                reservation.finish(copied);
            }
            "current_thread_best_effort"
        }
        Ok(false) => "not_found",
        Err(error) => {
            tracing::warn!(thread_id = %original, %error, "failed to copy files to a branch");
            settle_files(state, branch, false).await;
            "failed"
        }
    })
}

/// Clears the record of the copied files, or removes them if the branch was not created.
async fn settle_files(state: &GatewayState, branch: &ThreadId, is_created: bool) {
    let (user, files) = (effective_user_id(), &state.thread_services.files);
    let settled = if is_created {
        files.note_removal(&user, branch, false).await
    } else {
        files.delete_thread(&user, branch).await
    };
    if let Err(error) = settled {
        tracing::warn!(thread_id = %branch, %error, "failed to settle the files of a branch");
    }
}

/// Returns the state at the end of the message's turn, and whether newer states of the thread have
/// later turns.
async fn start(
    state: &GatewayState,
    thread: &ThreadId,
    message: &str,
) -> Result<(Snapshot, bool), ApiError> {
    let checkpoints = &state.thread_services.checkpoints;
    let mut is_followed = false;
    let mut was_seen = false;
    let Some(newest) = checkpoints.get(thread, None).await? else {
        return Err(unknown(message));
    };
    let ends = ends_of_turns(state, thread, &newest.meta).await?;
    let mut next = Some(newest);
    for id in ends {
        let snapshot = match next.take() {
            Some(newest) => Some(newest),
            None => checkpoints.get(thread, Some(&id)).await?,
        };
        let Some(snapshot) = snapshot else { break };
        match turn_position(snapshot.state.messages(), message) {
            TurnPosition::Last => return Ok((snapshot, is_followed)),
            TurnPosition::Followed => (is_followed, was_seen) = (true, true),
            TurnPosition::Absent if was_seen => break,
            TurnPosition::Absent => {}
        }
    }
    Err(if was_seen || is_journaled(state, thread, message).await? {
        no_longer_available()
    } else {
        unknown(message)
    })
}

/// Returns the newest checkpoint, and its ancestors before each input and external update, newest
/// first. Only an input or an update adds a question or compacts the messages.
async fn ends_of_turns(
    state: &GatewayState,
    thread: &ThreadId,
    newest: &CheckpointMeta,
) -> Result<Vec<CheckpointId>, ApiError> {
    let mut ends = vec![newest.checkpoint_id.clone()];
    let mut next = Some(newest.checkpoint_id.clone());
    let mut query = HistoryQuery {
        limit: PAGE,
        ..HistoryQuery::default()
    };
    loop {
        let page = state
            .thread_services
            .checkpoints
            .list_meta(thread, &query)
            .await?;
        for meta in &page {
            if next.as_ref() != Some(&meta.checkpoint_id) {
                continue;
            }
            next.clone_from(&meta.parent_id);
            let begins = meta.source != CheckpointSource::Loop;
            ends.extend(meta.parent_id.clone().filter(|_| begins));
        }
        if page.len() < PAGE || next.is_none() {
            return Ok(ends);
        }
        query.before = page.last().map(|meta| meta.checkpoint_id.clone());
    }
}

async fn is_journaled(
    state: &GatewayState,
    thread: &ThreadId,
    message: &str,
) -> Result<bool, ApiError> {
    let query = EventQuery {
        category: Some(category::MESSAGE.to_owned()),
        ..EventQuery::default()
    };
    let is_message = |row: &RunEvent| row.event.content.get("id").is_some_and(|id| id == message);
    let rows = all_events(state, thread, query, is_message).await?;
    Ok(rows.last().is_some_and(is_message))
}

fn unknown(message: &str) -> ApiError {
    ApiError::NotFound(format!("Message {} not found", truncated(message)))
}

fn no_longer_available() -> ApiError {
    ApiError::Conflict("This turn can no longer be branched from.".to_owned())
}

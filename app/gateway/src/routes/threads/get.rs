//! `GET /threads/{t}`.

use axum::Json;
use axum::extract::State;
use axum::response::IntoResponse;

use crate::dialect::Dialect;
use crate::extract::{Ids, Query};
use crate::reads::{content_of, require_thread, thread_facts};
use crate::routes::{App, Reply};
use crate::wire::{RawValues, Shown, ThreadFacts, thread_json, ttl_json};

/// On the platform `?include=ttl` also says how long it stays.
pub(crate) async fn get(State(state): App, dialect: Dialect, ids: Ids, query: Query) -> Reply {
    let record = require_thread(&state, &ids.thread()?).await?;
    if !dialect.is_platform() {
        let facts = thread_facts(&state, &record, dialect).await?;
        return Ok(Json(thread_json(&record, facts, dialect)).into_response());
    }
    let content = content_of(&state, &record.thread_id).await?;
    let mut thread = thread_json(&record, ThreadFacts::of(&content), dialect);
    if query.list("include").iter().any(|part| part == "ttl") {
        thread["ttl"] = ttl_json(&record).into();
    }
    Ok(Json(Shown::new(
        thread,
        content.state.as_ref().map(RawValues::of),
    ))
    .into_response())
}

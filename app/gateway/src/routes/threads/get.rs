//! `GET /threads/{t}`.

use axum::Json;
use axum::extract::State;

use crate::dialect::Dialect;
use crate::extract::{Ids, Query};
use crate::reads::{require_thread, thread_facts};
use crate::routes::{Answer, App};
use crate::wire::{thread_json, ttl_json};

/// `?include=ttl` also says how long it stays.
pub(crate) async fn get(State(state): App, dialect: Dialect, ids: Ids, query: Query) -> Answer {
    let record = require_thread(&state, &ids.thread()?).await?;
    let facts = thread_facts(&state, &record, dialect).await?;
    let mut thread = thread_json(&record, facts, dialect);
    if dialect.is_platform() && query.list("include").iter().any(|part| part == "ttl") {
        thread["ttl"] = ttl_json(&record).into();
    }
    Ok(Json(thread))
}

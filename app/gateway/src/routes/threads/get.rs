//! `GET /threads/{t}`.

use axum::Json;
use axum::extract::State;

use crate::dialect::Dialect;
use crate::extract::Ids;
use crate::reads::{require_thread, thread_facts};
use crate::routes::{Answer, App};
use crate::wire::thread_json;

pub(crate) async fn get(State(state): App, dialect: Dialect, ids: Ids) -> Answer {
    let record = require_thread(&state, &ids.thread()?).await?;
    let facts = thread_facts(&state, &record, dialect).await?;
    Ok(Json(thread_json(&record, facts, dialect)))
}

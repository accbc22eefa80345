//! `GET /threads/{t}`.

use axum::extract::State;
use axum::response::IntoResponse;

use crate::dialect::Dialect;
use crate::extract::{Ids, Query};
use crate::queries::threads::{platform_content, require_thread, thread_facts};
use crate::responses::{LargeJson, RawValues, RawView, ThreadFacts, thread_json, ttl_json};
use crate::routes::{App, ResponseResult};

/// On the platform, `?include=ttl` adds the time to live.
pub(crate) async fn get(
    State(state): App,
    dialect: Dialect,
    ids: Ids,
    query: Query,
) -> ResponseResult {
    let record = require_thread(&state, &ids.thread()?).await?;
    if !dialect.is_platform() {
        let facts = thread_facts(&state, &record, dialect).await?;
        return Ok(LargeJson(thread_json(&record, facts, dialect)).into_response());
    }
    let content = platform_content(&state, &record.thread_id).await?;
    let mut thread = thread_json(&record, ThreadFacts::of(&content), dialect);
    if query.list("include").iter().any(|part| part == "ttl") {
        thread["ttl"] = ttl_json(&record).into();
    }
    Ok(LargeJson(RawView::new(thread, content.state.map(RawValues::from))).into_response())
}

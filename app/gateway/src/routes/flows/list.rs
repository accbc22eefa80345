//! `GET /flows`.

use axum::Json;
use axum::extract::State;
use axum::response::IntoResponse;
use harness::runtime::actor_context::effective_user_id;
use serde_json::Value;

use super::json::listing_json;
use crate::extract::Query;
use crate::routes::{ResponseResult, paginate};
use crate::state::AgentServices;

/// Maximum and default number of results.
pub(crate) const MAX_LISTED: (u32, u32) = (1000, 100);

/// Returns the flows of the user and of the system, in the order of their ids.
pub(crate) async fn list(State(agents): State<AgentServices>, query: Query) -> ResponseResult {
    let (max, default) = MAX_LISTED;
    let limit = query
        .number("limit", 1..=max.into())?
        .unwrap_or(default.into());
    let offset = query.number("offset", 0..=1_000_000_000)?.unwrap_or(0);
    let (limit, offset) = (as_count(limit), as_count(offset));
    let flows = agents.flows.list(&effective_user_id()).await?;
    let page: Vec<Value> = flows
        .iter()
        .skip(offset)
        .take(limit + 1)
        .map(listing_json)
        .collect();
    let (page, headers) = paginate(page, offset, limit);
    let headers = axum::response::AppendHeaders(headers);
    Ok((headers, Json(page)).into_response())
}

fn as_count(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

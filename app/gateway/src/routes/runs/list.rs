//! `GET .../runs`: newest first.

use axum::extract::State;
use axum::response::IntoResponse;
use harness::runtime::runs::RunStatus;
use harness::runtime::runs::store::RunListQuery;
use serde_json::json;

use crate::dialect::Dialect;
use crate::extract::{Ids, Query};
use crate::queries::threads::require_thread;
use crate::responses::{RunView, is_rolled_back, select};
use crate::routes::paged_list::PagedList;
use crate::routes::{App, ResponseResult};

/// Wire names of the status filter.
pub(crate) const STATUSES: &[(&str, RunStatus)] = &[
    ("pending", RunStatus::Pending),
    ("running", RunStatus::Running),
    ("success", RunStatus::Success),
    ("error", RunStatus::Error),
    ("interrupted", RunStatus::Interrupted),
    ("timeout", RunStatus::Timeout),
];

pub(crate) async fn list(
    State(state): App,
    dialect: Dialect,
    ids: Ids,
    query: Query,
) -> ResponseResult {
    let thread = ids.thread()?;
    let limit = query.number("limit", 1..=1000)?;
    let limit = limit.unwrap_or_else(|| dialect.run_list_limit()) as usize;
    let offset = query.number("offset", 0..=u64::from(u32::MAX))?;
    let offset = offset.unwrap_or_default() as usize;
    let status = query.word("status", STATUSES)?;
    let fields = query.list("select");
    require_thread(&state, &thread).await?;
    let mut list = PagedList::new(offset, limit);
    while let Some(part) = list.next_part() {
        let query = RunListQuery {
            limit: part.limit,
            offset: part.offset,
            status,
        };
        let runs = state.runs.list_runs(&thread, &query).await?;
        let reasons = state.queue_reasons(&runs).await?;
        list.add(part, &runs, |run| {
            let is_shown = !(dialect.is_platform() && is_rolled_back(run));
            is_shown.then(|| select(json!(RunView::queued(run, &reasons, dialect)), &fields))
        })?;
    }
    Ok(list.into_response())
}

//! `GET .../runs`: newest first.

use axum::Json;
use axum::extract::State;
use harness::runtime::runs::RunStatus;
use harness::runtime::runs::store::RunListQuery;
use serde_json::Value;

use crate::dialect::Dialect;
use crate::extract::{Ids, Query};
use crate::queries::threads::require_thread;
use crate::responses::{is_rolled_back, queued_run_json, select};
use crate::routes::{App, JsonResult};

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
) -> JsonResult {
    let thread = ids.thread()?;
    let list_query = RunListQuery {
        limit: query
            .number("limit", 1..=1000)?
            .unwrap_or_else(|| dialect.run_list_limit()) as usize,
        offset: query
            .number("offset", 0..=u64::from(u32::MAX))?
            .unwrap_or_default() as usize,
        status: query.word("status", STATUSES)?,
    };
    let fields = query.list("select");
    require_thread(&state, &thread).await?;
    let runs = state.runs.list_runs(&thread, &list_query).await?;
    let reasons = state.queue_reasons(&runs).await?;
    let json = runs
        .iter()
        .filter(|run| !(dialect.is_platform() && is_rolled_back(run)));
    Ok(Json(
        json.map(|run| select(queued_run_json(run, &reasons, dialect), &fields))
            .collect::<Vec<Value>>()
            .into(),
    ))
}

//! `GET .../runs/{r}/events`: every row of a run, ascending.

use axum::Json;
use axum::extract::State;
use axum::http::HeaderValue;
use axum::response::IntoResponse;
use harness::runtime::runs::store::EventQuery;
use serde_json::Value;

use crate::dialect::Dialect;
use crate::extract::{Ids, Query};
use crate::queries::event_rows::{EventRows, read_rows};
use crate::queries::journaled_run::require_journaled_run;
use crate::queries::threads::{all_events, require_thread};
use crate::responses::{NEXT, event_json};
use crate::routes::{App, ResponseResult};

pub(crate) async fn run_events(
    State(state): App,
    dialect: Dialect,
    ids: Ids,
    query: Query,
) -> ResponseResult {
    let thread = ids.thread()?;
    let limit = query.number("limit", 1..=2000)?.unwrap_or(500) as usize;
    let event_query = EventQuery {
        run_id: Some(ids.run()?),
        event_types: query.list("event_types"),
        after_seq: query.number("after_seq", 0..=u64::MAX)?,
        limit,
        ..EventQuery::default()
    };
    let task = query.get("task_id");
    require_thread(&state, &thread).await?;
    require_journaled_run(&state, &thread, ids.run()?, dialect).await?;
    // The store cannot filter by task: rows are read until enough of them match.
    let EventRows { rows, is_cut, .. } = match task {
        None => read_rows(&state, &thread, event_query).await?,
        Some(_) => EventRows {
            rows: all_events(&state, &thread, event_query, |_| false).await?,
            ..EventRows::default()
        },
    };
    let next = rows.last().filter(|_| is_cut).map(|row| row.seq);
    let fits = |row: &&_| task.is_none_or(|task| task_of(row) == Some(task));
    let json = rows
        .iter()
        .filter(fits)
        .take(limit)
        .map(|row| event_json(row, row.event.content.to_value()));
    let mut response = Json(json.collect::<Vec<Value>>()).into_response();
    if let Some(next) = next {
        response.headers_mut().insert(NEXT, HeaderValue::from(next));
    }
    Ok(response)
}

fn task_of(row: &harness::runtime::runs::store::RunEvent) -> Option<&str> {
    row.event
        .metadata
        .get("task_id")
        .or_else(|| row.event.content.get("task_id"))
        .and_then(Value::as_str)
}

//! `GET .../messages` and `GET .../runs/{r}/messages`: the older lists of message rows.

use std::collections::HashMap;

use axum::Json;
use axum::extract::State;
use harness::ids::{RunId, ThreadId};
use harness::runtime::actor_context::Owner;
use harness::runtime::runs::store::{EventQuery, Order, RunEvent, category};
use serde_json::{Value, json};

use crate::dialect::Dialect;
use crate::error::ApiError;
use crate::extract::{Ids, Query};
use crate::queries::event_rows::{EventRows, read_rows};
use crate::queries::history::{add_turn_duration, durations, message_of};
use crate::queries::journaled_run::{JournaledRun, require_journaled_run};
use crate::queries::threads::{all_runs, require_any_run, require_thread};
use crate::responses::{event_json, feedback_short_json};
use crate::routes::{App, JsonResult};
use crate::state::GatewayState;

/// All message rows of a thread, including those of middlewares, without pagination.
pub(crate) async fn messages(State(state): App, ids: Ids, query: Query) -> JsonResult {
    let thread = ids.thread()?;
    require_thread(&state, &thread).await?;
    let (rows, _more) = read(&state, &thread, None, &query).await?;
    let feedback_by_run = feedback_by_run(&state, &thread).await?;
    Ok(Json(
        shape(
            &thread,
            &rows,
            &durations(&all_runs(&state, &thread).await?),
            Some(&feedback_by_run),
        )
        .into(),
    ))
}

/// The message rows of one run.
pub(crate) async fn run_messages(
    State(state): App,
    dialect: Dialect,
    ids: Ids,
    query: Query,
) -> JsonResult {
    let thread = ids.thread()?;
    require_thread(&state, &thread).await?;
    let run = require_journaled_run(&state, &thread, ids.run()?, dialect).await?;
    rows_of_run(&state, &thread, run, &query).await
}

/// The message rows of one run, found without its thread.
pub(crate) async fn messages_of_any_run(State(state): App, ids: Ids, query: Query) -> JsonResult {
    let record = require_any_run(&state, &ids.run()?).await?;
    let thread = record.thread_id.clone();
    let run = JournaledRun {
        id: record.run_id.clone(),
        record: Some(record),
    };
    rows_of_run(&state, &thread, run, &query).await
}

async fn rows_of_run(
    state: &GatewayState,
    thread: &ThreadId,
    run: JournaledRun,
    query: &Query,
) -> JsonResult {
    let (rows, more) = read(state, thread, Some(run.id), query).await?;
    let json = shape(thread, &rows, &durations(run.record.as_slice()), None);
    Ok(Json(json!({ "data": json, "has_more": more })))
}

/// The user's feedback on each run, in its short form.
pub(super) type FeedbackByRun = HashMap<RunId, Value>;

pub(super) async fn feedback_by_run(
    state: &GatewayState,
    thread: &ThreadId,
) -> Result<FeedbackByRun, ApiError> {
    let rows = state
        .thread_services
        .feedback
        .list(thread, None, &Owner::Auto)
        .await?;
    Ok(rows
        .iter()
        .map(|row| (row.run_id.clone(), feedback_short_json(row)))
        .collect())
}

async fn read(
    state: &GatewayState,
    thread: &ThreadId,
    run_id: Option<RunId>,
    query: &Query,
) -> Result<(Vec<RunEvent>, bool), ApiError> {
    let limit = query.number("limit", 1..=200)?.unwrap_or(50) as usize;
    let after_seq = query.number("after_seq", 0..=u64::MAX)?;
    let order = if after_seq.is_some() {
        Order::Oldest
    } else {
        Order::Newest
    };
    let event_query = EventQuery {
        run_id,
        category: Some(category::MESSAGE.to_owned()),
        after_seq,
        before_seq: query.number("before_seq", 1..=u64::MAX)?,
        limit: limit + 1,
        order,
        ..EventQuery::default()
    };
    let EventRows {
        mut rows, is_cut, ..
    } = read_rows(state, thread, event_query).await?;
    let is_long = rows.len() > limit;
    if is_long && order == Order::Newest {
        rows.remove(0);
    }
    rows.truncate(limit);
    Ok((rows, is_long || is_cut))
}

fn shape(
    thread: &ThreadId,
    rows: &[RunEvent],
    durations: &HashMap<String, i64>,
    feedback_by_run: Option<&FeedbackByRun>,
) -> Vec<Value> {
    let last_answers: HashMap<&RunId, u64> = rows
        .iter()
        .filter(|row| is_answer(row))
        .map(|row| (&row.event.run_id, row.seq))
        .collect();
    rows.iter()
        .map(|row| {
            let mut content =
                message_of(thread, row).map_or_else(|| row.event.content.to_value(), Value::Object);
            let is_last = last_answers.get(&row.event.run_id) == Some(&row.seq);
            if let Some(seconds) = durations.get(row.event.run_id.as_str()).filter(|_| is_last) {
                add_turn_duration(&mut content, *seconds);
            }
            let mut json = event_json(row, content);
            if let (Some(feedback_by_run), Some(fields)) = (feedback_by_run, json.as_object_mut()) {
                fields.insert(
                    "feedback".to_owned(),
                    feedback_by_run
                        .get(&row.event.run_id)
                        .filter(|_| is_last)
                        .cloned()
                        .unwrap_or_default(),
                );
            }
            json
        })
        .collect()
}

/// `true` if a row is an answer of the lead agent.
pub(super) fn is_answer(row: &RunEvent) -> bool {
    crate::queries::history::is_conversation(row)
        && row
            .event
            .content
            .get("type")
            .is_some_and(|kind| kind == "ai")
}

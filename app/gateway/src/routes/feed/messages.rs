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
use crate::history::{add_turn_duration, durations, message_of};
use crate::reads::{all_runs, require_run, require_thread};
use crate::routes::{Answer, App};
use crate::state::GatewayState;
use crate::wire::{event_json, feedback_short_json};

/// All message rows of a thread, middlewares' included, without paging facts.
pub(crate) async fn messages(State(state): App, ids: Ids, query: Query) -> Answer {
    let thread = ids.thread()?;
    require_thread(&state, &thread).await?;
    let (rows, _more) = read(&state, &thread, None, &query).await?;
    let opinions = opinions(&state, &thread).await?;
    Ok(Json(
        shape(
            &thread,
            &rows,
            &durations(&all_runs(&state, &thread).await?),
            Some(&opinions),
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
) -> Answer {
    let thread = ids.thread()?;
    require_thread(&state, &thread).await?;
    let run = require_run(&state, &thread, &ids.run()?, dialect).await?;
    let (rows, more) = read(&state, &thread, Some(run.run_id.clone()), &query).await?;
    let shown = shape(&thread, &rows, &durations(std::slice::from_ref(&run)), None);
    Ok(Json(json!({ "data": shown, "has_more": more })))
}

/// What the reader thinks of each run, as the feed shows it.
pub(super) type Opinions = HashMap<RunId, Value>;

pub(super) async fn opinions(
    state: &GatewayState,
    thread: &ThreadId,
) -> Result<Opinions, ApiError> {
    let rows = state.feedback.list(thread, None, &Owner::Auto).await?;
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
    let asked = EventQuery {
        run_id,
        category: Some(category::MESSAGE.to_owned()),
        after_seq,
        before_seq: query.number("before_seq", 1..=u64::MAX)?,
        limit: limit + 1,
        order,
        ..EventQuery::default()
    };
    let mut rows = state.events.list(thread, &asked, &Owner::Auto).await?;
    let more = rows.len() > limit;
    if more && order == Order::Newest {
        rows.remove(0);
    }
    rows.truncate(limit);
    Ok((rows, more))
}

fn shape(
    thread: &ThreadId,
    rows: &[RunEvent],
    durations: &HashMap<String, i64>,
    opinions: Option<&Opinions>,
) -> Vec<Value> {
    let last_answers: HashMap<&RunId, u64> = rows
        .iter()
        .filter(|row| is_answer(row))
        .map(|row| (&row.event.run_id, row.seq))
        .collect();
    rows.iter()
        .map(|row| {
            let mut content =
                message_of(thread, row).map_or_else(|| row.event.content.clone(), Value::Object);
            let is_last = last_answers.get(&row.event.run_id) == Some(&row.seq);
            if let Some(seconds) = durations.get(row.event.run_id.as_str()).filter(|_| is_last) {
                add_turn_duration(&mut content, *seconds);
            }
            let mut shown = event_json(row, content);
            if let (Some(opinions), Some(fields)) = (opinions, shown.as_object_mut()) {
                fields.insert(
                    "feedback".to_owned(),
                    opinions
                        .get(&row.event.run_id)
                        .filter(|_| is_last)
                        .cloned()
                        .unwrap_or_default(),
                );
            }
            shown
        })
        .collect()
}

/// Whether a row is the lead agent's answer.
pub(super) fn is_answer(row: &RunEvent) -> bool {
    crate::history::is_conversation(row)
        && row
            .event
            .content
            .get("type")
            .is_some_and(|kind| kind == "ai")
}

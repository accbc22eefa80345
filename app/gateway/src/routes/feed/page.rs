//! `GET .../messages/page`: the transcript, a page at a time from its end. A page is never short while there is more.

use std::collections::HashSet;

use axum::Json;
use axum::extract::State;
use harness::ids::{RunId, ThreadId};
use harness::runtime::actor_context::Owner;
use harness::runtime::runs::store::{EventQuery, Order, RunEvent, category};
use serde_json::{Value, json};

use super::messages::{is_answer, opinions};
use crate::error::{ApiError, Issue};
use crate::extract::{Ids, Query};
use crate::history::{Hidden, add_turn_duration, durations, is_conversation, message_of};
use crate::reads::{all_runs, hidden, require_thread};
use crate::routes::{Answer, App};
use crate::state::GatewayState;
use crate::wire::event_json;

/// How many rows are read at a time while visible ones are looked for.
const SCAN: usize = 200;

pub(crate) async fn page(State(state): App, ids: Ids, query: Query) -> Answer {
    let thread = ids.thread()?;
    let limit = query.number("limit", 1..=200)?.unwrap_or(50) as usize;
    let before = query.number("before_seq", 1..=u64::MAX)?;
    if let Some(after) = query.get("after_seq") {
        let loc = vec!["query".into(), "after_seq".into()];
        return Err(ApiError::issue(Issue::new(
            "extra_forbidden",
            loc,
            "Extra inputs are not permitted",
            &after.into(),
        )));
    }
    require_thread(&state, &thread).await?;
    let runs = all_runs(&state, &thread).await?;
    let hidden = hidden(&state, &thread, &runs).await?;
    let mut rows = newest_visible(&state, &thread, before, limit + 1, &hidden).await?;
    let has_more = rows.len() > limit;
    if has_more {
        rows.remove(0);
    }
    let durations = durations(&runs);
    let opinions = opinions(&state, &thread).await?;
    let answers = last_answers(&state, &thread, &rows, before).await?;
    let data: Vec<Value> = rows
        .iter()
        .map(|(row, content)| {
            let mut content = content.clone();
            let answered = answers.contains(&row.seq).then_some(&row.event.run_id);
            if let Some(seconds) = answered.and_then(|run| durations.get(run.as_str())) {
                add_turn_duration(&mut content, *seconds);
            }
            let mut shown = event_json(row, content);
            if let Some(fields) = shown.as_object_mut() {
                fields.insert(
                    "feedback".to_owned(),
                    answered
                        .and_then(|run| opinions.get(run))
                        .cloned()
                        .unwrap_or_default(),
                );
            }
            shown
        })
        .collect();
    let next = rows.first().filter(|_| has_more).map(|(row, _)| row.seq);
    Ok(Json(
        json!({ "data": data, "has_more": has_more, "next_before_seq": next }),
    ))
}

/// The newest `wanted` rows before `before` that a reader may see, ascending, each with its message.
async fn newest_visible(
    state: &GatewayState,
    thread: &ThreadId,
    mut before: Option<u64>,
    wanted: usize,
    hidden: &Hidden,
) -> Result<Vec<(RunEvent, Value)>, ApiError> {
    let mut found: Vec<(RunEvent, Value)> = Vec::new();
    while found.len() < wanted {
        let query = EventQuery {
            category: Some(category::MESSAGE.to_owned()),
            before_seq: before,
            limit: SCAN,
            order: Order::Newest,
            ..EventQuery::default()
        };
        let rows = state.events.list(thread, &query, &Owner::Auto).await?;
        let exhausted = rows.len() < SCAN;
        before = rows.first().map(|row| row.seq);
        let visible = rows
            .into_iter()
            .rev()
            .filter_map(|row| Some((visible(thread, &row, hidden)?, row)));
        found.extend(
            visible
                .map(|(message, row)| (row, message))
                .take(wanted - found.len()),
        );
        if exhausted {
            break;
        }
    }
    found.reverse();
    Ok(found)
}

fn visible(thread: &ThreadId, row: &RunEvent, hidden: &Hidden) -> Option<Value> {
    let message = message_of(thread, row).filter(|_| is_conversation(row))?;
    let id = message
        .get("id")
        .and_then(Value::as_str)
        .unwrap_or_default();
    (!hidden.hides(row, id)).then(|| Value::Object(message))
}

/// The rows of the page that are their run's last answer. The page's last run may go on after the page.
async fn last_answers(
    state: &GatewayState,
    thread: &ThreadId,
    rows: &[(RunEvent, Value)],
    before: Option<u64>,
) -> Result<HashSet<u64>, ApiError> {
    let mut judged: HashSet<&RunId> = HashSet::new();
    let mut answers = HashSet::new();
    for (row, _) in rows.iter().rev().filter(|(row, _)| is_answer(row)) {
        if !judged.insert(&row.event.run_id) {
            continue;
        }
        let mut last = true;
        if before.is_some() && judged.len() == 1 {
            let query = EventQuery {
                run_id: Some(row.event.run_id.clone()),
                category: Some(category::MESSAGE.to_owned()),
                after_seq: Some(row.seq),
                limit: SCAN,
                ..EventQuery::default()
            };
            last = !state
                .events
                .list(thread, &query, &Owner::Auto)
                .await?
                .iter()
                .any(is_answer);
        }
        if last {
            answers.insert(row.seq);
        }
    }
    Ok(answers)
}

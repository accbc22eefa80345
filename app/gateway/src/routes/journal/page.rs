//! `GET .../messages/page`: the transcript by pages from its end. Only the last page may be short.

use std::collections::HashSet;

use axum::Json;
use axum::extract::State;
use harness::ids::{RunId, ThreadId};
use harness::runtime::actor_context::Owner;
use harness::runtime::runs::store::{EventQuery, Order, RunEvent, category};
use serde_json::{Value, json};

use super::messages::{feedback_by_run, is_answer};
use crate::error::{ApiError, Issue};
use crate::extract::{Ids, Query};
use crate::queries::event_rows::read_rows;
use crate::queries::history::{Hidden, add_turn_duration, durations, is_conversation, message_of};
use crate::queries::threads::{all_runs, hidden, require_thread};
use crate::responses::event_json;
use crate::routes::{App, JsonResult};
use crate::state::GatewayState;

/// Rows read at a time in the search for visible ones.
const SCAN_PAGE: usize = 200;

pub(crate) async fn page(State(state): App, ids: Ids, query: Query) -> JsonResult {
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
    let (mut rows, is_cut) = newest_visible(&state, &thread, before, limit + 1, &hidden).await?;
    let is_long = rows.len() > limit;
    if is_long {
        rows.remove(0);
    }
    let has_more = is_long || is_cut;
    let durations = durations(&runs);
    let feedback_by_run = feedback_by_run(&state, &thread).await?;
    let answers = last_answers(&state, &thread, &rows, before).await?;
    let data: Vec<Value> = rows
        .iter()
        .map(|(row, content)| {
            let mut content = content.clone();
            let answered = answers.contains(&row.seq).then_some(&row.event.run_id);
            if let Some(seconds) = answered.and_then(|run| durations.get(run.as_str())) {
                add_turn_duration(&mut content, *seconds);
            }
            let mut json = event_json(row, content);
            if let Some(fields) = json.as_object_mut() {
                fields.insert(
                    "feedback".to_owned(),
                    answered
                        .and_then(|run| feedback_by_run.get(run))
                        .cloned()
                        .unwrap_or_default(),
                );
            }
            json
        })
        .collect();
    let next = rows.first().filter(|_| has_more).map(|(row, _)| row.seq);
    Ok(Json(
        json!({ "data": data, "has_more": has_more, "next_before_seq": next }),
    ))
}

/// Returns up to `wanted` of the newest visible rows before `before`, ascending, each with its
/// message, and whether rows are missing because of their size.
async fn newest_visible(
    state: &GatewayState,
    thread: &ThreadId,
    mut before: Option<u64>,
    wanted: usize,
    hidden: &Hidden,
) -> Result<(Vec<(RunEvent, Value)>, bool), ApiError> {
    let mut is_cut = false;
    let mut found: Vec<(RunEvent, Value)> = Vec::new();
    while found.len() < wanted {
        let query = EventQuery {
            category: Some(category::MESSAGE.to_owned()),
            before_seq: before,
            limit: SCAN_PAGE,
            order: Order::Newest,
            ..EventQuery::default()
        };
        let part = read_rows(state, thread, query).await?;
        let (rows, exhausted) = (part.rows, part.is_last);
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
        is_cut = part.is_cut && !found.is_empty();
        if exhausted || is_cut {
            break;
        }
    }
    found.reverse();
    Ok((found, is_cut))
}

fn visible(thread: &ThreadId, row: &RunEvent, hidden: &Hidden) -> Option<Value> {
    let message = message_of(thread, row).filter(|_| is_conversation(row))?;
    let id = message
        .get("id")
        .and_then(Value::as_str)
        .unwrap_or_default();
    (!hidden.hides(row, id)).then(|| Value::Object(message))
}

/// Returns the seqs of the rows that are their run's last answer. The run of the newest answer may
/// continue after the page, so its later rows are read too.
async fn last_answers(
    state: &GatewayState,
    thread: &ThreadId,
    rows: &[(RunEvent, Value)],
    before: Option<u64>,
) -> Result<HashSet<u64>, ApiError> {
    let mut seen_runs: HashSet<&RunId> = HashSet::new();
    let mut answers = HashSet::new();
    for (row, _) in rows.iter().rev().filter(|(row, _)| is_answer(row)) {
        if !seen_runs.insert(&row.event.run_id) {
            continue;
        }
        let mut last = true;
        if before.is_some() && seen_runs.len() == 1 {
            let query = EventQuery {
                run_id: Some(row.event.run_id.clone()),
                category: Some(category::MESSAGE.to_owned()),
                after_seq: Some(row.seq),
                limit: SCAN_PAGE,
                ..EventQuery::default()
            };
            last = !state
                .run_services
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

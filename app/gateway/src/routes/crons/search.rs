//! `POST /runs/crons/search` and `/count`.

use axum::Json;
use axum::extract::State;
use deerflow_domain::crons::CronSearch;
use harness::ids::ThreadId;
use harness::runtime::actor_context::effective_user_id;
use serde_json::json;
use uuid::Uuid;

use crate::dialect::Dialect;
use crate::error::ApiError;
use crate::extract::{Body, Issues};
use crate::requests::bodies;
use crate::responses::{cron_json, select};
use crate::routes::paged_list::PagedList;
use crate::routes::{App, JsonResult, ResponseResult};

pub(crate) async fn search(State(state): App, body: Body<bodies::CronSearch>) -> ResponseResult {
    let (mut search, fields) = read_search(body)?;
    let user = effective_user_id();
    let mut list = PagedList::page(search.offset, search.limit);
    while let Some(part) = list.next_part() {
        (search.offset, search.limit) = (part.offset, part.limit);
        let crons = state.schedules.crons.search(&user, &search).await?;
        list.add(part, &crons, |cron| Some(select(cron_json(cron), &fields)))?;
    }
    Ok(list.into_page())
}

pub(crate) async fn count(State(state): App, body: Body<bodies::CronCount>) -> JsonResult {
    // Clients may send the other fields of a search.
    let (search, _) = read_search(Body::new(body.into_map(), Dialect::Platform))?;
    Ok(Json(json!(
        state
            .schedules
            .crons
            .count(&effective_user_id(), &search)
            .await?
    )))
}

/// Reads a search, and the fields to return.
fn read_search(body: Body<bodies::CronSearch>) -> Result<(CronSearch, Vec<String>), ApiError> {
    let (body, mut issues) = body.parts();
    let thread = read_uuid(body.thread_id, "thread_id", &mut issues);
    let search = CronSearch {
        assistant_id: read_uuid(body.assistant_id, "assistant_id", &mut issues)
            .map(|id| id.to_string()),
        thread_id: thread.map(ThreadId::from),
        enabled: body.enabled,
        metadata: body.metadata.unwrap_or_default(),
        sort_by: body.sort_by.map(|word| word.0).unwrap_or_default(),
        ascending: body.sort_order.is_some_and(|word| word.0),
        limit: body.limit.unwrap_or(10) as usize,
        offset: body.offset.unwrap_or_default() as usize,
    };
    issues.finish()?;
    Ok((search, body.select.unwrap_or_default()))
}

fn read_uuid(text: Option<String>, key: &str, issues: &mut Issues) -> Option<Uuid> {
    let text = text?;
    Uuid::parse_str(&text).ok().or_else(|| {
        issues.refuse(
            "uuid_type",
            key,
            "Input should be a valid UUID",
            &text.into(),
        )
    })
}

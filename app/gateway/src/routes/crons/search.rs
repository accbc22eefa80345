//! `POST /runs/crons/search` and `/count`.

use axum::Json;
use axum::extract::State;
use axum::response::IntoResponse;
use deerflow_domain::crons::{CronSearch, CronSort};
use harness::ids::ThreadId;
use harness::runtime::actor_context::effective_user_id;
use serde_json::json;
use uuid::Uuid;

use crate::error::Issue;
use crate::extract::{Body, Fields};
use crate::responses::{cron_json, select};
use crate::routes::threads::add_headers;
use crate::routes::{App, JsonResult, ResponseResult, paginate};

const SORTS: &[(&str, CronSort)] = &[
    ("created_at", CronSort::CreatedAt),
    ("updated_at", CronSort::UpdatedAt),
    ("cron_id", CronSort::CronId),
    ("assistant_id", CronSort::AssistantId),
    ("thread_id", CronSort::ThreadId),
    ("next_run_date", CronSort::NextRunDate),
    ("end_time", CronSort::EndTime),
];

const FIELDS: &[&str] = &[
    "cron_id",
    "assistant_id",
    "thread_id",
    "on_run_completed",
    "end_time",
    "schedule",
    "timezone",
    "created_at",
    "updated_at",
    "user_id",
    "payload",
    "next_run_date",
    "metadata",
    "enabled",
];

pub(crate) async fn search(State(state): App, Body(mut body): Body) -> ResponseResult {
    let mut search = read_search(&mut body);
    let fields = body.texts("select").unwrap_or_default();
    if let Some(unknown) = fields
        .iter()
        .find(|field| !FIELDS.contains(&field.as_str()))
    {
        let loc = vec!["body".into(), "select".into()];
        body.push(Issue::new(
            "literal_error",
            loc,
            format!("Input should be one of {FIELDS:?}"),
            &unknown.as_str().into(),
        ));
    }
    body.finish()?;
    let limit = search.limit;
    search.limit += 1;
    let matches = state.crons.search(&effective_user_id(), &search).await?;
    let (matches, headers) = paginate(matches, search.offset, limit);
    let page: Vec<_> = matches
        .iter()
        .map(|cron| select(cron_json(cron), &fields))
        .collect();
    let mut response = Json(page).into_response();
    add_headers(&mut response, headers);
    Ok(response)
}

pub(crate) async fn count(State(state): App, Body(mut body): Body) -> JsonResult {
    let search = read_search(&mut body);
    body.finish()?;
    Ok(Json(json!(
        state.crons.count(&effective_user_id(), &search).await?
    )))
}

fn read_search(body: &mut Fields) -> CronSearch {
    let thread = read_uuid(body, "thread_id");
    CronSearch {
        assistant_id: read_uuid(body, "assistant_id").map(|id| id.to_string()),
        thread_id: thread.map(ThreadId::from),
        enabled: body.flag("enabled"),
        metadata: body.object("metadata").unwrap_or_default(),
        sort_by: body.word("sort_by", SORTS).unwrap_or_default(),
        ascending: body
            .word("sort_order", &[("asc", true), ("desc", false)])
            .unwrap_or_default(),
        limit: body.number("limit", 1..=1_000).unwrap_or(10) as usize,
        offset: body
            .number("offset", 0..=u64::from(u32::MAX))
            .unwrap_or_default() as usize,
    }
}

fn read_uuid(body: &mut Fields, key: &str) -> Option<Uuid> {
    let text = body.text(key)?;
    Uuid::parse_str(&text).ok().or_else(|| {
        body.refuse(
            "uuid_type",
            key,
            "Input should be a valid UUID",
            &text.into(),
        )
    })
}

//! `POST /threads/search` and `/threads/count`.

use axum::Json;
use axum::extract::State;
use axum::response::IntoResponse;
use deerflow_domain::threads::{ThreadRecord, ThreadSearch, ThreadSort};
use harness::runtime::actor_context::Owner;
use harness::runtime::runs::ThreadStatus;
use serde_json::{Map, Value, json};

use super::add_headers;
use crate::dialect::Dialect;
use crate::error::{ApiError, Issue};
use crate::extract::{Fields, OptionalBody, parse_thread_id};
use crate::reads::thread_facts;
use crate::routes::{Answer, App, Reply, paged};
use crate::state::GatewayState;
use crate::wire::{ThreadFacts, select, thread_json};

/// The words of the status filter; DeerFlow's older ones are understood too.
const STATUSES: &[(&str, ThreadStatus)] = &[
    ("idle", ThreadStatus::Idle),
    ("busy", ThreadStatus::Busy),
    ("running", ThreadStatus::Busy),
    ("interrupted", ThreadStatus::Interrupted),
    ("error", ThreadStatus::Error),
    ("timeout", ThreadStatus::Error),
];

const SORTS: &[(&str, ThreadSort)] = &[
    ("updated_at", ThreadSort::UpdatedAt),
    ("state_updated_at", ThreadSort::UpdatedAt),
    ("created_at", ThreadSort::CreatedAt),
    ("thread_id", ThreadSort::ThreadId),
    ("status", ThreadSort::Status),
];

const FIELDS: &[&str] = &[
    "thread_id",
    "created_at",
    "updated_at",
    "state_updated_at",
    "metadata",
    "config",
    "context",
    "status",
    "values",
    "interrupts",
    "error",
];

pub(crate) async fn search(State(state): App, dialect: Dialect, OptionalBody(mut body): OptionalBody) -> Reply {
    let search = read_search(&mut body, dialect)?;
    let fields = read_select(&mut body, dialect);
    let extract = body.object("extract").filter(|_| dialect.is_platform()).unwrap_or_default();
    body.finish()?;
    let one_more = ThreadSearch { limit: search.limit + 1, ..search.clone() };
    let (records, headers) = paged(state.threads.search(&one_more, &Owner::Auto).await?, search.offset, search.limit);
    let mut page = Vec::with_capacity(records.len());
    for record in &records {
        let facts = listed_facts(&state, record, dialect, &fields).await?;
        let mut thread = select(thread_json(record, facts, dialect), &fields);
        if let (false, Some(map)) = (extract.is_empty(), thread.as_object_mut()) {
            map.insert("extracted".to_owned(), extracted(record, &extract));
        }
        page.push(thread);
    }
    let mut response = Json(page).into_response();
    add_headers(&mut response, headers);
    Ok(response)
}

pub(crate) async fn count(State(state): App, dialect: Dialect, OptionalBody(mut body): OptionalBody) -> Answer {
    let search = read_search(&mut body, dialect)?;
    body.finish()?;
    Ok(Json(json!(state.threads.count(&search, &Owner::Auto).await?)))
}

fn read_search(body: &mut Fields, dialect: Dialect) -> Result<ThreadSearch, ApiError> {
    let metadata = body.object("metadata").unwrap_or_default();
    check_metadata(body, &metadata);
    let limit = body.number("limit", 1..=1000).unwrap_or_else(|| dialect.search_limit());
    let offset = body.number("offset", 0..=u64::from(u32::MAX)).unwrap_or_default();
    let ids = body.texts("ids").unwrap_or_default();
    if let Some(values) = body.value("values").filter(|values| values.as_object().is_none_or(|values| !values.is_empty())).cloned() {
        // Ignoring the filter would find threads that were not asked for.
        let loc = vec!["body".into(), "values".into()];
        body.push(Issue::new("unsupported_filter", loc, "threads cannot be searched by values", &values));
    }
    Ok(ThreadSearch {
        ids: ids.iter().map(|id| parse_thread_id(id, dialect, "body")).collect::<Result<_, _>>()?,
        metadata,
        status: body.word("status", STATUSES),
        sort_by: body.word("sort_by", SORTS).unwrap_or_default(),
        ascending: body.word("sort_order", &[("asc", true), ("desc", false), ("ASC", true), ("DESC", false)]).unwrap_or_default(),
        pinned_first: dialect == Dialect::DeerFlow,
        limit: limit as usize,
        offset: offset as usize,
    })
}

/// Filters go into queries of the store: only keys and values that every store compares in the same way.
fn check_metadata(body: &mut Fields, metadata: &Map<String, Value>) {
    let plain = |key: &str| !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_');
    let wrong: Vec<String> = metadata
        .iter()
        .filter_map(|(key, value)| match value {
            _ if !plain(key) => Some(format!("'{}' (unsafe key)", key.chars().take(60).collect::<String>())),
            Value::Array(_) => Some(format!("'{key}' (unsupported value type list)")),
            Value::Object(_) => Some(format!("'{key}' (unsupported value type dict)")),
            Value::Number(number) if number.as_i64().is_none() && !number.is_f64() => Some(format!("'{key}' (integer out of range)")),
            _ => None,
        })
        .collect();
    if !wrong.is_empty() {
        let text = format!("Value error, Invalid metadata filter entries: {}", wrong.join(", "));
        let loc = vec!["body".into(), "metadata".into()];
        body.push(Issue::new("value_error", loc, text, &Value::Object(metadata.clone())).ctx(json!({ "error": {} })));
    }
}

/// DeerFlow's search always gives whole rows.
fn read_select(body: &mut Fields, dialect: Dialect) -> Vec<String> {
    if !dialect.is_platform() {
        return Vec::new();
    }
    body.names("select", FIELDS).unwrap_or_default()
}

/// DeerFlow lists titles only, from the row; the platform shows whole values unless they are not selected.
async fn listed_facts(state: &GatewayState, record: &ThreadRecord, dialect: Dialect, fields: &[String]) -> Result<ThreadFacts, ApiError> {
    if !dialect.is_platform() {
        let title = record.title.as_ref().map(|title| ("title".to_owned(), Value::from(title.as_str())));
        return Ok(ThreadFacts { values: Some(title.into_iter().collect()), ..ThreadFacts::default() });
    }
    let wanted = |name: &str| fields.is_empty() || fields.iter().any(|field| field == name);
    if ["values", "interrupts", "error"].into_iter().any(wanted) {
        thread_facts(state, record, dialect).await
    } else {
        Ok(ThreadFacts::default())
    }
}

/// `{"alias": "metadata.x.y"}` as `{"alias": <value>}`.
fn extracted(record: &ThreadRecord, wanted: &Map<String, Value>) -> Value {
    let look_up = |path: &str| {
        let pointer: String = path.strip_prefix("metadata.")?.split('.').map(|part| format!("/{part}")).collect();
        Value::Object(record.metadata.clone()).pointer(&pointer).cloned()
    };
    wanted.iter().map(|(alias, path)| (alias.clone(), path.as_str().and_then(look_up).unwrap_or_default())).collect::<Map<_, _>>().into()
}

//! `POST /threads/search` and `/threads/count`.

use std::collections::HashMap;

use axum::Json;
use axum::extract::State;
use axum::response::IntoResponse;
use deerflow_domain::containment::facts;
use deerflow_domain::threads::{AssistantFilter, ThreadRecord, ThreadSearch, ThreadSort};
use harness::runtime::actor_context::Owner;
use harness::runtime::runs::ThreadStatus;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::add_headers;
use super::options::{Segment, extracted, read_extract};
use crate::assistants::defaults;
use crate::dialect::Dialect;
use crate::error::{ApiError, Issue};
use crate::extract::{Fields, OptionalBody, parse_thread_id};
use crate::routes::{Answer, App, Reply, paged};
use crate::state::GatewayState;
use crate::wire::{RawValues, Shown, ThreadFacts, select, thread_json};

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
    ("state_updated_at", ThreadSort::StateUpdatedAt),
    ("created_at", ThreadSort::CreatedAt),
    ("thread_id", ThreadSort::ThreadId),
    ("status", ThreadSort::Status),
];

/// The most entries that a filter may have, those inside of others counted too: each is a condition of a query.
const MOST_FILTERS: usize = 100;
/// The most ids that may be asked for.
const MOST_IDS: usize = 10_000;

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

pub(crate) async fn search(
    State(state): App,
    dialect: Dialect,
    OptionalBody(mut body): OptionalBody,
) -> Reply {
    let search = read_search(&state, &mut body, dialect).await?;
    let fields = read_select(&mut body, dialect);
    let extract = if dialect.is_platform() {
        read_extract(&mut body)
    } else {
        Vec::new()
    };
    body.finish()?;
    let one_more = ThreadSearch {
        limit: search.limit + 1,
        ..search.clone()
    };
    let (records, headers) = paged(
        state.threads.search(&one_more, &Owner::Auto).await?,
        search.offset,
        search.limit,
    );
    let page = match dialect {
        Dialect::DeerFlow => records
            .iter()
            .map(|record| {
                Shown::new(
                    thread_json(record, ThreadFacts::title_of(record), dialect),
                    None,
                )
            })
            .collect(),
        Dialect::Platform => platform_page(&state, &records, &fields, &extract).await?,
    };
    let mut response = Json(page).into_response();
    add_headers(&mut response, headers);
    Ok(response)
}

pub(crate) async fn count(
    State(state): App,
    dialect: Dialect,
    OptionalBody(mut body): OptionalBody,
) -> Answer {
    let search = read_search(&state, &mut body, dialect).await?;
    body.finish()?;
    Ok(Json(json!(
        state.threads.count(&search, &Owner::Auto).await?
    )))
}

async fn read_search(
    state: &GatewayState,
    body: &mut Fields,
    dialect: Dialect,
) -> Result<ThreadSearch, ApiError> {
    let metadata = body.object("metadata").unwrap_or_default();
    let limit = body
        .number("limit", 1..=1000)
        .unwrap_or_else(|| dialect.search_limit());
    let offset = body
        .number("offset", 0..=u64::from(u32::MAX))
        .unwrap_or_default();
    let ids = body.texts("ids").unwrap_or_default();
    if ids.len() > MOST_IDS {
        let _none: Option<()> = body.refuse(
            "too_long",
            "ids",
            format!("ids should have at most {MOST_IDS} items"),
            &ids.len().into(),
        );
    }
    let mut search = ThreadSearch {
        ids: ids
            .iter()
            .map(|id| parse_thread_id(id, dialect, "body"))
            .collect::<Result<_, _>>()?,
        status: body.word("status", STATUSES),
        sort_by: body.word("sort_by", SORTS).unwrap_or_default(),
        ascending: body
            .word(
                "sort_order",
                &[
                    ("asc", true),
                    ("desc", false),
                    ("ASC", true),
                    ("DESC", false),
                ],
            )
            .unwrap_or_default(),
        limit: limit as usize,
        offset: offset as usize,
        ..ThreadSearch::default()
    };
    refuse_many(body, "metadata", &metadata);
    match dialect {
        Dialect::DeerFlow => {
            check_metadata(body, &metadata);
            refuse_values(
                body,
                body.value("values")
                    .cloned()
                    .filter(|values| values.as_object().is_none_or(|values| !values.is_empty())),
            );
            search.metadata = metadata;
            search.pinned_first = true;
            if search.sort_by == ThreadSort::StateUpdatedAt {
                search.sort_by = ThreadSort::UpdatedAt;
            }
        }
        Dialect::Platform => {
            search.values = body.object("values").unwrap_or_default();
            refuse_values(body, search.values.get("messages").cloned());
            refuse_many(body, "values", &search.values);
            read_assistant(state, metadata, &mut search).await;
        }
    }
    Ok(search)
}

/// Refuses a filter with more entries than a query should have conditions.
fn refuse_many(body: &mut Fields, key: &str, filter: &Map<String, Value>) {
    let entries = facts(filter, MOST_FILTERS + 1).len();
    if entries > MOST_FILTERS {
        let text = format!("{key} should have at most {MOST_FILTERS} entries in all");
        let _none: Option<()> = body.refuse("too_long", key, text, &entries.into());
    }
}

/// Ignoring a filter would find threads that were not asked for.
fn refuse_values(body: &mut Fields, values: Option<Value>) {
    if let Some(values) = values {
        let loc = vec!["body".into(), "values".into()];
        body.push(Issue::new(
            "unsupported_filter",
            loc,
            "threads cannot be searched by these values",
            &values,
        ));
    }
}

/// A thread's graph and assistant are shown in its metadata and kept beside it.
async fn read_assistant(
    state: &GatewayState,
    mut metadata: Map<String, Value>,
    search: &mut ThreadSearch,
) {
    if let Some(graph) = metadata.get("graph_id").and_then(Value::as_str) {
        search.graph = Some(graph.to_owned());
        metadata.shift_remove("graph_id");
    }
    if let Some(id) = metadata.get("assistant_id").and_then(Value::as_str) {
        let uuid = Uuid::parse_str(id).ok();
        let own = defaults(state)
            .await
            .into_iter()
            .find(|assistant| Some(assistant.id) == uuid);
        search.assistant = Some(AssistantFilter {
            id: id.to_owned(),
            graph: own.map(|own| own.content.graph),
        });
        metadata.shift_remove("assistant_id");
    }
    search.metadata = metadata;
}

/// Filters go into queries of the store: only keys and values that every store compares in the same way.
fn check_metadata(body: &mut Fields, metadata: &Map<String, Value>) {
    let plain = |key: &str| {
        !key.is_empty()
            && key
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
    };
    let wrong: Vec<String> = metadata
        .iter()
        .filter_map(|(key, value)| match value {
            _ if !plain(key) => Some(format!(
                "'{}' (unsafe key)",
                key.chars().take(60).collect::<String>()
            )),
            Value::Array(_) => Some(format!("'{key}' (unsupported value type list)")),
            Value::Object(_) => Some(format!("'{key}' (unsupported value type dict)")),
            Value::Number(number) if number.as_i64().is_none() && !number.is_f64() => {
                Some(format!("'{key}' (integer out of range)"))
            }
            _ => None,
        })
        .collect();
    if !wrong.is_empty() {
        let text = format!(
            "Value error, Invalid metadata filter entries: {}",
            wrong.join(", ")
        );
        let loc = vec!["body".into(), "metadata".into()];
        body.push(
            Issue::new("value_error", loc, text, &Value::Object(metadata.clone()))
                .ctx(json!({ "error": {} })),
        );
    }
}

/// DeerFlow's search always gives whole rows.
fn read_select(body: &mut Fields, dialect: Dialect) -> Vec<String> {
    if !dialect.is_platform() {
        return Vec::new();
    }
    body.names("select", FIELDS).unwrap_or_default()
}

/// Whole threads, or what is selected of them; what is in them is read at once for the page, and only if it is shown.
async fn platform_page(
    state: &GatewayState,
    records: &[ThreadRecord],
    fields: &[String],
    extract: &[(String, Vec<Segment>)],
) -> Result<Vec<Shown>, ApiError> {
    const INSIDE: [&str; 3] = ["values", "interrupts", "error"];
    let selected = fields.is_empty() || fields.iter().any(|field| INSIDE.contains(&field.as_str()));
    let looked_into = |path: &[Segment]| matches!(path.first(), Some(Segment::Key(root)) if INSIDE.contains(&root.as_str()));
    let contents = if selected || extract.iter().any(|(_, path)| looked_into(path)) {
        let ids: Vec<_> = records
            .iter()
            .map(|record| record.thread_id.clone())
            .collect();
        state.threads.contents(&ids).await?
    } else {
        HashMap::new()
    };
    let shown = |record: &ThreadRecord| {
        let content = contents.get(&record.thread_id);
        if let Some(damage) = content.and_then(|content| content.damage.as_ref()) {
            tracing::error!(thread_id = %record.thread_id, damage, "a thread is listed without its values");
        }
        let values = content
            .and_then(|content| content.state.as_ref())
            .map(RawValues::of);
        let mut thread = thread_json(
            record,
            content.map(ThreadFacts::of).unwrap_or_default(),
            Dialect::Platform,
        );
        let reads_values =
            |path: &[Segment]| matches!(path.first(), Some(Segment::Key(root)) if root == "values");
        if let Some(values) = values
            .as_ref()
            .filter(|_| extract.iter().any(|(_, path)| reads_values(path)))
        {
            thread["values"] = values.read();
        }
        let taken = extracted(&thread, extract);
        let mut thread = select(thread, fields);
        if let (false, Some(map)) = (taken.is_empty(), thread.as_object_mut()) {
            map.insert("extracted".to_owned(), taken.into());
        }
        Shown::new(thread, values)
    };
    Ok(records.iter().map(shown).collect())
}

//! `POST /threads/search` and `/threads/count`.

use std::collections::HashMap;

use axum::Json;
use axum::extract::State;
use axum::response::IntoResponse;
use deerflow_domain::containment::facts;
use deerflow_domain::threads::{
    AssistantFilter, ThreadContent, ThreadRecord, ThreadSearch, ThreadSort,
};
use harness::runtime::actor_context::Owner;
use harness::runtime::runs::ThreadStatus;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::add_headers;
use super::options::{Segment, extracted, read_extract};
use crate::dialect::Dialect;
use crate::error::{ApiError, Issue};
use crate::extract::{Body, Issues, OptionalBody, parse_thread_id};
use crate::queries::assistants::graph_with_id;
use crate::requests::bodies;
use crate::responses::{JsonList, RawValues, RawView, ThreadFacts, select, thread_json};
use crate::routes::{App, JsonResult, ResponseResult, paginate};
use crate::state::GatewayState;

/// Wire names of the status filter, including DeerFlow's older ones.
const STATUSES: &[(&str, ThreadStatus)] = &[
    ("idle", ThreadStatus::Idle),
    ("busy", ThreadStatus::Busy),
    ("running", ThreadStatus::Busy),
    ("interrupted", ThreadStatus::Interrupted),
    ("error", ThreadStatus::Error),
    ("timeout", ThreadStatus::Error),
];

/// Maximum number of entries of a filter, including nested ones: each is a condition of the query.
const MAX_FILTERS: usize = 100;
/// Maximum number of ids in a search.
const MAX_IDS: usize = 10_000;

pub(crate) async fn search(
    State(state): App,
    dialect: Dialect,
    OptionalBody(body): OptionalBody<bodies::ThreadSearch>,
) -> ResponseResult {
    let (mut body, mut issues) = body.parts();
    let fields = body.select.take().unwrap_or_default();
    let extract = read_extract(body.extract.take().unwrap_or_default(), &mut issues);
    let search = read_search(&state, body, &mut issues, dialect).await?;
    issues.finish()?;
    let one_more = ThreadSearch {
        limit: search.limit + 1,
        ..search.clone()
    };
    let (records, mut headers) = paginate(
        state
            .thread_services
            .threads
            .search(&one_more, &Owner::Auto)
            .await?,
        search.offset,
        search.limit,
    );
    if dialect.is_platform() {
        let selection = Selection { fields, extract };
        let (list, read) = platform_page(&state, &records, &selection).await?;
        if read < records.len() {
            let next = search.offset + read;
            headers = vec![
                ("x-pagination-total", (next + 1).to_string()),
                ("x-pagination-next", next.to_string()),
            ];
        }
        let mut response = list.into_response();
        add_headers(&mut response, headers);
        return Ok(response);
    }
    let to_json = |record| thread_json(record, ThreadFacts::title_of(record), dialect);
    let mut response = Json(records.iter().map(to_json).collect::<Vec<_>>()).into_response();
    add_headers(&mut response, headers);
    Ok(response)
}

pub(crate) async fn count(
    State(state): App,
    dialect: Dialect,
    OptionalBody(body): OptionalBody<bodies::ThreadCount>,
) -> JsonResult {
    // Clients may send the other fields of a search.
    let body = Body::<bodies::ThreadSearch>::new(body.into_map(), dialect);
    let (body, mut issues) = body.parts();
    let search = read_search(&state, body, &mut issues, dialect).await?;
    issues.finish()?;
    Ok(Json(json!(
        state
            .thread_services
            .threads
            .count(&search, &Owner::Auto)
            .await?
    )))
}

async fn read_search(
    state: &GatewayState,
    body: bodies::ThreadSearch,
    issues: &mut Issues,
    dialect: Dialect,
) -> Result<ThreadSearch, ApiError> {
    let metadata = body.metadata.unwrap_or_default();
    let limit = body.limit.unwrap_or_else(|| dialect.search_limit());
    let offset = body.offset.unwrap_or_default();
    let ids = body.ids.unwrap_or_default();
    issues.limit_items("ids", ids.len(), MAX_IDS);
    let mut search = ThreadSearch {
        ids: ids
            .iter()
            .map(|id| parse_thread_id(id, dialect, "body"))
            .collect::<Result<_, _>>()?,
        status: issues.word("status", &body.status, STATUSES),
        sort_by: body.sort_by.map(|word| word.0).unwrap_or_default(),
        ascending: body.sort_order.is_some_and(|word| word.0),
        limit: limit as usize,
        offset: offset as usize,
        ..ThreadSearch::default()
    };
    require_at_most(issues, "metadata", &metadata);
    match dialect {
        Dialect::DeerFlow => {
            check_metadata(issues, &metadata);
            let is_filter = |values: &Value| match values {
                Value::Null => false,
                Value::Object(values) => !values.is_empty(),
                _ => true,
            };
            refuse_values(issues, Some(body.values).filter(is_filter));
            search.metadata = metadata;
            search.pinned_first = true;
            if search.sort_by == ThreadSort::StateUpdatedAt {
                search.sort_by = ThreadSort::UpdatedAt;
            }
        }
        Dialect::Platform => {
            search.values = issues.object("values", body.values).unwrap_or_default();
            refuse_values(issues, search.values.get("messages").cloned());
            require_at_most(issues, "values", &search.values);
            read_assistant(state, metadata, &mut search).await;
        }
    }
    Ok(search)
}

/// Rejects a filter with too many entries.
fn require_at_most(issues: &mut Issues, key: &str, filter: &Map<String, Value>) {
    let entries = facts(filter, MAX_FILTERS + 1).len();
    if entries > MAX_FILTERS {
        let text = format!("{key} should have at most {MAX_FILTERS} entries in all");
        let _none: Option<()> = issues.refuse("too_long", key, text, &entries.into());
    }
}

/// Rejects an unsupported filter: ignoring it would return threads that do not match.
fn refuse_values(issues: &mut Issues, values: Option<Value>) {
    if let Some(values) = values {
        let loc = vec!["body".into(), "values".into()];
        issues.push(Issue::new(
            "unsupported_filter",
            loc,
            "threads cannot be searched by these values",
            &values,
        ));
    }
}

/// Moves graph and assistant from the metadata filter to filters of their own: on the wire they are
/// part of the metadata, in the store they are separate columns.
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
        let graph = match Uuid::parse_str(id) {
            Ok(uuid) => graph_with_id(state, uuid).await,
            Err(_) => None,
        };
        search.assistant = Some(AssistantFilter {
            id: id.to_owned(),
            graph: graph.map(|graph| graph.name),
        });
        metadata.shift_remove("assistant_id");
    }
    search.metadata = metadata;
}

/// Rejects keys and values that not every store compares in the same way.
fn check_metadata(issues: &mut Issues, metadata: &Map<String, Value>) {
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
        issues.push(
            Issue::new("value_error", loc, text, &Value::Object(metadata.clone()))
                .ctx(json!({ "error": {} })),
        );
    }
}

/// Parts of threads to return.
struct Selection {
    /// Fields; empty for all.
    fields: Vec<String>,
    /// Names and paths of single values.
    extract: Vec<(String, Vec<Segment>)>,
}

impl Selection {
    /// Returns `true` if the state of a thread is needed.
    fn reads_content(&self) -> bool {
        const INSIDE: [&str; 3] = ["values", "interrupts", "error"];
        let is_inside = |name: &str| INSIDE.contains(&name);
        self.fields.is_empty()
            || self.fields.iter().any(|field| is_inside(field))
            || self
                .extract
                .iter()
                .any(|(_, path)| starts_with(path, is_inside))
    }

    fn to_json(&self, record: &ThreadRecord, content: Option<&ThreadContent>) -> RawView {
        if let Some(damage) = content.and_then(|content| content.damage.as_ref()) {
            tracing::error!(thread_id = %record.thread_id, damage, "a listed thread has no values");
        }
        let state = content.and_then(|content| content.state.as_ref());
        let values = state.cloned().map(RawValues::from);
        let facts = content.map(ThreadFacts::of).unwrap_or_default();
        let mut thread = thread_json(record, facts, Dialect::Platform);
        let reads_values = self
            .extract
            .iter()
            .any(|(_, path)| starts_with(path, |root| root == "values"));
        if let Some(values) = values.as_ref().filter(|_| reads_values) {
            thread["values"] = values.read();
        }
        let value_at = extracted(&thread, &self.extract);
        let mut thread = select(thread, &self.fields);
        if let (false, Some(map)) = (value_at.is_empty(), thread.as_object_mut()) {
            map.insert("extracted".to_owned(), value_at.into());
        }
        RawView::new(thread, values)
    }
}

fn starts_with(path: &[Segment], is_root: impl Fn(&str) -> bool) -> bool {
    matches!(path.first(), Some(Segment::Key(root)) if is_root(root))
}

/// Number of threads whose states are read first, when their sizes are not known yet.
const FIRST_STATES: usize = 2;

/// Returns whole threads, or their selected fields, until the list is full, and how many there are.
/// Contents are read for several threads at a time, and only if they are selected.
async fn platform_page(
    state: &GatewayState,
    records: &[ThreadRecord],
    selection: &Selection,
) -> Result<(JsonList, usize), ApiError> {
    let mut list = JsonList::default();
    let mut read = 0;
    while read < records.len() && !list.is_full() {
        let rest = &records[read..];
        let part = &rest[..list.part(FIRST_STATES).min(rest.len())];
        let contents = if selection.reads_content() {
            let ids: Vec<_> = part.iter().map(|record| record.thread_id.clone()).collect();
            state.thread_services.threads.contents(&ids).await?
        } else {
            HashMap::new()
        };
        for record in part {
            let json = selection.to_json(record, contents.get(&record.thread_id));
            let pushed = list.push(&json);
            pushed.map_err(|error| ApiError::Internal(error.to_string()))?;
            read += 1;
            if list.is_full() {
                break;
            }
        }
    }
    Ok((list, read))
}

//! `POST /assistants/search` and `/assistants/count`.

use axum::Json;
use axum::extract::State;
use axum::response::IntoResponse;
use deerflow_domain::assistants::{AssistantSearch, AssistantSort};
use serde_json::{Value, json};

use crate::dialect::Dialect;
use crate::error::ApiError;
use crate::extract::{Fields, OptionalBody};
use crate::queries::assistants::{self, defaults, require_graph};
use crate::responses::{assistant_json, select};
use crate::routes::threads::add_headers;
use crate::routes::{App, JsonResult, ResponseResult, paginate};
use crate::state::GatewayState;

const SORTS: &[(&str, AssistantSort)] = &[
    ("assistant_id", AssistantSort::Id),
    ("created_at", AssistantSort::CreatedAt),
    ("updated_at", AssistantSort::UpdatedAt),
    ("name", AssistantSort::Name),
    ("graph_id", AssistantSort::Graph),
];

const FIELDS: &[&str] = &[
    "assistant_id",
    "graph_id",
    "name",
    "description",
    "config",
    "context",
    "created_at",
    "updated_at",
    "metadata",
    "version",
];

pub(crate) async fn search(
    State(state): App,
    dialect: Dialect,
    OptionalBody(mut body): OptionalBody,
) -> ResponseResult {
    let mut search = read_filter(&mut body);
    search.limit = body.number("limit", 1..=1000).unwrap_or(10) as usize;
    search.offset = body.number("offset", 0..=u64::from(u32::MAX)).unwrap_or(0) as usize;
    search.sort_by = body.word("sort_by", SORTS).unwrap_or_default();
    search.ascending = body
        .word(
            "sort_order",
            &[
                ("asc", true),
                ("desc", false),
                ("ASC", true),
                ("DESC", false),
            ],
        )
        .unwrap_or_default();
    let fields = if dialect.is_platform() {
        body.names("select", FIELDS)
    } else {
        body.texts("select")
    }
    .unwrap_or_default();
    body.finish()?;
    let one_more = AssistantSearch {
        limit: search.limit + 1,
        ..search.clone()
    };
    let matches = match dialect {
        // DeerFlow shows only the configured assistants, in their order.
        Dialect::DeerFlow => {
            let all = defaults(&state)
                .await
                .into_iter()
                .filter(|assistant| search.matches(&assistant.content));
            all.skip(search.offset).take(one_more.limit).collect()
        }
        Dialect::Platform => {
            check_graph(&state, &search).await?;
            assistants::search(&state, &one_more).await?
        }
    };
    let (page, headers) = paginate(matches, search.offset, search.limit);
    let page: Vec<Value> = page
        .iter()
        .map(|assistant| select(assistant_json(assistant, dialect), &fields))
        .collect();
    let mut response = Json(page).into_response();
    add_headers(&mut response, headers);
    Ok(response)
}

pub(crate) async fn count(
    State(state): App,
    dialect: Dialect,
    OptionalBody(mut body): OptionalBody,
) -> JsonResult {
    let search = read_filter(&mut body);
    body.finish()?;
    if !dialect.is_platform() {
        return Ok(Json(json!(defaults(&state).await.len())));
    }
    check_graph(&state, &search).await?;
    Ok(Json(json!(assistants::count(&state, &search).await?)))
}

fn read_filter(body: &mut Fields) -> AssistantSearch {
    AssistantSearch {
        graph: body.text("graph_id"),
        name: body.text("name"),
        metadata: body.object("metadata").unwrap_or_default(),
        ..AssistantSearch::default()
    }
}

async fn check_graph(state: &GatewayState, search: &AssistantSearch) -> Result<(), ApiError> {
    match &search.graph {
        Some(graph) => require_graph(state, graph).await,
        None => Ok(()),
    }
}

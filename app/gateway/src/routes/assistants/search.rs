//! `POST /assistants/search` and `/assistants/count`.

use axum::Json;
use axum::extract::State;
use deerflow_domain::assistants::{Assistant, AssistantSearch};
use serde_json::json;

use crate::dialect::Dialect;
use crate::error::ApiError;
use crate::extract::OptionalBody;
use crate::queries::assistants::{self, defaults, require_graph};
use crate::requests::bodies;
use crate::responses::{assistant_json, select};
use crate::routes::paged_list::PagedList;
use crate::routes::{App, JsonResult, ResponseResult};
use crate::state::GatewayState;

pub(crate) async fn search(
    State(state): App,
    dialect: Dialect,
    OptionalBody(body): OptionalBody<bodies::AssistantSearch>,
) -> ResponseResult {
    let body = body.valid()?;
    let search = AssistantSearch {
        graph: body.graph_id,
        name: body.name,
        metadata: body.metadata.unwrap_or_default(),
        limit: body.limit.unwrap_or(10) as usize,
        offset: body.offset.unwrap_or_default() as usize,
        sort_by: body.sort_by.map(|word| word.0).unwrap_or_default(),
        ascending: body.sort_order.is_some_and(|word| word.0),
        ..AssistantSearch::default()
    };
    let fields = body.select.unwrap_or_default();
    if dialect.is_platform() {
        check_graph(&state, &search).await?;
    }
    let mut list = PagedList::page(search.offset, search.limit);
    while let Some(part) = list.next_part() {
        let of_part = AssistantSearch {
            limit: part.limit,
            offset: part.offset,
            ..search.clone()
        };
        let found = match dialect {
            Dialect::DeerFlow => configured(&state, &of_part).await,
            Dialect::Platform => assistants::search(&state, &of_part).await?,
        };
        let to_json = |found: &Assistant| Some(select(assistant_json(found, dialect), &fields));
        list.add(part, &found, to_json)?;
    }
    Ok(list.into_page())
}

/// Returns the configured assistants, in their order: DeerFlow shows no others.
async fn configured(state: &GatewayState, search: &AssistantSearch) -> Vec<Assistant> {
    let all = defaults(state).await.into_iter();
    let matches = all.filter(|assistant| search.matches(&assistant.content));
    matches.skip(search.offset).take(search.limit).collect()
}

pub(crate) async fn count(
    State(state): App,
    dialect: Dialect,
    OptionalBody(body): OptionalBody<bodies::AssistantCount>,
) -> JsonResult {
    let body = body.valid()?;
    let search = AssistantSearch {
        graph: body.graph_id,
        name: body.name,
        metadata: body.metadata.unwrap_or_default(),
        ..AssistantSearch::default()
    };
    if !dialect.is_platform() {
        return Ok(Json(json!(defaults(&state).await.len())));
    }
    check_graph(&state, &search).await?;
    Ok(Json(json!(assistants::count(&state, &search).await?)))
}

async fn check_graph(state: &GatewayState, search: &AssistantSearch) -> Result<(), ApiError> {
    match &search.graph {
        Some(graph) => require_graph(state, graph).await,
        None => Ok(()),
    }
}

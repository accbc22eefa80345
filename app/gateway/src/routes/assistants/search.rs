//! `POST /assistants/search` and `/assistants/count`.

use axum::Json;
use axum::extract::State;
use axum::response::IntoResponse;
use deerflow_domain::assistants::AssistantSearch;
use serde_json::{Value, json};

use crate::dialect::Dialect;
use crate::error::ApiError;
use crate::extract::OptionalBody;
use crate::queries::assistants::{self, defaults, require_graph};
use crate::requests::bodies;
use crate::responses::{assistant_json, select};
use crate::routes::threads::add_headers;
use crate::routes::{App, JsonResult, ResponseResult, paginate};
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

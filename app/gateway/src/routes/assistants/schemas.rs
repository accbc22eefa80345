//! `GET /assistants/{id}/schemas`: schemas of input, output and state.

use axum::Json;
use axum::extract::State;
use serde_json::json;

use super::of_path;
use crate::dialect::Dialect;
use crate::extract::Ids;
use crate::responses::{context_schema, state_schema};
use crate::routes::{App, JsonResult};

pub(crate) async fn schemas(State(state): App, dialect: Dialect, ids: Ids) -> JsonResult {
    let assistant = of_path(&state, &ids, dialect, false).await?;
    let context = context_schema();
    Ok(Json(json!({
        "graph_id": assistant.content.graph,
        "input_schema": state_schema("Input"),
        "output_schema": state_schema("Output"),
        "state_schema": state_schema("State"),
        "config_schema": context,
        "context_schema": context,
    })))
}

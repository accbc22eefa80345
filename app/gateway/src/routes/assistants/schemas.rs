//! `GET /assistants/{id}/schemas`: what goes in, what comes out, what a thread holds.

use axum::Json;
use axum::extract::State;
use serde_json::json;

use super::of_path;
use crate::dialect::Dialect;
use crate::extract::Ids;
use crate::routes::{Answer, App};
use crate::wire::{context_schema, state_schema};

pub(crate) async fn schemas(State(state): App, dialect: Dialect, ids: Ids) -> Answer {
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

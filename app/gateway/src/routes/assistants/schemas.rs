//! `GET /assistants/{id}/schemas`: schemas of input, output and state.

use axum::Json;
use axum::extract::State;
use harness::state::Channels;
use serde_json::json;

use super::of_path;
use crate::dialect::Dialect;
use crate::extract::Ids;
use crate::responses::{context_schema, state_schema};
use crate::routes::{App, JsonResult};

pub(crate) async fn schemas(State(state): App, dialect: Dialect, ids: Ids) -> JsonResult {
    let assistant = of_path(&state, &ids, dialect, false).await?;
    let context = context_schema();
    // The schemas of an assistant that cannot run are those of the lead agent.
    let channels = state
        .agent_services
        .assistants
        .resolve(&assistant.content.graph, &assistant.content.context)
        .await
        .map_or_else(|_unknown| Channels::lead(), |agent| agent.channels());
    Ok(Json(json!({
        "graph_id": assistant.content.graph,
        "input_schema": state_schema("Input", &channels),
        "output_schema": state_schema("Output", &channels),
        "state_schema": state_schema("State", &channels),
        "config_schema": context,
        "context_schema": context,
    })))
}

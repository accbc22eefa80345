//! `GET /assistants/{id}/schemas`: schemas of input, output and state.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use harness::runtime::agent::{Agent, SchemaPart};
use harness::state::Channels;
use serde_json::{Value, json};

use super::of_path;
use crate::dialect::Dialect;
use crate::extract::Ids;
use crate::responses::{channel_schemas, context_schema, state_schema};
use crate::routes::{App, JsonResult};

pub(crate) async fn schemas(State(state): App, dialect: Dialect, ids: Ids) -> JsonResult {
    let assistant = of_path(&state, &ids, dialect, false).await?;
    let agent = state
        .agent_services
        .assistants
        .resolve(&assistant.content.graph, &assistant.content.context)
        .await;
    // The schemas of an assistant that cannot run are those of the lead agent.
    Ok(Json(schemas_json(
        &assistant.content.graph,
        agent.ok().as_ref(),
    )))
}

/// Returns the schemas of an agent.
pub(super) fn schemas_json(graph: &str, agent: Option<&Arc<dyn Agent>>) -> Value {
    let channels = agent.map_or_else(Channels::lead, |agent| agent.channels());
    let schema = |title: &str, part: SchemaPart| {
        let own = agent.and_then(|agent| agent.properties(part));
        state_schema(title, own.unwrap_or_else(|| channel_schemas(&channels)))
    };
    let context = context_schema();
    json!({
        "graph_id": graph,
        "input_schema": schema("Input", SchemaPart::Input),
        "output_schema": schema("Output", SchemaPart::Output),
        "state_schema": schema("State", SchemaPart::State),
        "config_schema": context,
        "context_schema": context,
    })
}

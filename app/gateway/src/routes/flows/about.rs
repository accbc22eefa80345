//! Descriptions of the parts of flows: schema, node kinds, adapters and assets.

use axum::Json;
use axum::extract::State;
use deerflow_domain::flows::FlowAsset;
use deerflow_flow::assets::{MemoryAssets, PromptAssetManifest, scan};
use deerflow_flow::kinds;
use harness::runtime::actor_context::effective_user_id;
use serde_json::{Value, json};

use super::errors::not_found;
use crate::extract::Query;
use crate::flows::SystemSnapshot;
use crate::guard::auth::require_admin;
use crate::routes::JsonResult;
use crate::state::AgentServices;

/// Error for users without permission.
const ADMINS_ONLY: &str = "Admin privileges required to reload system flows.";

/// Returns the JSON Schema of flow documents.
pub(crate) async fn schema() -> JsonResult {
    Ok(Json(deerflow_flow::schema::json_schema()))
}

/// Lists the adapter kinds.
pub(crate) async fn adapters(State(agents): State<AgentServices>) -> JsonResult {
    Ok(Json(json!(agents.flows.rules().adapters().metadata())))
}

/// Lists the built-in node kinds.
pub(crate) async fn node_kinds() -> JsonResult {
    Ok(Json(json!(kinds::node_kinds(None))))
}

/// Lists the prompt assets of a flow, or of the outermost system project.
pub(crate) async fn assets(State(agents): State<AgentServices>, query: Query) -> JsonResult {
    let manifest = match query.get("flowId") {
        Some(slug) => {
            let flow = agents.flows.find(&effective_user_id(), slug).await?;
            let flow = flow.ok_or_else(|| not_found(slug))?;
            manifest_of(&flow.content.assets)
        }
        None => manifest_of(&agents.flows.system().assets),
    };
    Ok(Json(manifest_json(&manifest)))
}

/// Scans the system flows.
pub(crate) async fn reload(State(agents): State<AgentServices>) -> JsonResult {
    require_admin(ADMINS_ONLY)?;
    Ok(Json(system_json(&*agents.flows.reload_system().await)))
}

fn manifest_of(assets: &[FlowAsset]) -> PromptAssetManifest {
    let file = |asset: &FlowAsset| (asset.path.clone(), asset.text.clone());
    scan(&MemoryAssets::new(assets.iter().map(file)))
}

fn manifest_json(manifest: &PromptAssetManifest) -> Value {
    let agents: Vec<Value> = manifest
        .agents
        .iter()
        .map(|(id, agent)| {
            json!({
                "agentId": id,
                "name": agent.name,
                "description": agent.description,
                "outputKind": agent.output_kind,
                "hasErrors": manifest.errors_of(id).next().is_some(),
            })
        })
        .collect();
    json!({ "agents": agents, "manifest": manifest, "errors": manifest.errors })
}

fn system_json(system: &SystemSnapshot) -> Value {
    let broken = system.flows.values().filter(|flow| !flow.errors.is_empty());
    let kept = broken.map(|flow| json!({ "file": flow.path, "errors": flow.errors }));
    let refused = system
        .problems
        .iter()
        .map(|problem| json!({ "file": problem.path, "errors": problem.errors }));
    json!({
        "flows": system.flows.keys().collect::<Vec<_>>(),
        "problems": kept.chain(refused).collect::<Vec<_>>(),
        "errors": manifest_of(&system.assets).errors,
    })
}

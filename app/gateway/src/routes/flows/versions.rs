//! Versions of a flow.

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use deerflow_domain::flows::{Expected, FlowContent};
use harness::runtime::actor_context::effective_user_id;
use serde_json::{Value, json};

use super::conditions::Precondition;
use super::errors::{changed, not_found, read_only};
use super::json::version_json;
use super::save::{prepare, save};
use super::write::saved;
use crate::error::ApiError;
use crate::extract::Ids;
use crate::flows::FlowOwner;
use crate::routes::{App, JsonResult, ResponseResult};
use crate::state::AgentServices;

/// Lists the stored versions of a flow, newest first.
pub(crate) async fn versions(State(agents): State<AgentServices>, ids: Ids) -> JsonResult {
    let slug = ids.text("flow_id");
    let versions = agents.flows.versions(&effective_user_id(), slug).await?;
    let versions = versions.ok_or_else(|| not_found(slug))?;
    let versions: Vec<Value> = versions.iter().map(version_json).collect();
    Ok(Json(json!(versions)))
}

/// Makes the content of a version the content of a new version.
pub(crate) async fn restore(State(state): App, ids: Ids, headers: HeaderMap) -> ResponseResult {
    state.observability.health.require_space()?;
    let (user, slug) = (effective_user_id(), ids.text("flow_id"));
    let flows = &state.agent_services.flows;
    let Some((owner, current)) = flows.record(&user, slug).await? else {
        return Err(not_found(slug));
    };
    if owner == FlowOwner::System {
        return Err(read_only(slug));
    }
    let condition = Precondition::of(&headers);
    if !condition.allows(&current.content_hash) {
        return Err(changed(slug));
    }
    let text = ids.text("version");
    let unknown = || ApiError::NotFound(format!("Flow '{slug}' has no such version"));
    let number: u32 = text.parse().map_err(|_| unknown())?;
    let stored = flows.version(&user, slug, Some(number)).await?;
    let stored = stored.ok_or_else(unknown)?;
    let expected = match condition {
        Precondition::None => Expected::Present,
        Precondition::OneOf(_) => Expected::Hash(current.content_hash),
    };
    let content = FlowContent::clone(&stored.content);
    let prepared = prepare(&state, slug.to_owned(), content, expected).await?;
    let record = save(&state, &user, vec![prepared.write]).await?.remove(0);
    Ok(saved(&record, &prepared.warnings))
}

//! Data that the web UI loads before the first message: models, features, limits, and disabled
//! features.

use axum::Json;
use axum::extract::State;
use harness::models::{ModelList, TokenUsageView};
use harness::runtime::actor_context::Owner;
use serde_json::{Value, json};

use super::{App, JsonResult};
use crate::error::{ApiError, truncated};
use crate::extract::Ids;
use crate::guard::permissions::rules_of_caller;

/// `GET /models`: the models that the caller's role may use.
pub(crate) async fn models(State(state): App) -> JsonResult {
    let token_usage = TokenUsageView {
        enabled: state.info.features().token_usage,
    };
    let mut models = state.info.models();
    if let Some(rules) = rules_of_caller(&*state.security.access).await? {
        models.retain(|model| rules.models.allows(&model.name));
    }
    Ok(Json(json!(ModelList {
        models,
        token_usage
    })))
}

/// `GET /models/{name}`.
pub(crate) async fn model(State(state): App, ids: Ids) -> JsonResult {
    let name = ids.text("name");
    // Also for a model that does not exist, so that the answer does not reveal which ones do.
    if let Some(rules) = rules_of_caller(&*state.security.access).await?
        && !rules.models.allows(name)
    {
        return Err(ApiError::Forbidden(format!(
            "Model '{}' is not available for your role",
            truncated(name)
        )));
    }
    let model_facts = state
        .info
        .models()
        .into_iter()
        .find(|model| model.name == name);
    let model =
        model_facts.ok_or_else(|| ApiError::NotFound(format!("Model '{name}' not found")))?;
    Ok(Json(json!(model)))
}

/// `GET /features`.
pub(crate) async fn features(State(state): App) -> Json<Value> {
    let features = state.info.features();
    Json(json!({
        "agents_api": { "enabled": features.agents_api },
        "browser_control": { "enabled": features.browser_control },
        "mcp_tasks": { "enabled": features.mcp_tasks },
    }))
}

/// `GET /suggestions/config`.
pub(crate) async fn suggestions_config(State(state): App) -> Json<Value> {
    Json(json!(state.info.suggestions()))
}

/// `GET /threads/{t}/uploads/limits`: also for a thread that does not exist yet.
pub(crate) async fn upload_limits(State(state): App, ids: Ids) -> JsonResult {
    let _known = state
        .thread_services
        .threads
        .get(&ids.thread()?, &Owner::Auto)
        .await?;
    Ok(Json(json!(state.info.uploads())))
}

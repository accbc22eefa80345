//! `POST /assistants/{id}/versions` and `/latest`.

use axum::Json;
use axum::extract::State;
use deerflow_domain::assistants::{AssistantVersion, VersionQuery};
use harness::runtime::actor_context::Owner;
use serde_json::Value;

use super::{id_of, refuse_default};
use crate::assistants::defaults;
use crate::dialect::Dialect;
use crate::error::ApiError;
use crate::extract::{Body, Ids, OptionalBody};
use crate::routes::{Answer, App};
use crate::wire::{assistant_json, version_json};

/// Newest first.
pub(crate) async fn versions(State(state): App, ids: Ids, OptionalBody(mut body): OptionalBody) -> Answer {
    let id = id_of(&ids)?;
    let query = VersionQuery {
        metadata: body.object("metadata").unwrap_or_default(),
        limit: body.number("limit", 1..=1000).unwrap_or(10) as usize,
        offset: body.number("offset", 0..=u64::from(u32::MAX)).unwrap_or(0) as usize,
    };
    body.finish()?;
    if let Some(own) = defaults(&state).await.into_iter().find(|assistant| assistant.id == id) {
        let only = AssistantVersion { id, version: own.version, content: own.content, created_at: own.created_at };
        return Ok(Json(vec![version_json(&only)].into()));
    }
    let versions = state.assistant_store.versions(id, &query, &Owner::Auto).await?;
    let versions = versions.ok_or_else(|| ApiError::AssistantNotFound(id.to_string()))?;
    Ok(Json(versions.iter().map(version_json).collect::<Vec<Value>>().into()))
}

/// Puts a version in force again.
pub(crate) async fn set_latest(State(state): App, dialect: Dialect, ids: Ids, Body(mut body): Body) -> Answer {
    let id = id_of(&ids)?;
    let version = body.number("version", 1..=u64::from(u32::MAX));
    if version.is_none() && body.value("version").is_none() {
        body.missing("version");
    }
    body.finish()?;
    refuse_default(&state, id).await?;
    let version = version.and_then(|version| u32::try_from(version).ok()).unwrap_or_default();
    let now = state.assistant_store.set_latest(id, version, &Owner::Auto, state.clock.now()).await?;
    let now = now.ok_or_else(|| ApiError::NotFound(format!("Assistant {id} or its version {version} not found")))?;
    Ok(Json(assistant_json(&now, dialect)))
}

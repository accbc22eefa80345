//! `POST /assistants/{id}/versions` and `/latest`.

use axum::Json;
use axum::extract::State;
use deerflow_domain::assistants::{AssistantVersion, VersionQuery};
use deerflow_domain::containment::contains;
use harness::runtime::actor_context::Owner;
use serde_json::Value;

use super::id_of;
use crate::dialect::Dialect;
use crate::error::ApiError;
use crate::extract::{Body, Ids, OptionalBody};
use crate::queries::assistants::AssistantEntry;
use crate::requests::bodies::{VersionChange, VersionSearch};
use crate::responses::{assistant_json, version_json};
use crate::routes::{App, JsonResult};

/// Lists the versions, newest first.
pub(crate) async fn versions(
    State(state): App,
    ids: Ids,
    OptionalBody(body): OptionalBody<VersionSearch>,
) -> JsonResult {
    let id = id_of(&ids)?;
    let body = body.valid()?;
    let query = VersionQuery {
        metadata: body.metadata.unwrap_or_default(),
        limit: body.limit.unwrap_or(10) as usize,
        offset: body.offset.unwrap_or_default() as usize,
    };
    let unknown = || ApiError::AssistantNotFound(id.to_string());
    let entry = AssistantEntry::of(&state, id).await.ok_or_else(unknown)?;
    let versions = match (
        state
            .agent_services
            .assistant_store
            .versions(entry.stored_id, &query, &Owner::Auto)
            .await?,
        entry.default,
    ) {
        (Some(versions), _) => versions,
        (None, Some(own)) => {
            let only = AssistantVersion {
                id,
                version: own.version,
                content: own.content,
                created_at: own.created_at,
            };
            let matching =
                Some(only).filter(|only| contains(&only.content.metadata, &query.metadata));
            matching.into_iter().skip(query.offset).collect()
        }
        (None, None) => return Err(unknown()),
    };
    let views = versions
        .into_iter()
        .map(|version| version_json(&AssistantVersion { id, ..version }));
    Ok(Json(views.collect::<Vec<Value>>().into()))
}

/// Restores a version.
pub(crate) async fn set_latest(
    State(state): App,
    dialect: Dialect,
    ids: Ids,
    body: Body<VersionChange>,
) -> JsonResult {
    let id = id_of(&ids)?;
    let VersionChange { version } = body.valid()?;
    let not_found =
        || ApiError::NotFound(format!("Assistant {id} or its version {version} not found"));
    let entry = AssistantEntry::of(&state, id).await.ok_or_else(not_found)?;
    let current = match state
        .agent_services
        .assistant_store
        .set_latest(
            entry.stored_id,
            version,
            &Owner::Auto,
            state.process.clock.now(),
        )
        .await?
    {
        Some(stored) => entry.with_public_id(stored),
        // The only version of an unchanged assistant.
        None => entry
            .default
            .filter(|own| own.version == version)
            .ok_or_else(not_found)?,
    };
    Ok(Json(assistant_json(&current, dialect)))
}

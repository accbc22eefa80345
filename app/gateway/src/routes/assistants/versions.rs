//! `POST /assistants/{id}/versions` and `/latest`.

use axum::Json;
use axum::extract::State;
use axum::response::IntoResponse;
use deerflow_domain::assistants::{Assistant, AssistantVersion, VersionQuery};
use deerflow_domain::containment::contains;
use harness::runtime::actor_context::Owner;
use uuid::Uuid;

use super::id_of;
use crate::dialect::Dialect;
use crate::error::ApiError;
use crate::extract::{Body, Ids, OptionalBody};
use crate::queries::assistants::AssistantEntry;
use crate::requests::bodies::{VersionChange, VersionSearch};
use crate::responses::{assistant_json, version_json};
use crate::routes::paged_list::PagedList;
use crate::routes::{App, JsonResult, ResponseResult};

/// Lists the versions, newest first.
pub(crate) async fn versions(
    State(state): App,
    ids: Ids,
    OptionalBody(body): OptionalBody<VersionSearch>,
) -> ResponseResult {
    let id = id_of(&ids)?;
    let body = body.valid()?;
    let (offset, limit) = (body.offset.unwrap_or_default(), body.limit.unwrap_or(10));
    let mut query = VersionQuery {
        metadata: body.metadata.unwrap_or_default(),
        limit: 0,
        offset: 0,
    };
    let unknown = || ApiError::AssistantNotFound(id.to_string());
    let entry = AssistantEntry::of(&state, id).await.ok_or_else(unknown)?;
    let store = &state.agent_services.assistant_store;
    let mut list = PagedList::new(offset as usize, limit as usize);
    while let Some(part) = list.next_part() {
        (query.offset, query.limit) = (part.offset, part.limit);
        let stored = store
            .versions(entry.stored_id, &query, &Owner::Auto)
            .await?;
        let versions = match (stored, &entry.default) {
            (Some(versions), _) => versions,
            (None, Some(own)) => only_version(id, own, &query),
            (None, None) => return Err(unknown()),
        };
        list.add(part, &versions, |version| Some(version_json(id, version)))?;
    }
    Ok(list.into_response())
}

/// Returns the only version of an unchanged assistant of the configuration, if it is part of the
/// query.
fn only_version(id: Uuid, own: &Assistant, query: &VersionQuery) -> Vec<AssistantVersion> {
    let is_matching = contains(&own.content.metadata, &query.metadata) && query.offset == 0;
    let only = is_matching.then(|| AssistantVersion {
        id,
        version: own.version,
        content: own.content.clone(),
        created_at: own.created_at,
    });
    only.into_iter().collect()
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

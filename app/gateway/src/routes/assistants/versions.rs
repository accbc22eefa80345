//! `POST /assistants/{id}/versions` and `/latest`.

use axum::Json;
use axum::extract::State;
use deerflow_domain::assistants::{AssistantVersion, VersionQuery};
use deerflow_domain::containment::contains;
use harness::runtime::actor_context::Owner;
use serde_json::Value;

use super::id_of;
use crate::assistants::Place;
use crate::dialect::Dialect;
use crate::error::ApiError;
use crate::extract::{Body, Ids, OptionalBody};
use crate::routes::{Answer, App};
use crate::wire::{assistant_json, version_json};

/// Newest first.
pub(crate) async fn versions(
    State(state): App,
    ids: Ids,
    OptionalBody(mut body): OptionalBody,
) -> Answer {
    let id = id_of(&ids)?;
    let query = VersionQuery {
        metadata: body.object("metadata").unwrap_or_default(),
        limit: body.number("limit", 1..=1000).unwrap_or(10) as usize,
        offset: body.number("offset", 0..=u64::from(u32::MAX)).unwrap_or(0) as usize,
    };
    body.finish()?;
    let unknown = || ApiError::AssistantNotFound(id.to_string());
    let place = Place::of(&state, id).await.ok_or_else(unknown)?;
    let versions = match (
        state
            .assistant_store
            .versions(place.kept, &query, &Owner::Auto)
            .await?,
        place.default,
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
    let shown = versions
        .into_iter()
        .map(|version| version_json(&AssistantVersion { id, ..version }));
    Ok(Json(shown.collect::<Vec<Value>>().into()))
}

/// Puts a version in force again.
pub(crate) async fn set_latest(
    State(state): App,
    dialect: Dialect,
    ids: Ids,
    Body(mut body): Body,
) -> Answer {
    let id = id_of(&ids)?;
    let version = body.number("version", 1..=u64::from(u32::MAX));
    if version.is_none() && body.value("version").is_none() {
        body.missing("version");
    }
    body.finish()?;
    let version = version
        .and_then(|version| u32::try_from(version).ok())
        .unwrap_or_default();
    let not_found =
        || ApiError::NotFound(format!("Assistant {id} or its version {version} not found"));
    let place = Place::of(&state, id).await.ok_or_else(not_found)?;
    let now = match state
        .assistant_store
        .set_latest(place.kept, version, &Owner::Auto, state.clock.now())
        .await?
    {
        Some(stored) => place.shown(stored),
        // The only version of one that nobody has changed.
        None => place
            .default
            .filter(|own| own.version == version)
            .ok_or_else(not_found)?,
    };
    Ok(Json(assistant_json(&now, dialect)))
}

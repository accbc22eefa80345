//! `POST /assistants`, `PATCH` and `DELETE /assistants/{id}`.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use deerflow_domain::assistants::{
    AssistantContent, AssistantPatch, CreatedAssistant, NewAssistant,
};
use deerflow_domain::threads::{AssistantFilter, ThreadSearch};
use harness::runtime::actor_context::{Owner, required_user_id};
use uuid::Uuid;

use super::{id_of, read_setup};
use crate::dialect::Dialect;
use crate::error::ApiError;
use crate::extract::{Body, Ids, Query};
use crate::queries::assistants::{AssistantEntry, find, require_graph};
use crate::requests::bodies;
use crate::responses::assistant_json;
use crate::routes::threads::{client_metadata, delete_matching};
use crate::routes::{App, JsonResult, ResponseResult};

pub(crate) async fn create(
    State(state): App,
    dialect: Dialect,
    body: Body<bodies::AssistantCreate>,
) -> JsonResult {
    let (body, mut issues) = body.parts();
    let (config, context) = read_setup(body.config, body.context, &mut issues)?;
    issues.finish()?;
    let (graph, description) = (body.graph_id, body.description);
    let name = body.name.unwrap_or_else(|| "Untitled".to_owned());
    let metadata = client_metadata(body.metadata.unwrap_or_default(), dialect);
    let keep_existing = body.if_exists.is_some_and(|word| word.0);
    let id = match body.assistant_id {
        Some(id) => Uuid::parse_str(&id).map_err(|_| {
            ApiError::Unprocessable("Invalid assistant ID: must be a UUID".to_owned())
        })?,
        None => state.process.ids.random(),
    };
    require_graph(&state, &graph).await?;
    let exists = || ApiError::Conflict(format!("Assistant {id} already exists"));
    let entry = AssistantEntry::of(&state, id).await.ok_or_else(exists)?;
    if entry.default.is_some() {
        let existing = find(&state, id)
            .await?
            .filter(|_| keep_existing)
            .ok_or_else(exists)?;
        return Ok(Json(assistant_json(&existing, dialect)));
    }
    let content = AssistantContent {
        graph,
        name,
        description,
        config: config.unwrap_or_default(),
        context: context.unwrap_or_default(),
        metadata,
    };
    let user_id = Some(required_user_id().map_err(|error| ApiError::Internal(error.to_string()))?);
    let new = NewAssistant {
        id,
        user_id,
        content: content.mirrored(),
        at: state.process.clock.now(),
    };
    match state.agent_services.assistant_store.create(new).await? {
        CreatedAssistant::New(made) => Ok(Json(assistant_json(&made, dialect))),
        CreatedAssistant::Existing(existing) if keep_existing => {
            Ok(Json(assistant_json(&existing, dialect)))
        }
        CreatedAssistant::Existing(_) | CreatedAssistant::Taken => Err(exists()),
    }
}

pub(crate) async fn patch(
    State(state): App,
    dialect: Dialect,
    ids: Ids,
    body: Body<bodies::AssistantPatch>,
) -> JsonResult {
    let id = id_of(&ids)?;
    let (body, mut issues) = body.parts();
    let (config, context) = read_setup(body.config, body.context, &mut issues)?;
    issues.finish()?;
    let graph = body.graph_id;
    let patch = AssistantPatch {
        name: body.name,
        description: body.description,
        metadata: client_metadata(body.metadata.unwrap_or_default(), dialect),
        graph: graph.clone(),
        config,
        context,
        max_metadata_bytes: Some(state.info.field_limits().max_metadata_bytes),
    };
    if let Some(graph) = graph {
        require_graph(&state, &graph).await?;
    }
    let not_found = || ApiError::NotFound(format!("Assistant {id} not found"));
    let entry = AssistantEntry::of(&state, id).await.ok_or_else(not_found)?;
    entry.prepare(&state).await?;
    let patched = state
        .agent_services
        .assistant_store
        .patch(
            entry.stored_id,
            patch,
            &Owner::Auto,
            state.process.clock.now(),
        )
        .await?;
    Ok(Json(assistant_json(
        &entry.with_public_id(patched.ok_or_else(not_found)?),
        dialect,
    )))
}

/// With `delete_threads`, also removes the threads whose runs used the assistant, except busy ones.
pub(crate) async fn delete(State(state): App, ids: Ids, query: Query) -> ResponseResult {
    let id = id_of(&ids)?;
    let with_threads = query.flag("delete_threads")?.unwrap_or_default();
    let not_found = || ApiError::NotFound(format!("Assistant with ID {id} not found"));
    let entry = AssistantEntry::of(&state, id).await.ok_or_else(not_found)?;
    if entry.default.is_some() {
        return Err(ApiError::Forbidden(format!(
            "Assistant {id} belongs to a graph and cannot be deleted."
        )));
    }
    if with_threads {
        // Threads first: if a step fails, the assistant still exists and the request can be
        // repeated.
        find(&state, id).await?.ok_or_else(not_found)?;
        let assistant = Some(AssistantFilter {
            id: id.to_string(),
            graph: None,
        });
        delete_matching(
            &state,
            ThreadSearch {
                assistant,
                ..ThreadSearch::default()
            },
        )
        .await?;
    }
    if !state
        .agent_services
        .assistant_store
        .delete(entry.stored_id, &Owner::Auto)
        .await?
    {
        return Err(not_found());
    }
    Ok(StatusCode::NO_CONTENT.into_response())
}

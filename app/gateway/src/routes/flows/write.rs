//! Creates, changes and deletes flows.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use deerflow_domain::flows::{DeletedFlow, Expected, FlowContent, FlowRecord, SaveError, slug_of};
use deerflow_flow::finding::Finding;
use deerflow_flow::schema::Document;
use harness::runtime::actor_context::effective_user_id;
use serde_json::json;

use super::body::FlowText;
use super::conditions::{Precondition, etag};
use super::errors::{changed, not_found, read_only};
use super::json::record_json;
use super::save::{prepare, require_free_slug, save};
use crate::error::ApiError;
use crate::extract::{Ids, Query};
use crate::flows::FlowOwner;
use crate::routes::{App, ResponseResult};

/// Maximum number of attempts of a change without `If-Match`.
const MAX_ATTEMPTS: usize = 5;

/// `POST /flows`: creates a flow. Its id is `id`, else the slug of its name.
pub(crate) async fn create(State(state): App, query: Query, body: FlowText) -> ResponseResult {
    state.observability.health.require_space()?;
    let user = effective_user_id();
    let id = query.get("id").map(str::to_owned).or(body.id);
    let slug = match id {
        Some(id) => id,
        None => slug_of_text(&body.text),
    };
    let content = FlowContent::new(body.text, Vec::new());
    let prepared = prepare(&state, slug.clone(), content, Expected::Absent).await?;
    require_free_slug(&state, &user, &slug).await?;
    let record = save(&state, &user, vec![prepared.write]).await?.remove(0);
    let mut response = saved(&record, &prepared.warnings);
    *response.status_mut() = StatusCode::CREATED;
    if let Ok(location) = HeaderValue::from_str(&format!("/flows/{slug}")) {
        response.headers_mut().insert(header::LOCATION, location);
    }
    Ok(response)
}

/// Returns the slug of the name of a flow; empty if it has none.
fn slug_of_text(text: &str) -> String {
    let document = Document::read(text).ok();
    let slug = document.and_then(|document| slug_of(&document.flow.meta.name));
    slug.unwrap_or_default()
}

/// `PUT /flows/{id}`: replaces the text of a flow, whose assets stay.
pub(crate) async fn put(
    State(state): App,
    ids: Ids,
    headers: HeaderMap,
    body: FlowText,
) -> ResponseResult {
    state.observability.health.require_space()?;
    let (user, slug) = (effective_user_id(), ids.text("flow_id"));
    let (flows, condition) = (&state.agent_services.flows, Precondition::of(&headers));
    for _ in 0..MAX_ATTEMPTS {
        let Some(current) = flows.find(&user, slug).await? else {
            return Err(not_found(slug));
        };
        if current.owner == FlowOwner::System {
            return Err(read_only(slug));
        }
        if !condition.allows(&current.content_hash) {
            return Err(changed(slug));
        }
        let content = FlowContent::new(body.text.clone(), current.content.assets.clone());
        let expected = Expected::Hash(current.content_hash.clone());
        let prepared = prepare(&state, slug.to_owned(), content, expected).await?;
        match save(&state, &user, vec![prepared.write]).await {
            Ok(records) => return Ok(saved(&records[0], &prepared.warnings)),
            // The next attempt reads the assets again.
            Err(SaveError::Changed(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(ApiError::Conflict(format!(
        "Flow '{slug}' is being changed by others"
    )))
}

/// `DELETE /flows/{id}`: deletes a flow with its versions. Threads that wait in it go on.
pub(crate) async fn delete(
    State(state): App,
    ids: Ids,
    headers: HeaderMap,
) -> Result<StatusCode, ApiError> {
    let (user, slug) = (effective_user_id(), ids.text("flow_id"));
    let flows = &state.agent_services.flows;
    let Some((owner, record)) = flows.record(&user, slug).await? else {
        return Err(not_found(slug));
    };
    if owner == FlowOwner::System {
        return Err(read_only(slug));
    }
    let condition = Precondition::of(&headers);
    if !condition.allows(&record.content_hash) {
        return Err(changed(slug));
    }
    let hash = (condition != Precondition::None).then_some(record.content_hash.as_str());
    let now = state.process.clock.now();
    match flows.store().delete(&user, slug, hash, now).await? {
        DeletedFlow::Removed => Ok(StatusCode::NO_CONTENT),
        DeletedFlow::NotFound => Err(not_found(slug)),
        DeletedFlow::Changed => Err(changed(slug)),
    }
}

/// Returns the response of a stored flow.
pub(super) fn saved(record: &FlowRecord, warnings: &[Finding]) -> Response {
    let mut body = record_json(FlowOwner::User, record);
    body["warnings"] = json!(warnings);
    ([etag(&record.content_hash)], Json(body)).into_response()
}

//! `/store`: the caller's item store.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use chrono::TimeDelta;
use deerflow_domain::items::{
    Filter, Indexing, InvalidItemPath, ItemError, Namespace, NamespaceQuery, PutRequest,
    SearchRequest, validate_key,
};
use harness::models::ModelErrorKind;
use harness::runtime::actor_context::effective_user_id;
use serde_json::{Value, json};

use crate::error::ApiError;
use crate::extract::{Body, Fields, Query};
use crate::responses::{hit_json, item_json};
use crate::routes::{App, JsonResult, ResponseResult};

/// Maximum time to live of an item, in minutes: a century.
const MAX_TTL_MINUTES: f64 = 60.0 * 24.0 * 366.0 * 100.0;
const MAX_HITS: u64 = 1_000;
const MAX_OFFSET: u64 = 100_000;

/// `PUT /store/items`: replaces an item.
pub(crate) async fn put(State(state): App, Body(mut body): Body) -> ResponseResult {
    let (labels, key) = (
        required_labels(&mut body, "namespace"),
        required_key(&mut body),
    );
    let value = body.object("value");
    if body.value("value").is_none() {
        body.missing("value");
    }
    let (indexing, ttl) = (read_indexing(&mut body), read_ttl(&mut body));
    body.finish()?;
    let place = Namespace::new(labels).and_then(|namespace| match namespace.is_empty() {
        true => Err(InvalidItemPath::Empty),
        false => Ok((namespace, validate_key(key)?)),
    });
    let (namespace, key) = match place {
        Ok(place) => place,
        Err(invalid) => return Ok(plain_refusal(&invalid)),
    };
    let request = PutRequest {
        namespace,
        key,
        value: value.unwrap_or_default(),
        ttl,
        indexing,
    };
    state.items.put(&effective_user_id(), request).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// `GET /store/items?namespace=a.b&key=k`: the item, or `null`.
pub(crate) async fn get(State(state): App, query: Query) -> ResponseResult {
    let Some(key) = query.get("key").filter(|key| !key.is_empty()) else {
        return Ok((
            StatusCode::BAD_REQUEST,
            Json(json!({ "error": "Key is required" })),
        )
            .into_response());
    };
    let refresh = query.flag("refresh_ttl")?;
    let labels = query
        .get("namespace")
        .filter(|text| !text.is_empty())
        .map(|text| text.split('.').map(str::to_owned).collect());
    let namespace = match Namespace::new(labels.unwrap_or_default()) {
        Ok(namespace) => namespace,
        Err(invalid) => return Ok(plain_refusal(&invalid)),
    };
    // No stored item can have an invalid key.
    let Ok(key) = validate_key(key.to_owned()) else {
        return Ok(Json(Value::Null).into_response());
    };
    let found = state
        .items
        .get(&effective_user_id(), &namespace, &key, refresh)
        .await?;
    Ok(Json(found.map_or(Value::Null, |item| item_json(&item))).into_response())
}

/// `DELETE /store/items`: idempotent.
pub(crate) async fn delete(State(state): App, Body(mut body): Body) -> ResponseResult {
    let (labels, key) = (
        body.texts("namespace").unwrap_or_default(),
        required_key(&mut body),
    );
    body.finish()?;
    let namespace = match Namespace::new(labels) {
        Ok(namespace) => namespace,
        Err(invalid) => return Ok(plain_refusal(&invalid)),
    };
    if let Ok(key) = validate_key(key) {
        state
            .items
            .delete(&effective_user_id(), &namespace, &key)
            .await?;
    }
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// `POST /store/items/search`.
pub(crate) async fn search(State(state): App, Body(mut body): Body) -> ResponseResult {
    let labels = body.texts("namespace_prefix").unwrap_or_default();
    let filter = body.object("filter").unwrap_or_default();
    let query = body.text("query");
    let limit = body.number("limit", 1..=MAX_HITS).unwrap_or(10) as usize;
    let offset = body.number("offset", 0..=MAX_OFFSET).unwrap_or_default() as usize;
    let refresh = body.flag("refresh_ttl");
    body.finish()?;
    let filter =
        Filter::parse(filter).map_err(|unknown| ApiError::Unprocessable(unknown.to_string()))?;
    let prefix = match Namespace::new(labels) {
        Ok(prefix) => prefix,
        Err(invalid) => return Ok(plain_refusal(&invalid)),
    };
    let request = SearchRequest {
        prefix,
        filter,
        query,
        limit,
        offset,
        refresh,
    };
    let hits = state.items.search(&effective_user_id(), request).await?;
    Ok(Json(json!({ "items": hits.iter().map(hit_json).collect::<Vec<_>>() })).into_response())
}

/// `POST /store/namespaces`.
pub(crate) async fn namespaces(State(state): App, Body(mut body): Body) -> JsonResult {
    let query = NamespaceQuery {
        prefix: body.texts("prefix").unwrap_or_default(),
        suffix: body.texts("suffix").unwrap_or_default(),
        max_depth: body
            .number("max_depth", 1..=1_000)
            .map(|depth| depth as usize),
        limit: body.number("limit", 1..=MAX_HITS).unwrap_or(100) as usize,
        offset: body.number("offset", 0..=MAX_OFFSET).unwrap_or_default() as usize,
    };
    body.finish()?;
    // An invalid label matches no namespace and must not reach the query.
    let can_match =
        Namespace::new(query.prefix.iter().chain(&query.suffix).cloned().collect()).is_ok();
    let found = if can_match {
        state.items.namespaces(&effective_user_id(), &query).await?
    } else {
        Vec::new()
    };
    Ok(Json(
        json!({ "namespaces": found.iter().map(Namespace::labels).collect::<Vec<_>>() }),
    ))
}

/// The platform reports an invalid namespace or key as plain text.
fn plain_refusal(invalid: &InvalidItemPath) -> Response {
    (StatusCode::UNPROCESSABLE_ENTITY, invalid.to_string()).into_response()
}

fn required_labels(body: &mut Fields, key: &str) -> Vec<String> {
    if body.value(key).is_none() {
        body.missing(key);
    }
    body.texts(key).unwrap_or_default()
}

fn required_key(body: &mut Fields) -> String {
    body.required_text("key")
}

/// Reads `false`, or a list of field paths.
fn read_indexing(body: &mut Fields) -> Indexing {
    match body.value("index").cloned() {
        None => Indexing::AsConfigured,
        Some(Value::Bool(false)) => Indexing::Off,
        Some(Value::Array(_)) => body.texts("index").map_or(Indexing::Off, Indexing::Fields),
        Some(other) => body
            .refuse(
                "union_type",
                "index",
                "Input should be false or a list of field paths",
                &other,
            )
            .unwrap_or_default(),
    }
}

/// Reads a time to live in minutes.
fn read_ttl(body: &mut Fields) -> Option<TimeDelta> {
    let raw = body.value("ttl").cloned()?;
    match raw
        .as_f64()
        .filter(|minutes| *minutes > 0.0 && *minutes <= MAX_TTL_MINUTES)
    {
        Some(minutes) => Some(TimeDelta::microseconds((minutes * 60e6) as i64)),
        None => body.refuse(
            "number_type",
            "ttl",
            "Input should be a number of minutes above 0",
            &raw,
        ),
    }
}

impl From<ItemError> for ApiError {
    fn from(error: ItemError) -> Self {
        match error {
            ItemError::Store(error) => error.into(),
            ItemError::TooManyTexts(_) => Self::Unprocessable(error.to_string()),
            ItemError::Embedding(failed) if failed.kind == ModelErrorKind::BadRequest => {
                Self::Unprocessable("the embedding model rejected these texts".to_owned())
            }
            ItemError::Embedding(failed) => {
                tracing::warn!(error = %failed, "the embedding model failed");
                Self::Unavailable(
                    "the embedding model does not respond; nothing was changed".to_owned(),
                )
            }
            other => Self::Internal(other.to_string()),
        }
    }
}

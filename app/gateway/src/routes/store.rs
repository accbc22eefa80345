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
use crate::extract::{Body, Issues, Query};
use crate::requests::bodies::{ItemDelete, ItemPut, ItemSearch, NamespaceSearch};
use crate::responses::{hit_json, item_json};
use crate::routes::paged_list::PagedList;
use crate::routes::{App, JsonResult, ResponseResult};

/// Maximum time to live of an item, in minutes: a century.
const MAX_TTL_MINUTES: f64 = 60.0 * 24.0 * 366.0 * 100.0;

/// `PUT /store/items`: replaces an item.
pub(crate) async fn put(State(state): App, body: Body<ItemPut>) -> ResponseResult {
    let (body, mut issues) = body.parts();
    let indexing = read_indexing(&body.index, &mut issues);
    let ttl = read_ttl(&body.ttl, &mut issues);
    issues.finish()?;
    let key = body.key;
    let place = Namespace::new(body.namespace).and_then(|namespace| match namespace.is_empty() {
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
        value: body.value,
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
pub(crate) async fn delete(State(state): App, body: Body<ItemDelete>) -> ResponseResult {
    let ItemDelete { namespace, key } = body.valid()?;
    let namespace = match Namespace::new(namespace) {
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
pub(crate) async fn search(State(state): App, body: Body<ItemSearch>) -> ResponseResult {
    let body = body.valid()?;
    let labels = body.namespace_prefix.unwrap_or_default();
    let filter = Filter::parse(body.filter.unwrap_or_default())
        .map_err(|unknown| ApiError::Unprocessable(unknown.to_string()))?;
    let prefix = match Namespace::new(labels) {
        Ok(prefix) => prefix,
        Err(invalid) => return Ok(plain_refusal(&invalid)),
    };
    let offset = body.offset.unwrap_or_default() as usize;
    let nearest = state.items.embed_query(body.query).await?;
    let mut list = PagedList::new(offset, body.limit.unwrap_or(10) as usize);
    while let Some(part) = list.next_part() {
        let request = SearchRequest {
            prefix: prefix.clone(),
            filter: filter.clone(),
            nearest: nearest.clone(),
            limit: part.limit,
            offset: part.offset,
            refresh: body.refresh_ttl,
        };
        let hits = state.items.search(&effective_user_id(), request).await?;
        list.add(part, &hits, |hit| Some(hit_json(hit)))?;
    }
    Ok(list.into_object("items"))
}

/// `POST /store/namespaces`.
pub(crate) async fn namespaces(State(state): App, body: Body<NamespaceSearch>) -> JsonResult {
    let body = body.valid()?;
    let query = NamespaceQuery {
        prefix: body.prefix.unwrap_or_default(),
        suffix: body.suffix.unwrap_or_default(),
        max_depth: body.max_depth.map(|depth| depth as usize),
        limit: body.limit.unwrap_or(100) as usize,
        offset: body.offset.unwrap_or_default() as usize,
    };
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

/// Reads `false`, or a list of field paths.
fn read_indexing(raw: &Value, issues: &mut Issues) -> Indexing {
    match raw {
        Value::Null => Indexing::AsConfigured,
        Value::Bool(false) => Indexing::Off,
        Value::Array(_) => issues
            .texts("index", raw)
            .map_or(Indexing::Off, Indexing::Fields),
        other => issues
            .refuse(
                "union_type",
                "index",
                "Input should be false or a list of field paths",
                other,
            )
            .unwrap_or_default(),
    }
}

/// Reads a time to live in minutes.
fn read_ttl(raw: &Value, issues: &mut Issues) -> Option<TimeDelta> {
    if raw.is_null() {
        return None;
    }
    match raw
        .as_f64()
        .filter(|minutes| *minutes > 0.0 && *minutes <= MAX_TTL_MINUTES)
    {
        Some(minutes) => Some(TimeDelta::microseconds((minutes * 60e6) as i64)),
        None => issues.refuse(
            "number_type",
            "ttl",
            "Input should be a number of minutes above 0",
            raw,
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

//! Reads the body of a request as JSON, within the limits of size and time.

use std::time::Duration;

use axum::body::HttpBody;
use axum::extract::Request;
use futures_util::StreamExt;
use harness::runtime::compute::{Size, heavy_poll};
use serde_json::Value;

use super::unfit::{may_hold_unfit_integer, unfit_number};
use crate::dialect::Dialect;
use crate::error::ApiError;
use crate::openapi::Shape;

/// The largest body that is read, uploads aside.
pub const BODY_LIMIT: usize = 20 * 1024 * 1024;

/// The longest time in which a client may send it.
pub(crate) const BODY_TIMEOUT: Duration = Duration::from_secs(60);

/// The body, empty or JSON. For the platform null stands only where the route's component takes it.
#[tracing::instrument(name = "extract", skip_all)]
pub(super) async fn read_json(request: Request) -> Result<Option<Value>, ApiError> {
    let platform = request
        .extensions()
        .get::<Dialect>()
        .copied()
        .is_some_and(Dialect::is_platform);
    let shape = request
        .extensions()
        .get::<Shape>()
        .copied()
        .filter(|_| platform);
    refuse_declared(&request, BODY_LIMIT as u64)?;
    let bytes = tokio::time::timeout(BODY_TIMEOUT, read_body(request.into_body()))
        .await
        .map_err(|_| ApiError::TooSlow)??;
    if bytes.trim_ascii().is_empty() {
        return Ok(None);
    }
    heavy_poll(Size::bytes(bytes.len())).await;
    let body = parse(&bytes)?;
    let nulls = shape.map(|shape| shape.nulls(&body)).unwrap_or_default();
    if nulls.is_empty() {
        Ok(Some(body))
    } else {
        Err(ApiError::Invalid(nulls))
    }
}

/// Refuses a body whose declared length is above `limit` bytes before any of it is read.
///
/// # Errors
/// [`ApiError::TooLarge`].
pub(crate) fn refuse_declared(request: &Request, limit: u64) -> Result<(), ApiError> {
    if request.body().size_hint().lower() > limit {
        Err(ApiError::TooLarge(limit))
    } else {
        Ok(())
    }
}

/// The whole body, up to [`BODY_LIMIT`].
async fn read_body(body: axum::body::Body) -> Result<Vec<u8>, ApiError> {
    let mut pieces = body.into_data_stream();
    let mut bytes = Vec::new();
    while let Some(piece) = pieces.next().await {
        let piece =
            piece.map_err(|_| ApiError::BadRequest("the request body ended early".to_owned()))?;
        if bytes.len() + piece.len() > BODY_LIMIT {
            return Err(ApiError::TooLarge(BODY_LIMIT as u64));
        }
        bytes.extend_from_slice(&piece);
    }
    Ok(bytes)
}

/// The parser turns integers beyond 64 bits into floats and rejects floats beyond a double as bad syntax: both are refused here with
/// their place.
fn parse(bytes: &[u8]) -> Result<Value, ApiError> {
    // The parser gives up at 128 levels, so a deep body cannot exhaust the stack here or when it is dropped.
    let parsed = serde_json::from_slice(bytes);
    let unfit = match &parsed {
        Ok(_) if !may_hold_unfit_integer(bytes) => None,
        Ok(_) => unfit_number(bytes, "body"),
        Err(error) if error.to_string().starts_with("number out of range") => {
            unfit_number(bytes, "body")
        }
        Err(_) => None,
    };
    match unfit {
        Some(issue) => Err(ApiError::issue(issue)),
        None => parsed.map_err(|error| ApiError::InvalidJson(error.to_string())),
    }
}

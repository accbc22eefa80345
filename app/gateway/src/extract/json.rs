//! Reads a request's body as JSON, with limits of size and time.

use std::sync::Arc;
use std::time::Duration;

use axum::body::HttpBody;
use axum::extract::{FromRequest, Request};
use futures_util::StreamExt;
use harness::runtime::compute::{Size, heavy_poll};
use serde_json::Value;

use super::number_range::{may_hold_out_of_range_integer, out_of_range_number};
use crate::error::ApiError;
use crate::state::GatewayState;

/// Maximum size of a body, except uploads.
pub const BODY_LIMIT: usize = 20 * 1024 * 1024;

/// Timeout for receiving a body.
pub(crate) const BODY_TIMEOUT: Duration = Duration::from_secs(60);

/// Body of any JSON type. A body without JSON is a bad request.
#[derive(Debug)]
pub(crate) struct AnyJson(pub(crate) Value);

impl FromRequest<Arc<GatewayState>> for AnyJson {
    type Rejection = ApiError;

    async fn from_request(request: Request, _: &Arc<GatewayState>) -> Result<Self, ApiError> {
        let missing = || ApiError::BadRequest("The request body is empty.".to_owned());
        match read_json(request).await {
            Ok(value) => value.map(Self).ok_or_else(missing),
            Err(ApiError::InvalidJson(reason)) => Err(ApiError::BadRequest(format!(
                "Invalid JSON in request body: {reason}"
            ))),
            Err(error) => Err(error),
        }
    }
}

/// Reads an empty or a JSON body.
#[tracing::instrument(name = "extract", skip_all)]
pub(super) async fn read_json(request: Request) -> Result<Option<Value>, ApiError> {
    refuse_declared(&request, BODY_LIMIT as u64)?;
    let bytes = tokio::time::timeout(BODY_TIMEOUT, read_body(request.into_body()))
        .await
        .map_err(|_| ApiError::TooSlow)??;
    if bytes.trim_ascii().is_empty() {
        return Ok(None);
    }
    heavy_poll(Size::bytes(bytes.len())).await;
    parse_json(&bytes).map(Some)
}

/// Rejects a body whose declared length exceeds `limit` bytes before any of it is read.
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

/// Reads the whole body, up to [`BODY_LIMIT`].
async fn read_body(body: axum::body::Body) -> Result<Vec<u8>, ApiError> {
    let mut chunks = body.into_data_stream();
    let mut bytes = Vec::new();
    while let Some(chunk) = chunks.next().await {
        let chunk =
            chunk.map_err(|_| ApiError::BadRequest("the request body ended early".to_owned()))?;
        if bytes.len() + chunk.len() > BODY_LIMIT {
            return Err(ApiError::TooLarge(BODY_LIMIT as u64));
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

/// Parses JSON. The parser turns integers beyond 64 bits into floats and reports floats beyond a
/// double as a syntax error; both are rejected here with their location.
pub(crate) fn parse_json(bytes: &[u8]) -> Result<Value, ApiError> {
    // The parser stops at 128 levels, so a deep body cannot exhaust the stack here or when it is
    // dropped.
    let parsed = serde_json::from_slice(bytes);
    let out_of_range = match &parsed {
        Ok(_) if !may_hold_out_of_range_integer(bytes) => None,
        Ok(_) => out_of_range_number(bytes, "body"),
        Err(error) if error.to_string().starts_with("number out of range") => {
            out_of_range_number(bytes, "body")
        }
        Err(_) => None,
    };
    match out_of_range {
        Some(issue) => Err(ApiError::issue(issue)),
        None => parsed.map_err(|error| ApiError::InvalidJson(error.to_string())),
    }
}

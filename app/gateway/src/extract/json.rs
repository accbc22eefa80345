//! Reads a request's body as JSON.

use std::sync::Arc;

use axum::extract::{FromRequest, Request};
use harness::runtime::compute::{Size, heavy_poll};
use serde_json::Value;

use super::number_range::{may_hold_out_of_range_integer, out_of_range_number};
use super::parsed_size::{MAX_DEPTH, check_parsed_size};
use crate::error::ApiError;
use crate::guard::body_memory::RequestMemory;
use crate::guard::received_body::{BODY_LIMIT, receive};
use crate::state::GatewayState;

/// Maximum size of the bodies that are read before the client has proved who it is.
pub(crate) const SHORT_BODY_LIMIT: usize = 64 * 1024;

/// Body of any JSON type. A body without JSON is a bad request.
#[derive(Debug)]
pub(crate) struct AnyJson(pub(crate) Value);

impl FromRequest<Arc<GatewayState>> for AnyJson {
    type Rejection = ApiError;

    async fn from_request(request: Request, _: &Arc<GatewayState>) -> Result<Self, ApiError> {
        let missing = || ApiError::BadRequest("The request body is empty.".to_owned());
        match read_json(request, BODY_LIMIT).await {
            Ok(value) => value.map(Self).ok_or_else(missing),
            Err(ApiError::InvalidJson(reason)) => Err(ApiError::BadRequest(format!(
                "Invalid JSON in request body: {reason}"
            ))),
            Err(error) => Err(error),
        }
    }
}

/// Reads an empty body, or a JSON body of at most `limit` bytes.
#[tracing::instrument(name = "extract", skip_all)]
pub(super) async fn read_json(request: Request, limit: usize) -> Result<Option<Value>, ApiError> {
    let memory = request.extensions().get::<RequestMemory>().cloned();
    let bytes = receive(request, limit).await?;
    if bytes.trim_ascii().is_empty() {
        return Ok(None);
    }
    parse_within(&bytes, memory.as_ref()).await.map(Some)
}

/// Parses JSON off the I/O threads. Many values wait for their memory first.
pub(crate) async fn parse_within(
    bytes: &[u8],
    memory: Option<&RequestMemory>,
) -> Result<Value, ApiError> {
    heavy_poll(Size::bytes(bytes.len())).await;
    let size = check_parsed_size(bytes)?;
    if let Some(memory) = memory {
        memory.reserve_values(size).await?;
        // The wait ended the heavy poll.
        heavy_poll(Size::bytes(bytes.len())).await;
    }
    parse_checked(bytes)
}

/// Parses JSON whose size was checked. The parser turns integers beyond 64 bits into floats and
/// reports floats beyond a double as a syntax error; both are rejected here with their location.
fn parse_checked(bytes: &[u8]) -> Result<Value, ApiError> {
    // The parser stops at `MAX_DEPTH`, so a deep body cannot exhaust the stack here or when it is
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
        None => parsed.map_err(|error| ApiError::InvalidJson(syntax_error(&error))),
    }
}

/// Returns the text of a syntax error. Nesting that the parser does not accept is named with its
/// limit.
fn syntax_error(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.strip_prefix("recursion limit exceeded") {
        Some(position) => {
            format!("lists and objects are nested more than {MAX_DEPTH} levels deep{position}")
        }
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nested(levels: usize) -> String {
        "[".repeat(levels) + &"]".repeat(levels)
    }

    #[test]
    fn nesting_beyond_the_limit_is_named_with_the_limit() {
        assert!(parse_checked(nested(MAX_DEPTH).as_bytes()).is_ok());
        let error = parse_checked(nested(MAX_DEPTH + 1).as_bytes()).expect_err("too deep");
        let text = "lists and objects are nested more than 127 levels deep at line 1 column 128";
        assert_eq!(error, ApiError::InvalidJson(text.to_owned()));
    }

    #[tokio::test]
    async fn body_beyond_its_limit_is_rejected_with_the_limit() {
        let request = |body: axum::body::Body| Request::new(body);
        let text = format!("\"{}\"", "x".repeat(98));
        let read = read_json(request(text.clone().into()), 100).await;
        assert_eq!(read, Ok(Some("x".repeat(98).into())));
        assert_eq!(
            read_json(request(text.clone().into()), 99).await,
            Err(ApiError::TooLarge(99))
        );
        // Without a declared length.
        let chunk = futures_util::stream::iter([Ok::<_, std::io::Error>(text)]);
        let streamed = request(axum::body::Body::from_stream(chunk));
        assert_eq!(read_json(streamed, 99).await, Err(ApiError::TooLarge(99)));
    }
}

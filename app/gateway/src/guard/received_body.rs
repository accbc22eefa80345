//! Receives whole request bodies, with limits of size, time and memory.

use std::time::Duration;

use axum::body::{Body, BodyDataStream, Bytes, HttpBody};
use axum::extract::Request;
use axum::http::Extensions;
use futures_util::StreamExt;
use tokio::time::{Instant, timeout_at};

use super::body_memory::{RequestMemory, SMALL_TEXT};
use crate::error::ApiError;

/// Maximum size of a body, except uploads.
pub const BODY_LIMIT: usize = 20 * 1024 * 1024;

/// Timeout for receiving a body.
pub(crate) const BODY_TIMEOUT: Duration = Duration::from_secs(60);

/// Interval of the checks of the rate while nothing arrives.
const CHECK: Duration = Duration::from_secs(1);

/// Marks a request whose body was received by [`receive_early`].
#[derive(Debug, Clone, Copy)]
struct Received;

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

/// Receives the whole body. A large one waits for its memory first: for its declared length, or
/// for `limit` once it proves to be large.
///
/// # Errors
/// The body has more than `limit` bytes, ends early, or does not arrive in time, or its memory is
/// not available in time.
pub(crate) async fn receive(request: Request, limit: usize) -> Result<Bytes, ApiError> {
    refuse_declared(&request, limit as u64)?;
    let (parts, body) = request.into_parts();
    receive_body(&parts.extensions, body, limit).await
}

/// Receives the body of a request, and returns the request with it.
///
/// # Errors
/// As [`receive`].
pub(crate) async fn receive_early(request: Request, limit: usize) -> Result<Request, ApiError> {
    refuse_declared(&request, limit as u64)?;
    let (parts, body) = request.into_parts();
    let body = receive_body(&parts.extensions, body, limit).await?;
    let mut request = Request::from_parts(parts, Body::from(body));
    request.extensions_mut().insert(Received);
    Ok(request)
}

async fn receive_body(
    extensions: &Extensions,
    body: Body,
    limit: usize,
) -> Result<Bytes, ApiError> {
    let is_received = extensions.get::<Received>().is_some();
    let declared = body.size_hint().exact();
    let declared = declared.and_then(|bytes| usize::try_from(bytes).ok());
    let mut receiver = Receiver {
        memory: extensions.get().filter(|_| !is_received).cloned(),
        reserved_at: None,
        bytes: Vec::new(),
    };
    if let Some(bytes) = declared.filter(|bytes| *bytes > SMALL_TEXT) {
        receiver.reserve(bytes).await?;
    }
    receiver
        .receive(body.into_data_stream(), declared, limit)
        .await
}

/// Body of which a part has arrived.
struct Receiver {
    /// Memory that is counted; `None` if it is counted already, or not at all.
    memory: Option<RequestMemory>,
    reserved_at: Option<Instant>,
    bytes: Vec<u8>,
}

impl Receiver {
    async fn reserve(&mut self, bytes: usize) -> Result<(), ApiError> {
        if let Some(memory) = &self.memory {
            memory.reserve_text(bytes).await?;
            self.reserved_at = Some(Instant::now());
        }
        Ok(())
    }

    async fn receive(
        mut self,
        mut chunks: BodyDataStream,
        declared: Option<usize>,
        limit: usize,
    ) -> Result<Bytes, ApiError> {
        let mut deadline = Instant::now() + BODY_TIMEOUT;
        while let Some(chunk) = self.next(&mut chunks, deadline).await? {
            if self.bytes.is_empty() && Some(chunk.len()) == declared {
                return Ok(chunk);
            }
            let length = self.bytes.len() + chunk.len();
            if length > limit {
                return Err(ApiError::TooLarge(limit as u64));
            }
            if length > SMALL_TEXT && self.reserved_at.is_none() {
                let since = Instant::now();
                self.reserve(limit).await?;
                deadline += since.elapsed();
            }
            // Growth would copy the text. Memory is used when data arrives.
            match (declared, self.reserved_at) {
                (Some(declared), _) => self.bytes.reserve_exact(declared - self.bytes.len()),
                (None, Some(_)) => self.bytes.reserve_exact(limit - self.bytes.len()),
                (None, None) => {}
            }
            self.bytes.extend_from_slice(&chunk);
        }
        if let (Some(memory), Some(_)) = (&self.memory, self.reserved_at) {
            memory.shrink(self.bytes.len());
        }
        Ok(self.bytes.into())
    }

    /// Returns the next chunk.
    async fn next(
        &self,
        chunks: &mut BodyDataStream,
        deadline: Instant,
    ) -> Result<Option<Bytes>, ApiError> {
        loop {
            let until = match self.reserved_at {
                Some(_) => deadline.min(Instant::now() + CHECK),
                None => deadline,
            };
            match timeout_at(until, chunks.next()).await {
                Ok(None) => return Ok(None),
                Ok(Some(Err(_))) => {
                    let early = "the request body ended early".to_owned();
                    return Err(ApiError::BadRequest(early));
                }
                _ if self.is_too_slow() => return Err(ApiError::TooSlow),
                Ok(Some(Ok(chunk))) => return Ok(Some(chunk)),
                Err(_) if Instant::now() >= deadline => return Err(ApiError::TooSlow),
                Err(_) => {}
            }
        }
    }

    /// Reports whether the body arrives so slowly that its memory is for the users who wait.
    fn is_too_slow(&self) -> bool {
        match (&self.memory, self.reserved_at) {
            (Some(memory), Some(since)) => memory.is_too_slow(since, self.bytes.len()),
            _ => false,
        }
    }
}

#[cfg(test)]
#[path = "received_body_tests.rs"]
mod tests;

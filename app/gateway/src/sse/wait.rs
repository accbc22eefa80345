//! A JSON response that is sent when a run ends, with newlines as heartbeats.

use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::Stream;
use futures_util::future::BoxFuture;
use harness::runtime::runs::{RunError, WaitOutcome};
use harness::runtime::stream_bridge::EventData;
use serde_json::json;
use tokio::time::{Interval, MissedTickBehavior};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use super::guard::DisconnectGuard;
use crate::dialect::Dialect;
use crate::responses::{body_of_chunks, next_chunk};

struct WaitingBody {
    outcome: Option<BoxFuture<'static, Result<WaitOutcome, RunError>>>,
    /// Texts of the outcome that are not sent yet.
    ended: VecDeque<Bytes>,
    heartbeat: Interval,
    guard: Option<DisconnectGuard>,
    shutdown: Pin<Box<WaitForCancellationFutureOwned>>,
}

impl Stream for WaitingBody {
    type Item = io::Result<Bytes>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        let Some(outcome) = &mut this.outcome else {
            return Poll::Ready(next_chunk(&mut this.ended).map(Ok));
        };
        if let Some(guard) = &mut this.guard {
            guard.arm();
        }
        let ended = match outcome.as_mut().poll(cx) {
            Poll::Ready(outcome) => Some(Ok(texts_of(outcome).collect())),
            Poll::Pending if this.shutdown.as_mut().poll(cx).is_ready() => {
                Some(Err(io::Error::other("the server is shutting down")))
            }
            Poll::Pending => None,
        };
        if let Some(ended) = ended {
            this.outcome = None;
            if let Some(guard) = &mut this.guard {
                guard.disarm();
            }
            let chunk = ended.map(|ended| {
                this.ended = ended;
                next_chunk(&mut this.ended)
            });
            return Poll::Ready(chunk.transpose());
        }
        this.heartbeat
            .poll_tick(cx)
            .map(|_| Some(Ok(Bytes::from_static(b"\n"))))
    }
}

/// Returns the body for an outcome, in pieces. The status line is already sent, so a failure is
/// reported in the body.
fn texts_of(outcome: Result<WaitOutcome, RunError>) -> impl Iterator<Item = Bytes> {
    body_of(outcome)
        .into_pieces()
        .filter(|piece| !piece.is_empty())
}

fn body_of(outcome: Result<WaitOutcome, RunError>) -> EventData {
    let failed = |error: &str, message: &str| {
        let error = json!({ "__error__": { "error": error, "message": message } });
        Bytes::from(error.to_string()).into()
    };
    match outcome {
        Ok(WaitOutcome::Values(values)) => values,
        Ok(WaitOutcome::Failed { name, message, .. }) => failed(&name, &message),
        Err(RunError::NotFound(_)) => failed("HTTPException", "404: Run not found"),
        Err(error) => {
            tracing::error!(%error, "waiting for a run failed");
            failed("InternalError", "An internal error occurred")
        }
    }
}

/// Sends the headers at once, and the run's outcome when it is available.
#[tracing::instrument(name = "respond", skip_all)]
pub fn waiting_json(
    dialect: Dialect,
    location: [(HeaderName, HeaderValue); 2],
    outcome: BoxFuture<'static, Result<WaitOutcome, RunError>>,
    guard: Option<DisconnectGuard>,
    shutdown: CancellationToken,
) -> Response {
    let period = dialect.heartbeat();
    let mut heartbeat = tokio::time::interval_at(tokio::time::Instant::now() + period, period);
    heartbeat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let body = WaitingBody {
        outcome: Some(outcome),
        ended: VecDeque::new(),
        heartbeat,
        guard,
        shutdown: Box::pin(shutdown.cancelled_owned()),
    };
    outcome_response(dialect, location, Body::from_stream(body))
}

/// Returns the outcome of a run that has ended. Its size is known, so it counts towards the memory
/// of answers.
pub fn ended_json(
    dialect: Dialect,
    location: [(HeaderName, HeaderValue); 2],
    outcome: Result<WaitOutcome, RunError>,
) -> Response {
    outcome_response(
        dialect,
        location,
        body_of_chunks(texts_of(outcome).collect()),
    )
}

fn outcome_response(
    dialect: Dialect,
    location: [(HeaderName, HeaderValue); 2],
    body: Body,
) -> Response {
    let headers = [
        (
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/json"),
        ),
        // A compressing proxy would hold back the heartbeats.
        (
            header::CACHE_CONTROL,
            HeaderValue::from_static(dialect.cache_control()),
        ),
    ];
    let [content_location, location] = location;
    (headers, [content_location, location], body).into_response()
}

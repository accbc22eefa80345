//! Chat model over HTTP: calls the provider, applies the timeouts, and passes the response to the
//! decoder.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::stream;
use hyper::header::CONTENT_TYPE;
use tokio::time::{Instant, timeout_at};

use super::chunks::Chunks;
use super::client::{HttpResponse, SharedHttp};
use super::credentials::Credential;
use super::decoder::{DecodeError, Decoder};
use super::endpoint::Endpoint;
use super::http_caller::HttpCaller;
use super::wire::Wire;
use crate::{
    ChatModel, ModelEntry, ModelError, ModelErrorKind, ModelInfo, ModelRequest, ModelStream,
};
use deerflow_core::clock::Clock;
use deerflow_core::messages::MessageChunk;

/// Maximum size of an answer that is not streamed, in bytes.
const MAX_ANSWER_BYTES: usize = 32 << 20;
/// Maximum wait for the usage and the end of a stream once the answer itself is complete.
const AFTER_FINISH_TIMEOUT: Duration = Duration::from_secs(5);

/// Chat model of a provider's API.
#[derive(Debug)]
pub(crate) struct HttpChatModel<W> {
    caller: Arc<HttpCaller<W>>,
}

impl<W: Wire> HttpChatModel<W> {
    /// Creates the model of `entry`, which uses `wire` at `endpoint`.
    pub(crate) fn new(
        entry: ModelEntry,
        info: ModelInfo,
        wire: W,
        endpoint: Endpoint,
        http: SharedHttp,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self {
            caller: Arc::new(HttpCaller {
                info,
                entry,
                wire,
                endpoint,
                http,
                clock,
            }),
        }
    }
}

#[async_trait]
impl<W: Wire> ChatModel for HttpChatModel<W> {
    fn info(&self) -> &ModelInfo {
        &self.caller.info
    }

    async fn stream(&self, request: ModelRequest) -> Result<ModelStream, ModelError> {
        let credentials = &self.caller.endpoint.credentials;
        for _ in 1..credentials.len() {
            let key = self.caller.key()?;
            match (
                AnswerStream::begin(&self.caller, &request, key.as_ref()).await,
                key,
            ) {
                (Err(error), Some(key)) if may_succeed_with_another_key(&error) => {
                    tracing::warn!(%error, "provider rejected API key, trying the next");
                    credentials.rotate_from(&key);
                }
                (begun, _) => return begun.map(AnswerStream::into_stream),
            }
        }
        self.begin_with_current_key(&request)
            .await
            .map(AnswerStream::into_stream)
    }
}

impl<W: Wire> HttpChatModel<W> {
    /// Calls the provider with the current key. A token from a credentials file may be rejected
    /// because its program has just renewed it; the new token is tried once.
    async fn begin_with_current_key(
        &self,
        request: &ModelRequest,
    ) -> Result<AnswerStream<W>, ModelError> {
        let credentials = &self.caller.endpoint.credentials;
        let key = self.caller.key()?;
        let mut response = AnswerStream::begin(&self.caller, request, key.as_ref()).await;
        if matches!(&response, Err(error) if is_unauthorized(error))
            && let Some(renewed) = key.and_then(|key| credentials.renewed(&key))
        {
            response = AnswerStream::begin(&self.caller, request, Some(&renewed)).await;
        }
        response.map_err(|error| match credentials.sign_in_hint() {
            Some(sign_in_hint) if is_unauthorized(&error) => ModelError {
                message: format!("{}: {sign_in_hint}", error.message),
                ..error
            },
            _ => error,
        })
    }
}

fn is_unauthorized(error: &ModelError) -> bool {
    error.status == Some(401)
}

/// Reports whether the provider may accept another key of the same owner.
fn may_succeed_with_another_key(error: &ModelError) -> bool {
    matches!(
        error.kind,
        ModelErrorKind::Auth | ModelErrorKind::Quota | ModelErrorKind::Burst
    ) || error.status == Some(429)
}

/// Answer in progress. Dropping it closes the connection, which cancels the provider's work.
struct AnswerStream<W: Wire> {
    caller: Arc<HttpCaller<W>>,
    response: HttpResponse,
    /// Key of this call, which is redacted from errors. A key from a credentials file is not known
    /// to the endpoint.
    key: Option<Credential>,
    decoder: Decoder<W::Reader>,
    /// Bytes received so far.
    length: usize,
    /// Buffer that each step fills and empties again.
    decoded: Chunks,
    ready: VecDeque<MessageChunk>,
    deadline: Instant,
    streamed: bool,
    ended: bool,
    /// Error to return after the chunks that were decoded before it.
    failure: Option<ModelError>,
}

impl<W: Wire> AnswerStream<W> {
    /// Calls the provider and waits for the first chunk.
    async fn begin(
        caller: &Arc<HttpCaller<W>>,
        request: &ModelRequest,
        key: Option<&Credential>,
    ) -> Result<Self, ModelError> {
        let mut response = caller.post(request, key).await?;
        let kind = response
            .take_headers()
            .get(CONTENT_TYPE)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
            .to_ascii_lowercase();
        if kind.starts_with("text/html") {
            return Err(caller.error(
                ModelErrorKind::Config,
                "the server answered with a web page: check `base_url`".to_owned(),
            ));
        }
        let mut answer = Self {
            caller: Arc::clone(caller),
            response,
            key: key.cloned(),
            length: 0,
            decoder: Decoder::new(caller.wire.reader(&request.message_id)),
            decoded: Chunks::new(),
            ready: VecDeque::new(),
            deadline: Instant::now() + caller.endpoint.limits.whole,
            streamed: !kind.contains("json") || kind.contains("ndjson"),
            ended: false,
            failure: None,
        };
        let Some(first) = answer.next().await.transpose()? else {
            return Err(caller.decode_error(DecodeError::NoChoices, key));
        };
        answer.ready.push_front(first);
        Ok(answer)
    }

    fn into_stream(self) -> ModelStream {
        Box::pin(stream::unfold(self, |mut answer| async move {
            let item = answer.next().await?;
            Some((item, answer))
        }))
    }

    /// Returns the next chunk, and `None` after an error.
    async fn next(&mut self) -> Option<Result<MessageChunk, ModelError>> {
        loop {
            if let Some(chunk) = self.ready.pop_front() {
                return Some(Ok(chunk));
            }
            if self.ended || self.failure.is_some() {
                self.ended = true;
                return self.failure.take().map(Err);
            }
            if let Err(error) = self.fill().await {
                self.failure = Some(error);
            }
        }
    }

    /// Reads until a chunk is ready or the answer has ended.
    async fn fill(&mut self) -> Result<(), ModelError> {
        let mut idle_deadline = self.idle_deadline();
        let mut body = Vec::new();
        while self.ready.is_empty() && !self.ended {
            let waited = timeout_at(idle_deadline.min(self.deadline), self.response.chunk()).await;
            let bytes = match waited {
                Ok(Ok(bytes)) => bytes,
                // The answer is complete; an error of the connection does not matter.
                _ if self.decoder.is_finished() => None,
                Ok(Err(error)) => return Err(self.caller.transport_error(&error)),
                Err(_) if Instant::now() >= self.deadline => {
                    return Err(self.caller.overall_timeout());
                }
                Err(_) => return Err(self.caller.idle_timeout(self.streamed)),
            };
            let events_before = self.decoder.events();
            self.length = self
                .length
                .saturating_add(bytes.as_ref().map_or(0, |bytes| bytes.len()));
            let max = if self.streamed {
                self.caller.endpoint.limits.streamed
            } else {
                MAX_ANSWER_BYTES
            };
            let decoded = match (bytes, self.streamed) {
                _ if self.length > max => Err(DecodeError::TooLong(format!(
                    "the answer is longer than {} MiB",
                    max >> 20
                ))),
                (Some(bytes), true) => self.decoder.push(&bytes, &mut self.decoded),
                (None, true) => {
                    self.ended = true;
                    self.decoder.end(&mut self.decoded)
                }
                (Some(bytes), false) => {
                    body.extend_from_slice(&bytes);
                    Ok(())
                }
                (None, false) => {
                    self.ended = true;
                    self.decoder.whole(&body, &mut self.decoded)
                }
            };
            self.ready.extend(self.decoded.drain(..));
            decoded.map_err(|error| self.caller.decode_error(error, self.key.as_ref()))?;
            if self.decoder.is_closed() {
                self.ended = true;
                self.response.complete();
            }
            // A comment only prevents a disconnect, so it does not extend the deadline.
            if !self.streamed || self.decoder.events() != events_before {
                idle_deadline = self.idle_deadline();
            }
        }
        Ok(())
    }

    /// Returns the deadline for the next event.
    fn idle_deadline(&self) -> Instant {
        let idle = self.caller.endpoint.limits.idle;
        Instant::now()
            + if self.decoder.is_finished() {
                idle.min(AFTER_FINISH_TIMEOUT)
            } else {
                idle
            }
    }
}

#[cfg(test)]
#[path = "chat_tests.rs"]
mod tests;

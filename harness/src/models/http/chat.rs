//! The driver of one model call over HTTP: posts, waits within limits, and feeds the decoder.

use std::collections::VecDeque;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::stream;
use reqwest::Response;
use reqwest::header::{ACCEPT, CONTENT_TYPE};
use tokio::time::{Instant, timeout, timeout_at};

use super::client::SharedHttp;
use super::credentials::Credential;
use super::decoder::{Chunks, DecodeError, Decoder};
use super::endpoint::{Endpoint, header};
use super::refused::Refused;
use super::retry_after::retry_after;
use super::wire::{Call, Wire};
use crate::clock::Clock;
use crate::messages::MessageChunk;
use crate::models::{
    ChatModel, ModelEntry, ModelError, ModelErrorKind, ModelInfo, ModelRequest, ModelStream,
};

/// An answer that is not streamed, or an error page, longer than this is refused or cut.
const LONGEST_ANSWER: usize = 32 << 20;
const LONGEST_ERROR: usize = 64 << 10;
/// How long the usage and the end of a stream may keep away once the answer itself is complete.
const AFTER_FINISH: Duration = Duration::from_secs(5);
/// How much of a provider's own words goes into an error.
const MESSAGE_LENGTH: usize = 500;

/// A model behind a provider's API.
#[derive(Debug)]
pub(in crate::models) struct HttpChatModel<W> {
    asker: Arc<Asker<W>>,
}

/// What every call of the model shares.
#[derive(Debug)]
struct Asker<W> {
    info: ModelInfo,
    entry: ModelEntry,
    wire: W,
    endpoint: Endpoint,
    http: SharedHttp,
    clock: Arc<dyn Clock>,
}

impl<W: Wire> HttpChatModel<W> {
    /// The model of `entry`, which speaks `wire` at `endpoint`.
    pub(in crate::models) fn new(
        entry: ModelEntry,
        info: ModelInfo,
        wire: W,
        endpoint: Endpoint,
        http: SharedHttp,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self {
            asker: Arc::new(Asker {
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
        &self.asker.info
    }

    async fn stream(&self, request: ModelRequest) -> Result<ModelStream, ModelError> {
        let credentials = &self.asker.endpoint.credentials;
        for _ in 1..credentials.len() {
            let key = self.asker.key()?;
            match (
                Answer::begin(&self.asker, &request, key.as_ref()).await,
                key,
            ) {
                (Err(error), Some(key)) if is_about_the_key(&error) => {
                    tracing::warn!(%error, "a key was refused, the next one is tried");
                    credentials.pass_over(&key);
                }
                (begun, _) => return begun.map(Answer::into_stream),
            }
        }
        self.begin_with_last(&request)
            .await
            .map(Answer::into_stream)
    }
}

impl<W: Wire> HttpChatModel<W> {
    /// Asks with the key in use. A token from a sign-in file may be refused because its program has just renewed it: the new one
    /// is tried once.
    async fn begin_with_last(&self, request: &ModelRequest) -> Result<Answer<W>, ModelError> {
        let credentials = &self.asker.endpoint.credentials;
        let key = self.asker.key()?;
        let mut begun = Answer::begin(&self.asker, request, key.as_ref()).await;
        if matches!(&begun, Err(error) if is_unknown_key(error))
            && let Some(renewed) = key.and_then(|key| credentials.renewed(&key))
        {
            begun = Answer::begin(&self.asker, request, Some(&renewed)).await;
        }
        begun.map_err(|error| match credentials.way_out() {
            Some(way_out) if is_unknown_key(&error) => ModelError {
                message: format!("{}: {way_out}", error.message),
                ..error
            },
            _ => error,
        })
    }
}

fn is_unknown_key(error: &ModelError) -> bool {
    error.status == Some(401)
}

/// Whether another key of the same owner may be let through.
fn is_about_the_key(error: &ModelError) -> bool {
    matches!(
        error.kind,
        ModelErrorKind::Auth | ModelErrorKind::Quota | ModelErrorKind::Burst
    ) || error.status == Some(429)
}

/// An answer on its way. Dropping it closes the connection, which ends the provider's work.
struct Answer<W: Wire> {
    asker: Arc<Asker<W>>,
    response: Response,
    /// A key from a file, which is not among the endpoint's own, is kept out of errors too.
    key: Option<Credential>,
    decoder: Decoder<W::Reader>,
    /// Bytes so far.
    length: usize,
    /// Filled and emptied again at every step.
    decoded: Chunks,
    ready: VecDeque<MessageChunk>,
    deadline: Instant,
    streamed: bool,
    over: bool,
    /// Told after what was decoded before it.
    fault: Option<ModelError>,
}

impl<W: Wire> Answer<W> {
    /// Asks, and waits for the first chunk.
    async fn begin(
        asker: &Arc<Asker<W>>,
        request: &ModelRequest,
        key: Option<&Credential>,
    ) -> Result<Self, ModelError> {
        let response = asker.post(request, key).await?;
        let kind = response
            .headers()
            .get(CONTENT_TYPE)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
            .to_ascii_lowercase();
        if kind.starts_with("text/html") {
            return Err(asker.error(
                ModelErrorKind::Config,
                "the server answered with a web page: check `base_url`".to_owned(),
            ));
        }
        let mut answer = Self {
            asker: Arc::clone(asker),
            response,
            key: key.cloned(),
            length: 0,
            decoder: Decoder::new(asker.wire.reader(&request.message_id)),
            decoded: Chunks::new(),
            ready: VecDeque::new(),
            deadline: Instant::now() + asker.endpoint.limits.whole,
            streamed: !kind.contains("json") || kind.contains("ndjson"),
            over: false,
            fault: None,
        };
        let Some(first) = answer.next().await.transpose()? else {
            return Err(asker.decode_error(DecodeError::NoChoices, key));
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

    /// The next chunk; after an error nothing more.
    async fn next(&mut self) -> Option<Result<MessageChunk, ModelError>> {
        loop {
            if let Some(chunk) = self.ready.pop_front() {
                return Some(Ok(chunk));
            }
            if self.over || self.fault.is_some() {
                self.over = true;
                return self.fault.take().map(Err);
            }
            if let Err(error) = self.fill().await {
                self.fault = Some(error);
            }
        }
    }

    /// Waits until something is ready or the answer is over.
    async fn fill(&mut self) -> Result<(), ModelError> {
        let mut patience = self.patience();
        let mut whole = Vec::new();
        while self.ready.is_empty() && !self.over {
            let waited = timeout_at(patience.min(self.deadline), self.response.chunk()).await;
            let bytes = match waited {
                Ok(Ok(bytes)) => bytes,
                // Everything that matters was said; how the connection ends does not.
                _ if self.decoder.is_finished() => None,
                Ok(Err(error)) => return Err(self.asker.transport_error(error)),
                Err(_) if Instant::now() >= self.deadline => return Err(self.asker.endless()),
                Err(_) => return Err(self.asker.stalled(self.streamed)),
            };
            let heard = self.decoder.events();
            self.length = self
                .length
                .saturating_add(bytes.as_ref().map_or(0, |bytes| bytes.len()));
            let most = if self.streamed {
                self.asker.endpoint.limits.streamed
            } else {
                LONGEST_ANSWER
            };
            let decoded = match (bytes, self.streamed) {
                _ if self.length > most => Err(DecodeError::TooLong(format!(
                    "the answer is longer than {} MiB",
                    most >> 20
                ))),
                (Some(bytes), true) => self.decoder.push(&bytes, &mut self.decoded),
                (None, true) => {
                    self.over = true;
                    self.decoder.end(&mut self.decoded)
                }
                (Some(bytes), false) => {
                    whole.extend_from_slice(&bytes);
                    Ok(())
                }
                (None, false) => {
                    self.over = true;
                    self.decoder.whole(&whole, &mut self.decoded)
                }
            };
            self.ready.extend(self.decoded.drain(..));
            decoded.map_err(|error| self.asker.decode_error(error, self.key.as_ref()))?;
            self.over |= self.decoder.is_closed();
            // A comment says only that the connection lives, so it renews nothing.
            if !self.streamed || self.decoder.events() != heard {
                patience = self.patience();
            }
        }
        Ok(())
    }

    /// Until when something must come.
    fn patience(&self) -> Instant {
        let idle = self.asker.endpoint.limits.idle;
        Instant::now()
            + if self.decoder.is_finished() {
                idle.min(AFTER_FINISH)
            } else {
                idle
            }
    }
}

impl<W: Wire> Asker<W> {
    fn key(&self) -> Result<Option<Credential>, ModelError> {
        self.endpoint
            .credentials
            .current()
            .map_err(|fault| self.error(ModelErrorKind::Auth, fault))
    }

    async fn post(
        &self,
        request: &ModelRequest,
        key: Option<&Credential>,
    ) -> Result<Response, ModelError> {
        let settings = self
            .entry
            .settings_for(request)
            .map_err(|error| self.error(ModelErrorKind::Config, error.to_string()))?;
        let Call { url, headers, body } = self.wire.call(request, &settings, &self.endpoint, key);
        let mut call = self
            .http
            .client()
            .post(url)
            .header(ACCEPT, "text/event-stream, application/json")
            .json(&body);
        for (name, value) in headers {
            let (name, value) = header(name, &value).ok_or_else(|| {
                self.error(ModelErrorKind::Auth, "its key cannot be sent".to_owned())
            })?;
            call = call.header(name, value);
        }
        // The entry's own headers come last, so that they can replace ours.
        call = call.headers(self.endpoint.headers.clone());
        if let Some(query) = &self.endpoint.query {
            call = call.query(query);
        }
        let limit = self.endpoint.limits.first_byte;
        let response = match timeout(limit, call.send()).await {
            Ok(sent) => sent.map_err(|error| self.transport_error(error))?,
            Err(_) => return Err(self.silence(limit)),
        };
        if response.status().is_success() {
            Ok(response)
        } else {
            Err(self.refusal(response, key).await)
        }
    }

    fn error(&self, kind: ModelErrorKind, message: String) -> ModelError {
        let message = self
            .endpoint
            .redact(&message)
            .chars()
            .take(MESSAGE_LENGTH)
            .collect();
        ModelError {
            model: self.info.name.clone(),
            kind,
            message,
            status: None,
            retry_after: None,
        }
    }

    fn silence(&self, limit: Duration) -> ModelError {
        self.error(
            ModelErrorKind::Stalled,
            format!(
                "the provider was silent for {} seconds",
                limit.as_secs_f64()
            ),
        )
    }

    fn stalled(&self, streamed: bool) -> ModelError {
        let limit = self.endpoint.limits.idle;
        if !streamed {
            return self.silence(limit);
        }
        self.error(
            ModelErrorKind::Stalled,
            format!(
                "the stream brought no data for {} seconds",
                limit.as_secs_f64()
            ),
        )
    }

    fn endless(&self) -> ModelError {
        let limit = self.endpoint.limits.whole.as_secs();
        self.error(
            ModelErrorKind::Stalled,
            format!("the answer was not complete after {limit} seconds"),
        )
    }

    fn transport_error(&self, error: reqwest::Error) -> ModelError {
        let error = error.without_url();
        let mut message = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            message = format!("{message}: {error}");
            cause = error.source();
        }
        let kind = if error.is_builder() {
            ModelErrorKind::Config
        } else {
            ModelErrorKind::Transient
        };
        self.error(kind, message)
    }

    fn decode_error(&self, error: DecodeError, key: Option<&Credential>) -> ModelError {
        let message = redacted(&error.to_string(), key);
        match error {
            DecodeError::Refused(refused) => {
                let kind = refused.class(None, None);
                ModelError {
                    status: refused.status,
                    retry_after: refused.retry_after,
                    ..self.error(kind, message)
                }
            }
            _ => self.error(ModelErrorKind::Transient, message),
        }
    }

    /// The error that a refusing response stands for.
    async fn refusal(&self, mut response: Response, key: Option<&Credential>) -> ModelError {
        let status = response.status().as_u16();
        let headers = response.headers().clone();
        let wait = retry_after(|name| headers.get(name)?.to_str().ok(), self.clock.now());
        let mut body = Vec::new();
        let until = Instant::now() + self.endpoint.limits.idle.min(Duration::from_secs(10));
        while body.len() < LONGEST_ERROR
            && let Ok(Ok(Some(bytes))) = timeout_at(until, response.chunk()).await
        {
            body.extend_from_slice(&bytes);
        }
        let refused = Refused::read_body(&body);
        let kind = refused.class(Some(status), wait);
        let message = redacted(&refused.message, key);
        let message = if message.is_empty() {
            format!("HTTP status {status}")
        } else {
            message
        };
        ModelError {
            status: Some(status),
            retry_after: wait.or(refused.retry_after),
            ..self.error(kind, message)
        }
    }
}

/// `text` without `key`.
fn redacted(text: &str, key: Option<&Credential>) -> String {
    key.map_or_else(|| text.to_owned(), |key| key.redact(text))
}

#[cfg(test)]
#[path = "chat_tests.rs"]
mod tests;

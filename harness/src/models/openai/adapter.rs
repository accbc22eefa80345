//! The driver of one chat completion over HTTP: posts, waits within limits, and feeds the decoder.

use std::collections::VecDeque;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::stream;
use reqwest::Response;
use reqwest::header::{ACCEPT, CONTENT_TYPE};
use tokio::time::{Instant, timeout, timeout_at};

use super::decode::{DecodeError, Decoder, refusal};
use super::dialect::Dialect;
use super::event::Event;
use super::http::SharedHttp;
use super::options::Options;
use super::retry_after::retry_after;
use super::wire;
use crate::clock::Clock;
use crate::messages::MessageChunk;
use crate::models::classify::{Refusal, classify};
use crate::models::{ChatModel, ModelEntry, ModelError, ModelErrorKind, ModelInfo, ModelRequest, ModelStream};

/// An answer that is not streamed, or an error page, longer than this is refused or cut.
const LONGEST_ANSWER: usize = 32 << 20;
const LONGEST_ERROR: usize = 64 << 10;
/// How long the usage and the end of a stream may keep away once the answer itself is complete.
const AFTER_FINISH: Duration = Duration::from_secs(5);
/// How much of a provider's own words goes into an error.
const MESSAGE_LENGTH: usize = 500;

/// A model behind an OpenAI-compatible chat-completions API.
#[derive(Debug)]
pub struct OpenAiChatModel {
    asker: Arc<Asker>,
}

/// What every call of the model shares.
#[derive(Debug)]
struct Asker {
    info: ModelInfo,
    entry: ModelEntry,
    dialect: Dialect,
    options: Options,
    http: SharedHttp,
    clock: Arc<dyn Clock>,
}

impl OpenAiChatModel {
    /// The model of `entry`, or what is wrong with the entry.
    pub(in crate::models) fn new(
        entry: ModelEntry,
        info: ModelInfo,
        mut dialect: Dialect,
        http: SharedHttp,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, String> {
        let options = Options::read(&entry, dialect)?;
        dialect.renames_max_tokens = options.url.host_str() == Some("api.openai.com");
        Ok(Self { asker: Arc::new(Asker { info, entry, dialect, options, http, clock }) })
    }
}

#[async_trait]
impl ChatModel for OpenAiChatModel {
    fn info(&self) -> &ModelInfo {
        &self.asker.info
    }

    async fn stream(&self, request: ModelRequest) -> Result<ModelStream, ModelError> {
        let mut answer = Answer::begin(Arc::clone(&self.asker), request).await?;
        let Some(first) = answer.next().await.transpose()? else {
            return Err(self.asker.decode_error(DecodeError::NoChoices));
        };
        answer.ready.push_front(first);
        Ok(Box::pin(stream::unfold(answer, |mut answer| async move {
            let item = answer.next().await?;
            Some((item, answer))
        })))
    }
}

/// An answer on its way. Dropping it closes the connection, which ends the provider's work.
struct Answer {
    asker: Arc<Asker>,
    response: Response,
    decoder: Decoder,
    ready: VecDeque<MessageChunk>,
    deadline: Instant,
    streamed: bool,
    over: bool,
    /// Told after what was decoded before it.
    fault: Option<ModelError>,
}

impl Answer {
    async fn begin(asker: Arc<Asker>, request: ModelRequest) -> Result<Self, ModelError> {
        let settings = asker.entry.settings_for(&request).map_err(|error| asker.error(ModelErrorKind::Config, error.to_string()))?;
        let body = wire::body(&asker.info.model, &settings, &request, asker.dialect);
        let options = &asker.options;
        let deadline = Instant::now() + options.limits.whole;
        let mut call = asker.http.client().post(options.url.clone()).headers(options.headers.clone()).json(&body);
        call = call.header(ACCEPT, "text/event-stream, application/json");
        if let Some(query) = asker.entry.extra.get("default_query").filter(|query| query.is_object()) {
            call = call.query(query);
        }
        let response = match timeout(options.limits.first_byte, call.send()).await {
            Ok(sent) => sent.map_err(|error| asker.transport_error(error))?,
            Err(_) => return Err(asker.silence(options.limits.first_byte)),
        };
        if !response.status().is_success() {
            return Err(asker.refusal(response).await);
        }
        let kind = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default().to_ascii_lowercase();
        if kind.starts_with("text/html") {
            return Err(asker.error(ModelErrorKind::Config, "the server answered with a web page: check `base_url`".to_owned()));
        }
        let decoder = Decoder::new(request.message_id, asker.dialect, &asker.info.model);
        Ok(Self { asker, response, decoder, ready: VecDeque::new(), deadline, streamed: !kind.contains("json"), over: false, fault: None })
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
            let decoded = match (bytes, self.streamed) {
                (Some(bytes), true) => self.decoder.push(&bytes, &mut self.ready),
                (None, true) => {
                    self.over = true;
                    self.decoder.end(&mut self.ready)
                }
                (Some(bytes), false) => {
                    whole.extend_from_slice(&bytes);
                    if whole.len() > LONGEST_ANSWER {
                        Err(DecodeError::TooLong(format!("the answer is longer than {} MiB", LONGEST_ANSWER >> 20)))
                    } else {
                        Ok(())
                    }
                }
                (None, false) => {
                    self.over = true;
                    self.decoder.whole(&whole, &mut self.ready)
                }
            };
            decoded.map_err(|error| self.asker.decode_error(error))?;
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
        let idle = self.asker.options.limits.idle;
        Instant::now() + if self.decoder.is_finished() { idle.min(AFTER_FINISH) } else { idle }
    }
}

impl Asker {
    fn error(&self, kind: ModelErrorKind, message: String) -> ModelError {
        let message = self.options.redact(&message).chars().take(MESSAGE_LENGTH).collect();
        ModelError { model: self.info.name.clone(), kind, message, status: None, retry_after: None }
    }

    fn silence(&self, limit: Duration) -> ModelError {
        self.error(ModelErrorKind::Stalled, format!("the provider was silent for {} seconds", limit.as_secs_f64()))
    }

    fn stalled(&self, streamed: bool) -> ModelError {
        let limit = self.options.limits.idle;
        if !streamed {
            return self.silence(limit);
        }
        self.error(ModelErrorKind::Stalled, format!("the stream brought no data for {} seconds", limit.as_secs_f64()))
    }

    fn endless(&self) -> ModelError {
        let limit = self.options.limits.whole.as_secs();
        self.error(ModelErrorKind::Stalled, format!("the answer was not complete after {limit} seconds"))
    }

    fn transport_error(&self, error: reqwest::Error) -> ModelError {
        let error = error.without_url();
        let mut message = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            message = format!("{message}: {error}");
            cause = error.source();
        }
        let kind = if error.is_builder() { ModelErrorKind::Config } else { ModelErrorKind::Transient };
        self.error(kind, message)
    }

    fn decode_error(&self, error: DecodeError) -> ModelError {
        match &error {
            DecodeError::Refused { code, message, status } => {
                let kind = classify(Refusal { status: *status, code, message });
                ModelError { status: *status, ..self.error(kind, message.clone()) }
            }
            _ => self.error(ModelErrorKind::Transient, error.to_string()),
        }
    }

    /// The error that a refusing response stands for.
    async fn refusal(&self, mut response: Response) -> ModelError {
        let status = response.status().as_u16();
        let headers = response.headers().clone();
        let wait = retry_after(|name| headers.get(name)?.to_str().ok(), self.clock.now());
        let mut body = Vec::new();
        let until = Instant::now() + self.options.limits.idle.min(Duration::from_secs(10));
        while body.len() < LONGEST_ERROR
            && let Ok(Ok(Some(bytes))) = timeout_at(until, response.chunk()).await
        {
            body.extend_from_slice(&bytes);
        }
        let said = serde_json::from_slice::<Event>(&body).ok().and_then(|event| refusal(&event));
        let (code, message) = match said {
            Some(DecodeError::Refused { code, message, .. }) => (code, message),
            _ => (String::new(), String::from_utf8_lossy(&body).trim().to_owned()),
        };
        let kind = classify(Refusal { status: Some(status), code: &code, message: &message });
        let message = if message.is_empty() { format!("HTTP status {status}") } else { message };
        ModelError { status: Some(status), retry_after: wait, ..self.error(kind, message) }
    }
}

#[cfg(test)]
#[path = "adapter_tests.rs"]
mod tests;

//! Embeddings over an OpenAI-compatible `/embeddings` API: batches, a timeout per call, and
//! retries.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::Url;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serde_json::json;
use tokio::time::{Instant, timeout_at};

use crate::http::{HttpResponse, ProviderError, SharedHttp, TransportError, retry_after};
use crate::{Embedder, ModelError, ModelErrorKind, RetryPolicy};
use deerflow_core::clock::Clock;

/// Maximum number of texts per call. Providers accept more, but the response grows with it.
const MAX_BATCH_TEXTS: usize = 128;
/// Maximum size of a response, in bytes.
const MAX_ANSWER_BYTES: usize = 64 << 20;
/// Maximum length of a provider's message in an error, in characters.
const MAX_MESSAGE_CHARS: usize = 500;

/// Default address.
pub const OPENAI_BASE_URL: &str = "https://api.openai.com/v1";

/// Configuration of an embedding model.
#[derive(Debug, Clone)]
pub struct EmbeddingEntry {
    /// The model's name at its provider.
    pub model: String,
    /// Address without the final `/embeddings`.
    pub base_url: String,
    /// API key of the provider, if it requires one.
    pub api_key: Option<SecretString>,
    /// Number of dimensions of its vectors.
    pub dims: usize,
    /// Timeout of one call.
    pub timeout: Duration,
    /// Retry policy.
    pub retry: RetryPolicy,
}

/// An embedding model behind an OpenAI-compatible server.
#[derive(Debug)]
pub struct OpenAiEmbedder {
    entry: EmbeddingEntry,
    url: Url,
    key: Option<HeaderValue>,
    http: SharedHttp,
    clock: Arc<dyn Clock>,
}

#[derive(Deserialize)]
struct EmbeddingResponse {
    data: Vec<Row>,
}

#[derive(Deserialize)]
struct Row {
    index: usize,
    embedding: Vec<f32>,
}

impl OpenAiEmbedder {
    /// Creates the embedder of `entry`. The error states what is wrong with the entry.
    pub fn new(
        entry: EmbeddingEntry,
        http: SharedHttp,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, String> {
        let url = Url::parse(&format!(
            "{}/embeddings",
            entry.base_url.trim_end_matches('/')
        ));
        let url = url
            .ok()
            .filter(|url| matches!(url.scheme(), "http" | "https"));
        let url = url.ok_or("its `base_url` is not an http or https address")?;
        let key = entry.api_key.as_ref().map(|key| {
            let mut header = HeaderValue::try_from(format!("Bearer {}", key.expose_secret()))
                .map_err(|_| "its `api_key` cannot be sent")?;
            header.set_sensitive(true);
            Ok::<_, &str>(header)
        });
        Ok(Self {
            url,
            key: key.transpose()?,
            entry,
            http,
            clock,
        })
    }

    fn error(&self, kind: ModelErrorKind, message: impl Into<String>) -> ModelError {
        let mut message: String = message.into();
        if let Some(key) = self
            .entry
            .api_key
            .as_ref()
            .map(ExposeSecret::expose_secret)
            .filter(|key| !key.is_empty())
        {
            message = message.replace(key, "***");
        }
        let message = message.chars().take(MAX_MESSAGE_CHARS).collect();
        ModelError {
            model: self.entry.model.clone(),
            kind,
            message,
            status: None,
            retry_after: None,
        }
    }

    async fn batch(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, ModelError> {
        let (mut attempt, mut previous) = (1, None);
        loop {
            let error = match self.call_once(texts).await {
                Ok(vectors) => return Ok(vectors),
                Err(error) => error,
            };
            let Some(wait) = self
                .entry
                .retry
                .next_delay(attempt, previous, &error, rand::random())
            else {
                return Err(error);
            };
            tracing::warn!(%error, attempt, wait_ms = wait.as_millis(), "embedding call failed, trying again");
            tokio::time::sleep(wait).await;
            (attempt, previous) = (attempt + 1, Some(wait));
        }
    }

    async fn call_once(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, ModelError> {
        let deadline = Instant::now() + self.entry.timeout;
        let timed_out = || {
            self.error(
                ModelErrorKind::Stalled,
                format!(
                    "no complete response within {} s",
                    self.entry.timeout.as_secs_f64()
                ),
            )
        };
        let failed =
            |error: TransportError| self.error(ModelErrorKind::Transient, error.to_string());
        let body = json!({ "model": self.entry.model, "input": texts, "encoding_format": "float" });
        let mut headers = HeaderMap::new();
        let json = HeaderValue::from_static("application/json");
        headers.insert(ACCEPT, json.clone());
        headers.insert(CONTENT_TYPE, json);
        if let Some(key) = &self.key {
            headers.insert(AUTHORIZATION, key.clone());
        }
        let call = self
            .http
            .post(&self.url, headers, vec![body.to_string().into()]);
        let mut response = timeout_at(deadline, call)
            .await
            .map_err(|_| timed_out())?
            .map_err(failed)?;
        let mut bytes = Vec::new();
        while let Some(piece) = timeout_at(deadline, response.chunk())
            .await
            .map_err(|_| timed_out())?
            .map_err(failed)?
        {
            bytes.extend_from_slice(&piece);
            if bytes.len() > MAX_ANSWER_BYTES {
                return Err(self.error(ModelErrorKind::Config, "the answer is too long"));
            }
        }
        if !response.status().is_success() {
            return Err(self.response_error(response, &bytes));
        }
        let answer: EmbeddingResponse = serde_json::from_slice(&bytes).map_err(|_| {
            self.error(
                ModelErrorKind::Config,
                "the response contains no embeddings: check `base_url` and the model's name",
            )
        })?;
        self.in_order(answer.data, texts.len())
    }

    /// Sorts the vectors by the order of the texts and checks their number and dimensions.
    fn in_order(&self, mut rows: Vec<Row>, texts: usize) -> Result<Vec<Vec<f32>>, ModelError> {
        rows.sort_by_key(|row| row.index);
        if rows.len() != texts || rows.iter().enumerate().any(|(at, row)| row.index != at) {
            return Err(self.error(
                ModelErrorKind::Transient,
                "the answer does not contain one vector per text",
            ));
        }
        if let Some(row) = rows
            .iter()
            .find(|row| row.embedding.len() != self.entry.dims)
        {
            let message = format!(
                "its vectors have {} numbers, but `dims` is {}",
                row.embedding.len(),
                self.entry.dims
            );
            return Err(self.error(ModelErrorKind::Config, message));
        }
        Ok(rows.into_iter().map(|row| row.embedding).collect())
    }

    fn response_error(&self, mut response: HttpResponse, body: &[u8]) -> ModelError {
        let provider_error = ProviderError::read_body(body);
        let status = response.status().as_u16();
        let headers = response.take_headers();
        let wait = retry_after(|name| headers.get(name)?.to_str().ok(), self.clock.now());
        let kind = provider_error.kind(Some(status), wait);
        let message = if provider_error.message.is_empty() {
            format!("HTTP status {status}")
        } else {
            provider_error.message
        };
        ModelError {
            status: Some(status),
            retry_after: wait,
            ..self.error(kind, message)
        }
    }
}

#[async_trait]
impl Embedder for OpenAiEmbedder {
    fn dims(&self) -> usize {
        self.entry.dims
    }

    async fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, ModelError> {
        let mut vectors = Vec::with_capacity(texts.len());
        for batch in texts.chunks(MAX_BATCH_TEXTS) {
            vectors.extend(self.batch(batch).await?);
        }
        Ok(vectors)
    }
}

#[cfg(test)]
#[path = "embeddings_tests.rs"]
mod tests;

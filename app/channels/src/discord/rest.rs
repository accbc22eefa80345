//! Client of the REST API.

use std::time::Duration;

use http::header::{AUTHORIZATION, HeaderValue, USER_AGENT};
use http::{HeaderMap, Method};
use parking_lot::Mutex;
use reqwest::multipart::{Form, Part};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use tokio::time::Instant;
use url::Url;

use super::answers::{ApiError, outcome};
use super::limits::{Limits, route_key};
use crate::platform::{FileBody, PlatformError};

/// Timeout of a call.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Timeout of a call with a file.
const FILE_TIMEOUT: Duration = Duration::from_secs(120);
/// Maximum size of an answer in bytes.
const MAX_ANSWER: usize = 8 * 1024 * 1024;
/// Name of the client, in the form that Discord requires.
const AGENT: &str = concat!(
    "DiscordBot (https://deerflow.tech, ",
    env!("CARGO_PKG_VERSION"),
    ")"
);

/// Body of a call.
#[derive(Debug)]
pub(super) enum Payload {
    /// No body.
    None,
    /// JSON.
    Json(Value),
    /// JSON with a file.
    File(Value, FileBody),
}

/// Client of the REST API. It makes no call that a known rate limit forbids.
#[derive(Debug)]
pub(super) struct Rest {
    http: reqwest::Client,
    base: Url,
    token: SecretString,
    limits: Mutex<Limits>,
}

impl Rest {
    /// Creates the client.
    pub(super) fn new(http: reqwest::Client, base: Url, token: SecretString) -> Self {
        Self {
            http,
            base,
            token,
            limits: Mutex::default(),
        }
    }

    /// Returns the HTTP client.
    pub(super) fn http(&self) -> &reqwest::Client {
        &self.http
    }

    /// Returns the base address.
    pub(super) fn base(&self) -> &Url {
        &self.base
    }

    /// Returns the token.
    pub(super) fn token(&self) -> &SecretString {
        &self.token
    }

    /// Calls a route with the bot's token.
    pub(super) async fn call(
        &self,
        method: Method,
        segments: &[&str],
        payload: Payload,
    ) -> Result<Value, ApiError> {
        self.call_with(method, segments, &[], payload).await
    }

    /// Calls a route with query parameters.
    pub(super) async fn call_with(
        &self,
        method: Method,
        segments: &[&str],
        query: &[(&str, &str)],
        payload: Payload,
    ) -> Result<Value, ApiError> {
        let route = route_key(method.as_str(), segments);
        self.limits
            .lock()
            .check(&route, Instant::now())
            .map_err(ApiError::Failed)?;
        let mut address = self.base.clone();
        if let Ok(mut path) = address.path_segments_mut() {
            path.pop_if_empty().extend(segments);
        }
        let request = self
            .http
            .request(method, address)
            .query(query)
            .header(USER_AGENT, AGENT)
            .header(AUTHORIZATION, self.authorization()?);
        let request = match payload {
            Payload::None => request.timeout(TIMEOUT),
            Payload::Json(body) => request.json(&body).timeout(TIMEOUT),
            Payload::File(body, file) => {
                request.multipart(form(&body, file)?).timeout(FILE_TIMEOUT)
            }
        };
        let (status, headers, body) = answer(request).await.map_err(ApiError::Failed)?;
        let result = outcome(status, &headers, &body);
        let mut limits = self.limits.lock();
        limits.learn(&route, &headers, Instant::now());
        if let Err(ApiError::Failed(PlatformError::RateLimited {
            retry_after,
            account,
        })) = &result
        {
            limits.refused(&route, *retry_after, *account, Instant::now());
        }
        result
    }

    fn authorization(&self) -> Result<HeaderValue, ApiError> {
        let text = format!("Bot {}", self.token.expose_secret());
        let mut value = HeaderValue::try_from(text).map_err(|_| {
            ApiError::Failed(PlatformError::Rejected(
                "the bot token contains invalid characters, enter it again".to_owned(),
            ))
        })?;
        value.set_sensitive(true);
        Ok(value)
    }
}

fn form(body: &Value, file: FileBody) -> Result<Form, ApiError> {
    let length = file.bytes.len() as u64;
    let part = Part::stream_with_length(file.bytes, length)
        .file_name(file.name)
        .mime_str(&file.media_type)
        .map_err(|_| {
            ApiError::Failed(PlatformError::Refused(
                "the file has an invalid media type".to_owned(),
            ))
        })?;
    let json = Part::text(body.to_string());
    Ok(Form::new()
        .part("payload_json", json)
        .part("files[0]", part))
}

/// Sends a request and reads its answer within the size limit.
async fn answer(
    request: reqwest::RequestBuilder,
) -> Result<(u16, HeaderMap, Vec<u8>), PlatformError> {
    let unavailable =
        |error: reqwest::Error| PlatformError::Unavailable(error.without_url().to_string());
    let mut response = request.send().await.map_err(unavailable)?;
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(unavailable)? {
        if body.len() + chunk.len() > MAX_ANSWER {
            return Err(PlatformError::Unavailable(
                "the answer of Discord is too large".to_owned(),
            ));
        }
        body.extend_from_slice(&chunk);
    }
    Ok((status, headers, body))
}

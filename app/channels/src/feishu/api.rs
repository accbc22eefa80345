//! Client of the open API with a cached access token.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use chrono::{DateTime, TimeDelta, Utc};
use harness::clock::Clock;
use http::{HeaderMap, Method, StatusCode, header};
use reqwest::multipart::{Form, Part};
use reqwest::{Client, RequestBuilder, Response};
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};
use url::Url;

use super::failure::{FeishuFailure, judge, judge_token};
use crate::platform::FileBody;

/// Timeout of calls.
const CALL_TIMEOUT: Duration = Duration::from_secs(30);
/// Timeout of uploads and downloads.
const FILE_TIMEOUT: Duration = Duration::from_secs(180);
/// Maximum size of a JSON answer.
const MAX_ANSWER: u64 = 4 * 1024 * 1024;
/// Time before its end at which a token is renewed, in seconds.
const RENEW_EARLY: i64 = 600;

/// Body of a call.
#[derive(Debug, Clone)]
pub(super) enum ApiBody {
    /// No body.
    Empty,
    /// JSON.
    Json(Value),
    /// Form with texts and one file.
    Form {
        /// Fields.
        fields: Vec<(&'static str, String)>,
        /// Name of the file's field.
        field: &'static str,
        /// File.
        file: FileBody,
    },
}

/// Call of the open API.
#[derive(Debug, Clone)]
pub(super) struct ApiCall<'a> {
    method: Method,
    path: Vec<&'a str>,
    query: Vec<(&'static str, String)>,
    body: ApiBody,
}

impl<'a> ApiCall<'a> {
    /// Creates a call of a path below `/open-apis`, by segments.
    pub(super) fn new(method: Method, path: &[&'a str], body: ApiBody) -> Self {
        Self {
            method,
            path: path.to_vec(),
            query: Vec::new(),
            body,
        }
    }

    /// Adds a parameter.
    pub(super) fn with(mut self, key: &'static str, value: impl Into<String>) -> Self {
        self.query.push((key, value.into()));
        self
    }
}

struct CachedToken {
    value: SecretString,
    renew_at: DateTime<Utc>,
}

/// Client of one app.
pub(super) struct FeishuApi {
    pub(super) http: Client,
    base: Url,
    app_id: String,
    app_secret: SecretString,
    clock: Arc<dyn Clock>,
    token: tokio::sync::Mutex<Option<CachedToken>>,
}

impl std::fmt::Debug for FeishuApi {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("FeishuApi")
            .field("base", &self.base.as_str())
            .field("app_id", &self.app_id)
            .finish_non_exhaustive()
    }
}

impl FeishuApi {
    pub(super) fn new(
        http: Client,
        base: Url,
        app_id: String,
        app_secret: SecretString,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self {
            http,
            base,
            app_id,
            app_secret,
            clock,
            token: tokio::sync::Mutex::default(),
        }
    }

    /// Returns the id of the app.
    pub(super) fn app_id(&self) -> &str {
        &self.app_id
    }

    /// Returns the current time in milliseconds since the epoch.
    pub(super) fn now_ms(&self) -> i64 {
        self.clock.now().timestamp_millis()
    }

    /// Returns the current time.
    pub(super) fn now(&self) -> DateTime<Utc> {
        self.clock.now()
    }

    /// Calls and returns the body of the success. A stale token is renewed once.
    pub(super) async fn call(&self, call: &ApiCall<'_>) -> Result<Value, FeishuFailure> {
        let response = self.authorized(call).await?;
        let status = response.status();
        let headers = response.headers().clone();
        let body = read(response, MAX_ANSWER).await?;
        match judge(status, &headers, &body) {
            Err(FeishuFailure::StaleToken) => {}
            other => return other,
        }
        self.token.lock().await.take();
        let response = self.authorized(call).await?;
        let status = response.status();
        let headers = response.headers().clone();
        let body = read(response, MAX_ANSWER).await?;
        judge(status, &headers, &body)
    }

    /// Downloads at most `max` bytes.
    pub(super) async fn download(
        &self,
        call: &ApiCall<'_>,
        max: u64,
    ) -> Result<Bytes, FeishuFailure> {
        for _ in 0..2 {
            let response = self.authorized(call).await?;
            let status = response.status();
            let headers = response.headers().clone();
            if status == StatusCode::OK && is_file(&headers) {
                if response.content_length().is_some_and(|length| length > max) {
                    return Err(too_large(max));
                }
                return match read(response, max).await {
                    Err(FeishuFailure::Refused(_)) => Err(too_large(max)),
                    other => other,
                };
            }
            let body = read(response, MAX_ANSWER).await?;
            match judge(status, &headers, &body) {
                Err(FeishuFailure::StaleToken) => drop(self.token.lock().await.take()),
                Err(failure) => return Err(failure),
                Ok(_) => {
                    return Err(FeishuFailure::Refused(
                        "the platform did not send a file".to_owned(),
                    ));
                }
            }
        }
        Err(FeishuFailure::StaleToken)
    }

    /// Asks for the address of the long connection. The answer is judged by the caller.
    pub(super) async fn endpoint(&self) -> Result<(StatusCode, HeaderMap, Bytes), FeishuFailure> {
        let address = self.address(&["callback", "ws", "endpoint"])?;
        let body = json!({"AppID": self.app_id, "AppSecret": self.app_secret.expose_secret()});
        let request = self.http.post(address).header("locale", "zh").json(&body);
        let response = send(request, CALL_TIMEOUT).await?;
        let status = response.status();
        let headers = response.headers().clone();
        Ok((status, headers, read(response, MAX_ANSWER).await?))
    }

    async fn authorized(&self, call: &ApiCall<'_>) -> Result<Response, FeishuFailure> {
        let token = self.access_token().await?;
        let mut path = vec!["open-apis"];
        path.extend(&call.path);
        let request = self
            .http
            .request(call.method.clone(), self.address(&path)?)
            .query(&call.query)
            .bearer_auth(token.expose_secret());
        match &call.body {
            ApiBody::Empty => send(request, CALL_TIMEOUT).await,
            ApiBody::Json(body) => {
                let request = request
                    .header(header::CONTENT_TYPE, "application/json; charset=utf-8")
                    .body(body.to_string());
                send(request, CALL_TIMEOUT).await
            }
            ApiBody::Form {
                fields,
                field,
                file,
            } => send(request.multipart(form(fields, field, file)), FILE_TIMEOUT).await,
        }
    }

    /// Returns the token, which is renewed 10 minutes before its end. Concurrent callers share one
    /// request.
    async fn access_token(&self) -> Result<SecretString, FeishuFailure> {
        let mut cached = self.token.lock().await;
        let now = self.clock.now();
        if let Some(token) = cached.as_ref().filter(|token| now < token.renew_at) {
            return Ok(token.value.clone());
        }
        let path = ["open-apis", "auth", "v3", "tenant_access_token", "internal"];
        let body = json!({"app_id": self.app_id, "app_secret": self.app_secret.expose_secret()});
        let request = self.http.post(self.address(&path)?).json(&body);
        let response = send(request, CALL_TIMEOUT).await?;
        let status = response.status();
        let headers = response.headers().clone();
        let body = read(response, MAX_ANSWER).await?;
        let issued = judge_token(status, &headers, &body)?;
        // A short-lived token is used for half of its life.
        let usable = (issued.seconds - RENEW_EARLY).max(issued.seconds / 2);
        let value = SecretString::from(issued.value);
        *cached = Some(CachedToken {
            value: value.clone(),
            renew_at: now + TimeDelta::seconds(usable),
        });
        Ok(value)
    }

    fn address(&self, segments: &[&str]) -> Result<Url, FeishuFailure> {
        let mut address = self.base.clone();
        address
            .path_segments_mut()
            .map_err(|()| FeishuFailure::Refused("the base address has no path".to_owned()))?
            .pop_if_empty()
            .extend(segments);
        Ok(address)
    }
}

fn form(fields: &[(&'static str, String)], field: &'static str, file: &FileBody) -> Form {
    let mut form = Form::new();
    for (name, value) in fields {
        form = form.text(*name, value.clone());
    }
    let length = file.bytes.len() as u64;
    let part = Part::stream_with_length(file.bytes.clone(), length).file_name(file.name.clone());
    form.part(field, part)
}

async fn send(request: RequestBuilder, timeout: Duration) -> Result<Response, FeishuFailure> {
    request
        .timeout(timeout)
        .send()
        .await
        .map_err(|error| FeishuFailure::Unavailable(error.without_url().to_string()))
}

/// Reads a body of at most `max` bytes.
async fn read(mut response: Response, max: u64) -> Result<Bytes, FeishuFailure> {
    let mut body = BytesMut::new();
    loop {
        let chunk = response
            .chunk()
            .await
            .map_err(|error| FeishuFailure::Unavailable(error.without_url().to_string()))?;
        let Some(chunk) = chunk else {
            return Ok(body.freeze());
        };
        if (body.len() + chunk.len()) as u64 > max {
            return Err(FeishuFailure::Refused("the answer is too large".to_owned()));
        }
        body.extend_from_slice(&chunk);
    }
}

fn too_large(max: u64) -> FeishuFailure {
    FeishuFailure::Refused(format!(
        "the file is larger than {} MB",
        max / (1024 * 1024)
    ))
}

/// `true` unless the headers are those of an error or of a login page.
fn is_file(headers: &HeaderMap) -> bool {
    if headers.contains_key(header::CONTENT_DISPOSITION) {
        return true;
    }
    let kind = headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    !kind.starts_with("text/html") && !kind.starts_with("application/json")
}

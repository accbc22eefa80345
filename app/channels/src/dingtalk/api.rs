//! Client of the REST API.

use std::time::Duration;

use http::{HeaderMap, HeaderValue, Method};
use reqwest::RequestBuilder;
use reqwest::multipart::{Form, Part};
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};
use tokio::sync::Mutex;
use tokio::time::Instant;
use url::Url;

use super::answers::{ApiError, outcome};
use super::settings::Options;
use super::tokens::Token;
use crate::platform::{FileBody, PlatformError};

/// Timeout of a call.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Timeout of an upload.
const FILE_TIMEOUT: Duration = Duration::from_secs(120);
/// Maximum size of an answer in bytes.
const MAX_ANSWER: usize = 1024 * 1024;
/// Header with the access token.
const TOKEN_HEADER: &str = "x-acs-dingtalk-access-token";

/// Client of the REST API.
#[derive(Debug)]
pub(super) struct Api {
    http: reqwest::Client,
    options: Options,
    token: Mutex<Option<Token>>,
}

/// Endpoint of a connection, with its ticket for one use.
#[derive(Debug)]
pub(super) struct Endpoint {
    /// Address.
    pub(super) address: String,
    /// Ticket.
    pub(super) ticket: SecretString,
}

impl Api {
    /// Creates the client.
    pub(super) fn new(http: reqwest::Client, options: Options) -> Self {
        Self {
            http,
            options,
            token: Mutex::new(None),
        }
    }

    /// Returns the HTTP client.
    pub(super) fn http(&self) -> &reqwest::Client {
        &self.http
    }

    /// Returns the settings.
    pub(super) fn options(&self) -> &Options {
        &self.options
    }

    /// Asks for the endpoint of a connection. `topic` is that of messages.
    pub(super) async fn open(&self, topic: &str) -> Result<Endpoint, PlatformError> {
        let body = json!({
            "clientId": self.options.client_id,
            "clientSecret": self.options.client_secret.expose_secret(),
            "subscriptions": [{"type": "CALLBACK", "topic": topic}],
            "ua": concat!("deerflow/", env!("CARGO_PKG_VERSION")),
            "localIp": "127.0.0.1",
        });
        let request = self
            .request(Method::POST, "v1.0/gateway/connections/open")
            .json(&body);
        let answer = self.answer(request).await.map_err(rejected)?;
        let text = |key: &str| answer[key].as_str().unwrap_or_default().to_owned();
        Ok(Endpoint {
            address: text("endpoint"),
            ticket: text("ticket").into(),
        })
    }

    /// Returns a valid access token. One caller at a time renews it.
    pub(super) async fn token(&self) -> Result<SecretString, PlatformError> {
        let mut cached = self.token.lock().await;
        if let Some(token) = cached
            .as_ref()
            .filter(|token| token.is_fresh(Instant::now()))
        {
            return Ok(token.value.clone());
        }
        let body = json!({
            "appKey": self.options.client_id,
            "appSecret": self.options.client_secret.expose_secret(),
        });
        let request = self
            .request(Method::POST, "v1.0/oauth2/accessToken")
            .json(&body);
        let answer = self.answer(request).await.map_err(rejected)?;
        let value = answer["accessToken"].as_str().ok_or_else(|| {
            PlatformError::Unavailable("the answer of DingTalk contains no token".to_owned())
        })?;
        let value = SecretString::from(value);
        let seconds = answer["expireIn"].as_u64().unwrap_or_default();
        *cached = Some(Token::new(value.clone(), seconds, Instant::now()));
        Ok(value)
    }

    /// Returns a token in place of one that was refused.
    async fn renewed(&self, refused: &SecretString) -> Result<SecretString, ApiError> {
        {
            let mut cached = self.token.lock().await;
            let is_same = cached
                .as_ref()
                .is_some_and(|token| token.value.expose_secret() == refused.expose_secret());
            if is_same {
                *cached = None;
            }
        }
        self.token().await.map_err(ApiError::Failed)
    }

    /// Calls a path. A refused token is renewed once.
    pub(super) async fn call(
        &self,
        method: Method,
        path: &str,
        body: &Value,
    ) -> Result<Value, ApiError> {
        let token = self.token().await.map_err(ApiError::Failed)?;
        match self.call_once(method.clone(), path, body, &token).await {
            Err(ApiError::TokenExpired) => {
                let token = self.renewed(&token).await?;
                self.call_once(method, path, body, &token).await
            }
            result => result,
        }
    }

    async fn call_once(
        &self,
        method: Method,
        path: &str,
        body: &Value,
        token: &SecretString,
    ) -> Result<Value, ApiError> {
        let mut value = HeaderValue::try_from(token.expose_secret()).map_err(|_| {
            ApiError::Failed(PlatformError::Unavailable(
                "DingTalk issued an invalid token".to_owned(),
            ))
        })?;
        value.set_sensitive(true);
        let request = self
            .request(method, path)
            .header(TOKEN_HEADER, value)
            .json(body);
        self.answer(request).await
    }

    /// Uploads a file and returns its media id. A refused token is renewed once.
    pub(super) async fn upload(&self, kind: &str, file: &FileBody) -> Result<String, ApiError> {
        let token = self.token().await.map_err(ApiError::Failed)?;
        let answer = match self.upload_once(kind, file, &token).await {
            Err(ApiError::TokenExpired) => {
                let token = self.renewed(&token).await?;
                self.upload_once(kind, file, &token).await?
            }
            result => result?,
        };
        let id = answer["media_id"].as_str().or(answer["mediaId"].as_str());
        id.map(ToOwned::to_owned)
            .ok_or_else(|| refused("DingTalk did not accept the file"))
    }

    async fn upload_once(
        &self,
        kind: &str,
        file: &FileBody,
        token: &SecretString,
    ) -> Result<Value, ApiError> {
        let length = file.bytes.len() as u64;
        let part = Part::stream_with_length(file.bytes.clone(), length)
            .file_name(file.name.clone())
            .mime_str(&file.media_type)
            .map_err(|_| refused("the file has an invalid media type"))?;
        let form = Form::new()
            .text("type", kind.to_owned())
            .part("media", part);
        let request = self
            .http
            .post(join(&self.options.upload_base, "media/upload"))
            .query(&[("access_token", token.expose_secret())])
            .timeout(FILE_TIMEOUT)
            .multipart(form);
        self.answer(request).await
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.http
            .request(method, join(&self.options.api_base, path))
            .timeout(TIMEOUT)
    }

    /// Sends a request and decides its result.
    async fn answer(&self, request: RequestBuilder) -> Result<Value, ApiError> {
        let (status, headers, body) = exchange(request).await.map_err(ApiError::Failed)?;
        outcome(status, &headers, &body)
    }
}

fn refused(words: &str) -> ApiError {
    ApiError::Failed(PlatformError::Refused(words.to_owned()))
}

/// Returns the error of a call with the credentials of the app.
fn rejected(error: ApiError) -> PlatformError {
    match error {
        ApiError::TokenExpired
        | ApiError::Code {
            status: 400 | 403, ..
        } => PlatformError::Rejected(
            "DingTalk refused the client id and client secret, enter the current ones of the app"
                .to_owned(),
        ),
        other => other.into(),
    }
}

fn join(base: &Url, path: &str) -> Url {
    let mut address = base.clone();
    if let Ok(mut segments) = address.path_segments_mut() {
        segments.pop_if_empty().extend(path.split('/'));
    }
    address
}

async fn exchange(request: RequestBuilder) -> Result<(u16, HeaderMap, Vec<u8>), PlatformError> {
    let unavailable =
        |error: reqwest::Error| PlatformError::Unavailable(error.without_url().to_string());
    let mut response = request.send().await.map_err(unavailable)?;
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(unavailable)? {
        if body.len() + chunk.len() > MAX_ANSWER {
            return Err(PlatformError::Unavailable(
                "the answer of DingTalk is too large".to_owned(),
            ));
        }
        body.extend_from_slice(&chunk);
    }
    Ok((status, headers, body))
}

//! Client of the Web API.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header;
use parking_lot::Mutex;
use reqwest::{Client, RequestBuilder, Response};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use tokio::time::{Instant, timeout};
use url::Url;

use super::budget::{Budgets, CountedCall, Urgency};
use super::failure::{Failure, decode, platform_error};
use crate::platform::PlatformError;

/// Timeout of one call.
const CALL_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum size of an answer in bytes.
const MAX_ANSWER: u64 = 8 * 1024 * 1024;

/// Body of a call.
#[derive(Debug)]
pub(super) enum Body {
    /// JSON.
    Json(Value),
    /// Form.
    Form(Vec<(&'static str, String)>),
}

/// Client of one app.
#[derive(Debug)]
pub(super) struct Api {
    http: Client,
    base: Url,
    bot_token: SecretString,
    app_token: SecretString,
    budgets: Mutex<Budgets>,
}

impl Api {
    /// Creates a client.
    pub(super) fn new(
        http: Client,
        base: Url,
        bot_token: SecretString,
        app_token: SecretString,
    ) -> Self {
        Self {
            http,
            base,
            bot_token,
            app_token,
            budgets: Mutex::default(),
        }
    }

    /// Returns the HTTP client.
    pub(super) fn http(&self) -> &Client {
        &self.http
    }

    /// Returns `true` if the bot's token begins as a bot's token does.
    pub(super) fn has_bot_token(&self) -> bool {
        self.bot_token.expose_secret().starts_with("xoxb-")
    }

    /// Returns `true` if the app's token begins as an app's token does.
    pub(super) fn has_app_token(&self) -> bool {
        self.app_token.expose_secret().starts_with("xapp-")
    }

    /// Calls a method with the bot's token.
    pub(super) async fn call(&self, method: &str, body: Body) -> Result<Value, Failure> {
        self.call_with_scopes(method, body)
            .await
            .map(|(answer, _)| answer)
    }

    /// Calls a method, unless its budget is used up.
    pub(super) async fn budgeted(
        &self,
        method: &str,
        urgency: Urgency,
        body: Body,
    ) -> Result<Value, Failure> {
        let _counted = CountedCall::begin(&self.budgets, method, urgency).map_err(Failure::Held)?;
        self.call(method, body).await
    }

    /// Calls a method with the bot's token and returns the scopes of the token as well.
    pub(super) async fn call_with_scopes(
        &self,
        method: &str,
        body: Body,
    ) -> Result<(Value, Option<String>), Failure> {
        let result = self.perform(method, body, &self.bot_token).await;
        if let Err(Failure::Limited(delay)) = &result {
            self.budgets.lock().close(method, *delay, Instant::now());
        }
        result
    }

    /// Asks for the address of a new connection.
    pub(super) async fn open_connection(&self) -> Result<Url, PlatformError> {
        let method = "apps.connections.open";
        let (answer, _) = self
            .perform(method, Body::Form(Vec::new()), &self.app_token)
            .await
            .map_err(|failure| platform_error(method, failure))?;
        let address = answer["url"].as_str().and_then(|url| Url::parse(url).ok());
        address
            .filter(|address| match address.scheme() {
                "wss" => true,
                "ws" => self.base.scheme() == "http" && address.host() == self.base.host(),
                _ => false,
            })
            .ok_or_else(|| PlatformError::Unavailable("slack named no socket address".to_owned()))
    }

    /// Returns `true` if one more stream may be opened.
    pub(super) fn may_stream(&self) -> bool {
        self.budgets.lock().may_stream(Instant::now())
    }

    /// Counts an open stream.
    pub(super) fn stream_opened(&self, ts: &str) {
        self.budgets.lock().stream_opened(ts, Instant::now());
    }

    /// Removes a stream from the count.
    pub(super) fn stream_ended(&self, ts: &str) {
        self.budgets.lock().stream_ended(ts);
    }

    /// Returns `true` for an address of Slack, to which the token may be sent.
    pub(super) fn is_platform_address(&self, address: &Url) -> bool {
        is_platform_address(&self.base, address)
    }

    /// Requests a file with the bot's token.
    pub(super) async fn get_file(&self, address: Url) -> Result<Response, PlatformError> {
        let request = self
            .http
            .get(address)
            .bearer_auth(self.bot_token.expose_secret());
        send(request).await.map_err(PlatformError::Unavailable)
    }

    /// Sends the bytes of a file to an upload address, without a token.
    pub(super) async fn put_file(
        &self,
        address: Url,
        bytes: Bytes,
    ) -> Result<Response, PlatformError> {
        let request = self
            .http
            .post(address)
            .header(header::CONTENT_TYPE, "application/octet-stream")
            .body(bytes);
        send(request).await.map_err(PlatformError::Unavailable)
    }

    async fn perform(
        &self,
        method: &str,
        body: Body,
        token: &SecretString,
    ) -> Result<(Value, Option<String>), Failure> {
        let mut address = self.base.clone();
        if let Ok(mut path) = address.path_segments_mut() {
            path.pop_if_empty().push(method);
        }
        let request = self.http.post(address).bearer_auth(token.expose_secret());
        let request = match body {
            Body::Json(json) => request
                .header(header::CONTENT_TYPE, "application/json; charset=utf-8")
                .body(json.to_string()),
            Body::Form(fields) => request.form(&fields),
        };
        let mut response = send(request).await.map_err(Failure::Lost)?;
        let text_of = |name: &str| {
            let value = response.headers().get(name)?;
            value.to_str().ok().map(str::to_owned)
        };
        let retry_after = text_of("retry-after");
        let scopes = text_of("x-oauth-scopes");
        let status = response.status();
        let body = match read(&mut response, MAX_ANSWER).await {
            Ok(Some(body)) => body,
            Ok(None) => return Err(Failure::Lost("the answer of slack is too long".to_owned())),
            Err(problem) => return Err(Failure::Lost(problem)),
        };
        decode(method, status, retry_after.as_deref(), &body).map(|answer| (answer, scopes))
    }
}

/// Returns `true` for a host of Slack over TLS, or the origin of the base address.
fn is_platform_address(base: &Url, address: &Url) -> bool {
    if address.origin() == base.origin() {
        return true;
    }
    let host = address.host_str().unwrap_or_default();
    address.scheme() == "https"
        && address.port().is_none()
        && (host == "slack.com" || host.ends_with(".slack.com"))
}

async fn send(request: RequestBuilder) -> Result<Response, String> {
    match timeout(CALL_TIMEOUT, request.send()).await {
        Ok(Ok(response)) => Ok(response),
        Ok(Err(error)) => Err(error.without_url().to_string()),
        Err(_) => Err("slack did not answer in time".to_owned()),
    }
}

/// Reads a body; `None` if it has more than `max` bytes.
pub(super) async fn read(response: &mut Response, max: u64) -> Result<Option<Bytes>, String> {
    let mut body = BytesMut::new();
    loop {
        match timeout(CALL_TIMEOUT, response.chunk()).await {
            Ok(Ok(Some(chunk))) if (body.len() + chunk.len()) as u64 > max => return Ok(None),
            Ok(Ok(Some(chunk))) => body.extend_from_slice(&chunk),
            Ok(Ok(None)) => return Ok(Some(body.freeze())),
            Ok(Err(error)) => return Err(error.without_url().to_string()),
            Err(_) => return Err("the answer of slack stopped".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_is_for_hosts_of_slack_over_tls_only() {
        let base = Url::parse("https://slack.com/api").unwrap();
        let loopback = Url::parse("http://127.0.0.1:4000/api").unwrap();
        let cases = [
            (&base, "https://files.slack.com/f", true),
            (&base, "https://slack.com/f", true),
            (&base, "http://files.slack.com/f", false),
            (&base, "https://files.slack.com:8443/f", false),
            (&base, "https://slack.com.evil.example/f", false),
            (&base, "https://evilslack.com/f", false),
            (&base, "https://files.slack.com@evil.example/f", false),
            (&loopback, "http://127.0.0.1:4000/files/x", true),
            (&loopback, "http://127.0.0.1:4001/files/x", false),
        ];
        for (base, address, expected) in cases {
            let address = Url::parse(address).unwrap();
            assert_eq!(is_platform_address(base, &address), expected, "{address}");
        }
    }
}

//! Client of the Bot API. The token is part of every address, so no address enters an error.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use reqwest::multipart::{Form, Part};
use reqwest::{Client, RequestBuilder, Response};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use url::Url;

use crate::platform::FileBody;

use super::failure::{Failure, decode_answer};

/// Timeout of an ordinary call.
const CALL_TIMEOUT: Duration = Duration::from_secs(30);
/// Timeout of a call that transfers a file.
const FILE_TIMEOUT: Duration = Duration::from_secs(180);
/// Maximum size of an answer.
const MAX_ANSWER: usize = 16 * 1024 * 1024;

/// Client of one bot.
#[derive(Debug, Clone)]
pub(super) struct BotApi {
    http: Client,
    base: Url,
    token: SecretString,
}

/// Answer to a call that is not decoded yet.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) body: Bytes,
}

impl BotApi {
    /// Creates a client.
    pub(super) fn new(http: Client, base: Url, token: SecretString) -> Self {
        Self { http, base, token }
    }

    /// Returns the digits of the token before its colon.
    pub(super) fn token_account(&self) -> &str {
        let token = self.token.expose_secret();
        token.split(':').next().unwrap_or_default()
    }

    /// Calls a method with JSON parameters.
    pub(super) async fn call(&self, method: &str, body: &Value) -> Result<Value, Failure> {
        self.call_within(method, body, CALL_TIMEOUT).await
    }

    /// Calls a method with a timeout.
    pub(super) async fn call_within(
        &self,
        method: &str,
        body: &Value,
        timeout: Duration,
    ) -> Result<Value, Failure> {
        let answer = self.raw(method, body, timeout).await?;
        self.decode(&answer)
    }

    /// Calls a method and returns its answer without decoding.
    pub(super) async fn raw(
        &self,
        method: &str,
        body: &Value,
        timeout: Duration,
    ) -> Result<Answer, Failure> {
        let address = self.address(&["bot"], method)?;
        let request = self.http.post(address).json(body).timeout(timeout);
        let response = self.response(request).await?;
        let status = response.status().as_u16();
        let body = read(response, MAX_ANSWER).await?;
        Ok(Answer { status, body })
    }

    /// Decodes an answer.
    pub(super) fn decode(&self, answer: &Answer) -> Result<Value, Failure> {
        decode_answer(answer.status, &answer.body).map_err(|failure| self.redacted(failure))
    }

    /// Calls a method with a file and text parameters.
    pub(super) async fn upload(
        &self,
        method: &str,
        fields: Vec<(&'static str, String)>,
        field: &'static str,
        file: &FileBody,
    ) -> Result<Value, Failure> {
        let part = || {
            let length = file.bytes.len() as u64;
            Part::stream_with_length(file.bytes.clone(), length).file_name(file.name.clone())
        };
        // An invalid media type is omitted; the Bot API finds out by itself.
        let part = part().mime_str(&file.media_type).unwrap_or_else(|_| part());
        let form = fields
            .into_iter()
            .fold(Form::new(), |form, (name, value)| form.text(name, value))
            .part(field, part);
        let address = self.address(&["bot"], method)?;
        let request = self
            .http
            .post(address)
            .multipart(form)
            .timeout(FILE_TIMEOUT);
        let response = self.response(request).await?;
        let status = response.status().as_u16();
        let body = read(response, MAX_ANSWER).await?;
        self.decode(&Answer { status, body })
    }

    /// Downloads a file by the path that `getFile` returned.
    pub(super) async fn download(&self, path: &str, max: u64) -> Result<Bytes, Failure> {
        let address = self.address(&["file", "bot"], path)?;
        let request = self.http.get(address).timeout(FILE_TIMEOUT);
        let response = self.response(request).await?;
        let status = response.status().as_u16();
        let max = usize::try_from(max).unwrap_or(usize::MAX);
        match status {
            200 if response
                .content_length()
                .is_some_and(|length| length > max as u64) =>
            {
                Err(too_large(max))
            }
            200 => read(response, max).await,
            400..=499 if status != 429 => {
                Err(Failure::refused("the file is not available any more"))
            }
            _ => Err(Failure::unavailable(format!("status {status}"))),
        }
    }

    /// Builds an address: the prefix, the token, and path segments.
    fn address(&self, prefix: &[&str], path: &str) -> Result<Url, Failure> {
        let mut address = self.base.clone();
        let is_plain = path
            .split('/')
            .all(|segment| !matches!(segment, "" | "." | ".."));
        let Ok(mut segments) = address.path_segments_mut() else {
            return Err(Failure::refused("the base address has no path"));
        };
        if !is_plain {
            return Err(Failure::refused("the server returned an invalid file path"));
        }
        segments.pop_if_empty();
        if let [folder, _] = prefix {
            segments.push(folder);
        }
        segments.push(&format!("bot{}", self.token.expose_secret()));
        segments.extend(path.split('/'));
        drop(segments);
        Ok(address)
    }

    async fn response(&self, request: RequestBuilder) -> Result<Response, Failure> {
        let response = request.send().await.map_err(transport);
        response.map_err(|failure| self.redacted(failure))
    }

    /// Removes the token from words that a server may have echoed.
    fn redacted(&self, mut failure: Failure) -> Failure {
        let token = self.token.expose_secret();
        if failure.description.contains(token) {
            failure.description = failure.description.replace(token, "***");
        }
        failure
    }
}

/// Reads a body of at most `max` bytes.
async fn read(response: Response, max: usize) -> Result<Bytes, Failure> {
    let mut body = BytesMut::new();
    let mut stream = response.bytes_stream();
    while let Some(chunk) = stream.next().await {
        let chunk = chunk.map_err(transport)?;
        if body.len() + chunk.len() > max {
            return Err(too_large(max));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body.freeze())
}

fn too_large(max: usize) -> Failure {
    Failure::refused(format!("more than {} MB", max / (1024 * 1024)))
}

/// Returns the failure of a transfer with its causes, without the address.
fn transport(error: reqwest::Error) -> Failure {
    let error = error.without_url();
    let mut description = error.to_string();
    let mut cause = std::error::Error::source(&error);
    while let Some(inner) = cause {
        description = format!("{description}: {inner}");
        cause = inner.source();
    }
    Failure::unavailable(description)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn api(base: &str) -> BotApi {
        BotApi::new(
            Client::default(),
            Url::parse(base).unwrap(),
            SecretString::from("123:SECRET"),
        )
    }

    #[test]
    fn addresses_hold_token_and_method() {
        let api = api("http://127.0.0.1:1/base/");
        assert_eq!(
            api.address(&["bot"], "getMe").unwrap().as_str(),
            "http://127.0.0.1:1/base/bot123:SECRET/getMe"
        );
        assert_eq!(
            api.address(&["file", "bot"], "photos/a b?c.jpg")
                .unwrap()
                .as_str(),
            "http://127.0.0.1:1/base/file/bot123:SECRET/photos/a%20b%3Fc.jpg"
        );
        for path in ["/etc/passwd", "../x", "a//b", "."] {
            assert!(api.address(&["file", "bot"], path).is_err(), "{path}");
        }
    }

    #[tokio::test]
    async fn errors_and_debug_output_hold_no_token() {
        let api = api("http://127.0.0.1:1");
        let failure = api.call("getMe", &Value::Null).await.unwrap_err();
        assert!(!format!("{failure:?} {api:?}").contains("SECRET"));
        let echoed = Answer {
            status: 400,
            body: Bytes::from_static(
                br#"{"ok":false,"error_code":400,"description":"bad 123:SECRET"}"#,
            ),
        };
        assert_eq!(api.decode(&echoed).unwrap_err().description, "bad ***");
    }
}

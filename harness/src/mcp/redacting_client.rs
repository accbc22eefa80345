//! HTTP client for the `rmcp` transport that redacts errors. `rmcp` logs errors, so they must
//! contain neither the server's address, which may hold a key, nor the server's response text,
//! which may repeat the request.

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::stream::BoxStream;
use reqwest::Client;
use reqwest::header::{HeaderName, HeaderValue};
use rmcp::model::ClientJsonRpcMessage;
use rmcp::transport::streamable_http_client::{
    SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
};
use sse_stream::Sse;

/// Client whose errors contain no secrets.
#[derive(Debug, Clone)]
pub(super) struct RedactingClient(pub(super) Client);

type Failure = StreamableHttpError<reqwest::Error>;
type Headers = HashMap<HeaderName, HeaderValue>;
type Events = BoxStream<'static, Result<Sse, SseError>>;

fn redacted(failure: Failure) -> Failure {
    match failure {
        StreamableHttpError::Client(error) => StreamableHttpError::Client(error.without_url()),
        // The text is `HTTP 404 Not Found: <response body>`.
        StreamableHttpError::UnexpectedServerResponse(text) => {
            let own = text.split(':').next().unwrap_or_default();
            StreamableHttpError::UnexpectedServerResponse(own.to_owned().into())
        }
        other => other,
    }
}

impl StreamableHttpClient for RedactingClient {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        address: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        self.0
            .post_message(address, message, session, token, headers)
            .await
            .map_err(redacted)
    }

    async fn post_message_with_max_sse_event_size(
        &self,
        address: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: Headers,
        max_size: usize,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        let sent = self.0.post_message_with_max_sse_event_size(
            address, message, session, token, headers, max_size,
        );
        sent.await.map_err(redacted)
    }

    async fn delete_session(
        &self,
        address: Arc<str>,
        session: Arc<str>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<(), Failure> {
        self.0
            .delete_session(address, session, token, headers)
            .await
            .map_err(redacted)
    }

    async fn get_stream(
        &self,
        address: Arc<str>,
        session: Option<Arc<str>>,
        last: Option<String>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<Events, Failure> {
        self.0
            .get_stream(address, session, last, token, headers)
            .await
            .map_err(redacted)
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        address: Arc<str>,
        session: Option<Arc<str>>,
        last: Option<String>,
        token: Option<String>,
        headers: Headers,
        max_size: usize,
    ) -> Result<Events, Failure> {
        self.0
            .get_stream_with_max_sse_event_size(address, session, last, token, headers, max_size)
            .await
            .map_err(redacted)
    }
}

#[cfg(test)]
#[path = "redacting_client_tests.rs"]
mod tests;

//! The client that the protocol's machine gets. The machine logs errors, so they tell neither a server's address, which may hold a key,
//! nor what it says itself, which may repeat what it was sent.

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

/// A client whose errors tell nothing that may hold a key.
#[derive(Debug, Clone)]
pub(super) struct Discreet(pub(super) Client);

type Failure = StreamableHttpError<reqwest::Error>;
type Headers = HashMap<HeaderName, HeaderValue>;
type Events = BoxStream<'static, Result<Sse, SseError>>;

fn discreet(failure: Failure) -> Failure {
    match failure {
        StreamableHttpError::Client(error) => StreamableHttpError::Client(error.without_url()),
        // As in `HTTP 404 Not Found: <what it says>`.
        StreamableHttpError::UnexpectedServerResponse(text) => {
            let own = text.split(':').next().unwrap_or_default();
            StreamableHttpError::UnexpectedServerResponse(own.to_owned().into())
        }
        other => other,
    }
}

impl StreamableHttpClient for Discreet {
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
            .map_err(discreet)
    }

    async fn post_message_with_max_sse_event_size(
        &self,
        address: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: Headers,
        most: usize,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        let sent = self
            .0
            .post_message_with_max_sse_event_size(address, message, session, token, headers, most);
        sent.await.map_err(discreet)
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
            .map_err(discreet)
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
            .map_err(discreet)
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        address: Arc<str>,
        session: Option<Arc<str>>,
        last: Option<String>,
        token: Option<String>,
        headers: Headers,
        most: usize,
    ) -> Result<Events, Failure> {
        self.0
            .get_stream_with_max_sse_event_size(address, session, last, token, headers, most)
            .await
            .map_err(discreet)
    }
}

#[cfg(test)]
mod tests {
    use rmcp::model::{ClientRequest, PingRequest, RequestId};

    use super::*;

    #[test]
    fn no_error_tells_what_a_server_says() {
        let failure = discreet(StreamableHttpError::UnexpectedServerResponse(
            "HTTP 403 Forbidden: you sent canary".into(),
        ));
        assert_eq!(
            failure.to_string(),
            "unexpected server response: HTTP 403 Forbidden"
        );
    }

    #[tokio::test]
    async fn no_error_tells_the_key_in_an_address() {
        let client = Discreet(super::super::http::client().unwrap());
        let address = || Arc::<str>::from("http://127.0.0.1:9/mcp?key=canary");
        let session = || Some(Arc::<str>::from("s"));
        let message = || {
            ClientJsonRpcMessage::request(
                ClientRequest::PingRequest(PingRequest::default()),
                RequestId::Number(1),
            )
        };
        let told = [
            format!(
                "{:?}",
                client
                    .post_message(address(), message(), None, None, Headers::new())
                    .await
                    .unwrap_err()
            ),
            format!(
                "{:?}",
                client
                    .post_message_with_max_sse_event_size(
                        address(),
                        message(),
                        None,
                        None,
                        Headers::new(),
                        9
                    )
                    .await
                    .unwrap_err()
            ),
            format!(
                "{:?}",
                client
                    .delete_session(address(), "s".into(), None, Headers::new())
                    .await
                    .unwrap_err()
            ),
            format!(
                "{:?}",
                client
                    .get_stream(address(), session(), None, None, Headers::new())
                    .await
                    .err()
            ),
            format!(
                "{:?}",
                client
                    .get_stream_with_max_sse_event_size(
                        address(),
                        session(),
                        None,
                        None,
                        Headers::new(),
                        9
                    )
                    .await
                    .err()
            ),
        ];
        assert!(
            told.iter()
                .all(|told| told.contains("Connect") && !told.contains("canary")),
            "{told:#?}"
        );
    }
}

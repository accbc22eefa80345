//! HTTP with SSE, the older HTTP transport: the server sends an event stream and names an address
//! for the client's messages.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::future::Future;

use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap};
use reqwest::{Client, Url};
use rmcp::RoleClient;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::Transport;

use super::decoding;
use super::http::{TransportFailure, is_same_origin};
use crate::child_process::ConnectionHealth;
use crate::models::http::{EventSplitter, EventTooLong};

/// Failure of the SSE transport.
#[derive(Debug, thiserror::Error)]
pub(super) enum SseError {
    #[error(transparent)]
    Http(TransportFailure),
    #[error("the server did not return an event stream")]
    NoStream,
    #[error("the server sent no message address of its own origin")]
    NoAddress,
}

impl From<reqwest::Error> for SseError {
    fn from(error: reqwest::Error) -> Self {
        Self::Http(TransportFailure::from_error(&error))
    }
}

/// Connection to a server over SSE.
pub(super) struct SseTransport {
    client: Client,
    headers: HeaderMap,
    address: Url,
    events: Events,
}

impl SseTransport {
    /// Opens the event stream and waits for the message address.
    pub(super) async fn connect(
        client: Client,
        url: &Url,
        headers: HeaderMap,
        health: ConnectionHealth,
    ) -> Result<Self, SseError> {
        let request = client
            .get(url.clone())
            .headers(headers.clone())
            .header(ACCEPT, "text/event-stream");
        let response = request.send().await?.error_for_status()?;
        let kind = response
            .headers()
            .get(CONTENT_TYPE)
            .and_then(|kind| kind.to_str().ok())
            .unwrap_or_default();
        if !kind.starts_with("text/event-stream") {
            return Err(SseError::NoStream);
        }
        let home = response.url().clone();
        let bytes = response
            .bytes_stream()
            .map(|piece| piece.map(|bytes| bytes.to_vec()))
            .boxed();
        let mut events = Events {
            bytes,
            splitter: EventSplitter::default(),
            ready: VecDeque::new(),
            health,
        };
        let named = events.next().await.ok_or(SseError::NoAddress)?;
        let address = std::str::from_utf8(&named)
            .ok()
            .and_then(|text| home.join(text.trim()).ok());
        // The headers may hold keys and must not be sent to another origin.
        let address = address
            .filter(|address| is_same_origin(&home, address))
            .ok_or(SseError::NoAddress)?;
        Ok(Self {
            client,
            headers,
            address,
            events,
        })
    }
}

impl Transport<RoleClient> for SseTransport {
    type Error = SseError;

    fn name() -> Cow<'static, str> {
        "sse".into()
    }

    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), SseError>> + Send + 'static {
        let request = self
            .client
            .post(self.address.clone())
            .headers(self.headers.clone())
            .json(&message);
        async move {
            request.send().await?.error_for_status()?;
            Ok(())
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            let event = self.events.next().await?;
            match decoding::message(&event) {
                Ok(message) => return Some(message),
                Err(error) => {
                    tracing::debug!(%error, "mcp server sent an event that is not a message");
                    if !self.events.health.count_message() {
                        return None;
                    }
                }
            }
        }
    }

    async fn close(&mut self) -> Result<(), SseError> {
        self.events.bytes = futures_util::stream::empty().boxed();
        Ok(())
    }
}

/// Events of the stream. `next` is cancel-safe.
struct Events {
    bytes: BoxStream<'static, Result<Vec<u8>, reqwest::Error>>,
    splitter: EventSplitter,
    ready: VecDeque<Vec<u8>>,
    health: ConnectionHealth,
}

impl Events {
    async fn next(&mut self) -> Option<Vec<u8>> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            let piece = self
                .bytes
                .next()
                .await?
                .inspect_err(|error| {
                    self.health
                        .fail(TransportFailure::from_error(error).to_string())
                })
                .ok()?;
            if !self.health.count_bytes(piece.len()) {
                return None;
            }
            let ready = &mut self.ready;
            let pushed: Result<(), EventTooLong> = self.splitter.push(&piece, |event| {
                ready.push_back(event.to_vec());
                Ok(())
            });
            if pushed.is_err() {
                self.health.fail("it sent an event that is too long");
                return None;
            }
        }
    }
}

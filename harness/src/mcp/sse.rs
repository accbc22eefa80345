//! The older way over HTTP: a stream of events from the server, and an address that it names for what the client says.

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

use super::http::{Trouble, is_same_origin};
use super::reading;
use crate::models::http::{EventCutter, EventTooLong};
use crate::programs::Faults;

/// Why a server of the older way cannot be talked to.
#[derive(Debug, thiserror::Error)]
pub(super) enum SseError {
    #[error(transparent)]
    Http(Trouble),
    #[error("the server did not answer with a stream of events")]
    NoStream,
    #[error("the server named no address of its own for messages")]
    NoAddress,
}

impl From<reqwest::Error> for SseError {
    fn from(error: reqwest::Error) -> Self {
        Self::Http(Trouble::behind(&error))
    }
}

/// A connection to such a server.
pub(super) struct SseTransport {
    client: Client,
    headers: HeaderMap,
    address: Url,
    events: Events,
}

impl SseTransport {
    /// Opens the stream and waits for the address.
    pub(super) async fn connect(
        client: Client,
        url: &Url,
        headers: HeaderMap,
        faults: Faults,
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
            cutter: EventCutter::default(),
            ready: VecDeque::new(),
            faults,
        };
        let named = events.next().await.ok_or(SseError::NoAddress)?;
        let address = std::str::from_utf8(&named)
            .ok()
            .and_then(|text| home.join(text.trim()).ok());
        // Elsewhere the headers, which may hold keys, would be shown to somebody else.
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
            match reading::message(&event) {
                Ok(message) => return Some(message),
                Err(error) => {
                    tracing::debug!(%error, "an mcp server sent an event that is no message");
                    if !self.events.faults.count_message() {
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

/// The events of the stream. Dropping `next` loses none.
struct Events {
    bytes: BoxStream<'static, Result<Vec<u8>, reqwest::Error>>,
    cutter: EventCutter,
    ready: VecDeque<Vec<u8>>,
    faults: Faults,
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
                .inspect_err(|error| self.faults.blame(Trouble::behind(error).to_string()))
                .ok()?;
            if !self.faults.count(piece.len()) {
                return None;
            }
            let ready = &mut self.ready;
            let cut: Result<(), EventTooLong> = self.cutter.push(&piece, |event| {
                ready.push_back(event.to_vec());
                Ok(())
            });
            if cut.is_err() {
                self.faults.blame("it sent an event that is too long");
                return None;
            }
        }
    }
}

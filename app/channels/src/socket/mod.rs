//! Client side of WebSockets over the HTTP client: one TLS stack, one proxy logic.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures_util::{SinkExt, StreamExt};
use http::{HeaderMap, StatusCode, Version, header};
use reqwest::{Client, Upgraded};
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message};
use url::Url;

use crate::platform::PlatformError;

/// Maximum size of a received frame and message.
pub const MAX_FRAME_BYTES: usize = 1024 * 1024;
/// Timeout of the upgrade request.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
/// Timeout of one write.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);
/// Timeout of the close handshake.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// Upgrade request that the server refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedUpgrade {
    /// Status.
    pub status: StatusCode,
    /// Headers.
    pub headers: HeaderMap,
}

/// Reason why no socket was opened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// The server answered without an upgrade.
    #[error("the server refused the WebSocket with status {}", .0.status)]
    Refused(RefusedUpgrade),
    /// The server was not reached, or its answer was invalid.
    #[error("{0}")]
    Unreachable(String),
}

impl From<OpenError> for PlatformError {
    fn from(error: OpenError) -> Self {
        Self::Unavailable(error.to_string())
    }
}

/// Received message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Incoming {
    /// Text.
    Text(String),
    /// Bytes.
    Binary(bytes::Bytes),
    /// Ping or pong; only shows that the socket is alive. Pings are answered.
    Alive,
    /// The socket was closed, with the code of the close frame.
    Closed {
        /// Code, if a close frame arrived.
        code: Option<u16>,
        /// Reason of the close frame, or the error of the transport.
        reason: String,
    },
}

/// Open WebSocket.
#[derive(Debug)]
pub struct Socket {
    stream: WebSocketStream<Upgraded>,
}

impl Socket {
    /// Opens a socket at a `ws`, `wss`, `http` or `https` address.
    ///
    /// # Errors
    /// [`OpenError`]; its texts do not contain the address, which may contain a ticket.
    pub async fn open(http: &Client, address: &Url, headers: HeaderMap) -> Result<Self, OpenError> {
        let unreachable = |error: &dyn std::fmt::Display| OpenError::Unreachable(error.to_string());
        let mut address = address.clone();
        let scheme = match address.scheme() {
            "ws" | "http" => "http",
            _ => "https",
        };
        // `set_scheme` refuses to change between special and other schemes; all four are special.
        if address.set_scheme(scheme).is_err() {
            return Err(OpenError::Unreachable("not a WebSocket address".to_owned()));
        }
        let request = http
            .get(address)
            .version(Version::HTTP_11)
            .headers(headers)
            .header(header::CONNECTION, "Upgrade")
            .header(header::UPGRADE, "websocket")
            .header(header::SEC_WEBSOCKET_VERSION, "13")
            .header(
                header::SEC_WEBSOCKET_KEY,
                STANDARD.encode(rand::random::<[u8; 16]>()),
            );
        let response = timeout(CONNECT_TIMEOUT, request.send())
            .await
            .map_err(|_| OpenError::Unreachable("connecting timed out".to_owned()))?
            .map_err(|error| unreachable(&error.without_url()))?;
        if response.status() != StatusCode::SWITCHING_PROTOCOLS {
            return Err(OpenError::Refused(RefusedUpgrade {
                status: response.status(),
                headers: response.headers().clone(),
            }));
        }
        let upgraded = timeout(CONNECT_TIMEOUT, response.upgrade())
            .await
            .map_err(|_| OpenError::Unreachable("the upgrade timed out".to_owned()))?
            .map_err(|error| unreachable(&error.without_url()))?;
        let mut config = WebSocketConfig::default();
        config.max_frame_size = Some(MAX_FRAME_BYTES);
        config.max_message_size = Some(MAX_FRAME_BYTES);
        let stream = WebSocketStream::from_raw_socket(upgraded, Role::Client, Some(config)).await;
        Ok(Self { stream })
    }

    /// Returns the next message. After [`Incoming::Closed`] there are no more.
    pub async fn next(&mut self) -> Incoming {
        match self.stream.next().await {
            Some(Ok(Message::Text(text))) => Incoming::Text(text.as_str().to_owned()),
            Some(Ok(Message::Binary(bytes))) => Incoming::Binary(bytes),
            Some(Ok(Message::Close(frame))) => Incoming::Closed {
                code: frame.as_ref().map(|frame| frame.code.into()),
                reason: frame.map_or_else(
                    || "closed without a reason".to_owned(),
                    |frame| frame.reason.as_str().to_owned(),
                ),
            },
            Some(Ok(_)) => Incoming::Alive,
            Some(Err(error)) => Incoming::Closed {
                code: None,
                reason: error.to_string(),
            },
            None => Incoming::Closed {
                code: None,
                reason: "the connection ended".to_owned(),
            },
        }
    }

    /// Sends a text.
    pub async fn send_text(&mut self, text: impl Into<String>) -> Result<(), PlatformError> {
        self.send(Message::text(text.into())).await
    }

    /// Sends bytes.
    pub async fn send_binary(&mut self, bytes: bytes::Bytes) -> Result<(), PlatformError> {
        self.send(Message::Binary(bytes)).await
    }

    /// Sends a ping.
    pub async fn ping(&mut self) -> Result<(), PlatformError> {
        self.send(Message::Ping(bytes::Bytes::new())).await
    }

    async fn send(&mut self, message: Message) -> Result<(), PlatformError> {
        match timeout(WRITE_TIMEOUT, self.stream.send(message)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(Error::ConnectionClosed | Error::AlreadyClosed)) => Err(
                PlatformError::Unavailable("the socket is closed".to_owned()),
            ),
            Ok(Err(error)) => Err(PlatformError::Unavailable(error.to_string())),
            Err(_) => Err(PlatformError::Unavailable("a write timed out".to_owned())),
        }
    }

    /// Sends a close frame and waits briefly for the peer's.
    pub async fn close(self, code: u16) {
        self.close_after(code, &mut Vec::new()).await;
    }

    /// Sends a close frame, waits briefly for the peer's, and adds the texts that arrive before it.
    pub async fn close_after(mut self, code: u16, received: &mut Vec<String>) {
        let frame = CloseFrame {
            code: CloseCode::from(code),
            reason: "".into(),
        };
        let closing = async {
            if self.stream.close(Some(frame)).await.is_ok() {
                while let Some(Ok(message)) = self.stream.next().await {
                    if let Message::Text(text) = message {
                        received.push(text.as_str().to_owned());
                    }
                }
            }
        };
        // The peer may be gone; then the connection is dropped.
        let _ = timeout(CLOSE_TIMEOUT, closing).await;
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn texts_before_the_close_frame_of_the_peer_are_received() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("ws://{}/", listener.local_addr().unwrap());
        let peer = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                request.push(stream.read_u8().await.unwrap());
            }
            let upgrade = b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n";
            stream.write_all(upgrade).await.unwrap();
            // The close frame of the client.
            assert_eq!(stream.read_u8().await.unwrap(), 0x88);
            stream
                .write_all(b"\x81\x01a\x81\x01b\x88\x00")
                .await
                .unwrap();
            let mut rest = Vec::new();
            stream.read_to_end(&mut rest).await.unwrap();
        };
        let client = async {
            let address = Url::parse(&address).unwrap();
            let http = Client::builder().no_proxy().build().unwrap();
            let socket = Socket::open(&http, &address, HeaderMap::new())
                .await
                .unwrap();
            let mut received = Vec::new();
            socket.close_after(1000, &mut received).await;
            received
        };
        let (received, ()) = tokio::join!(client, peer);
        assert_eq!(received, ["a", "b"]);
    }
}

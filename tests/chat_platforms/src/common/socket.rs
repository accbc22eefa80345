//! Server side of WebSockets.

use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use http::{StatusCode, header};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::Role;

/// Accepted WebSocket.
pub type Socket = WebSocketStream<TokioIo<Upgraded>>;

/// Answers an upgrade request and calls `handle` with the socket in a task of its own.
pub fn accept_socket<F, R>(mut request: Request, handle: F) -> Response
where
    F: FnOnce(Socket) -> R + Send + 'static,
    R: Future<Output = ()> + Send,
{
    let Some(key) = request.headers().get(header::SEC_WEBSOCKET_KEY) else {
        return (StatusCode::BAD_REQUEST, "not a WebSocket request").into_response();
    };
    let accept = derive_accept_key(key.as_bytes());
    #[expect(
        clippy::disallowed_methods,
        reason = "a fake is a program of its own, without the task registry of the server"
    )]
    tokio::spawn(async move {
        if let Ok(upgraded) = hyper::upgrade::on(&mut request).await {
            let socket =
                WebSocketStream::from_raw_socket(TokioIo::new(upgraded), Role::Server, None).await;
            handle(socket).await;
        }
    });
    (
        StatusCode::SWITCHING_PROTOCOLS,
        [
            (header::CONNECTION, "Upgrade".to_owned()),
            (header::UPGRADE, "websocket".to_owned()),
            (header::SEC_WEBSOCKET_ACCEPT, accept),
        ],
    )
        .into_response()
}

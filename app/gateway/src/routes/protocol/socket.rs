//! `GET /threads/{t}/stream/events` as a WebSocket: commands and events on one connection.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use harness::runtime::tasks::TaskKind;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};

use super::metered_socket::MeteredSocket;
use super::open_log;
use super::session::SocketSession;
use crate::error::ApiError;
use crate::extract::{BODY_LIMIT, Ids};
use crate::guard::auth::CurrentSession;
use crate::guard::body_memory::RequestMemory;
use crate::guard::paths::class_of;
use crate::guard::request_guard::page_rule;
use crate::guard::web_client::WebClient;
use crate::routes::{App, ResponseResult};
use crate::state::GatewayState;

/// Version of the WebSocket protocol.
const VERSION: &str = "13";

pub(crate) async fn socket(State(state): App, ids: Ids, request: Request) -> ResponseResult {
    let (mut parts, _body) = request.into_parts();
    let Some(key) = upgrade_key(&parts.headers) else {
        return Ok(post_only());
    };
    let thread = ids.thread()?;
    if parts.headers.get(header::SEC_WEBSOCKET_VERSION) != Some(&HeaderValue::from_static(VERSION))
    {
        let refused = "Sec-WebSocket-Version must be 13".to_owned();
        return Err(ApiError::BadRequest(refused));
    }
    check_page(&state, parts.uri.path(), &parts.headers, &parts.extensions)?;
    let Some(upgrade) = parts.extensions.remove::<OnUpgrade>() else {
        let refused = "the connection cannot be upgraded".to_owned();
        return Err(ApiError::BadRequest(refused));
    };
    let reader = open_log(&state, &thread, 0).await?;
    let session = parts.extensions.remove::<CurrentSession>();
    let memory = parts.extensions.remove::<RequestMemory>();
    let socket = SocketSession::new(state.clone(), thread, reader, session, memory.clone());
    state
        .process
        .tasks
        .spawn(TaskKind::Service, "socket", async move {
            match upgrade.await {
                Ok(connection) => {
                    let config = WebSocketConfig::default()
                        .max_message_size(Some(BODY_LIMIT))
                        .max_frame_size(Some(BODY_LIMIT));
                    let io = MeteredSocket::new(TokioIo::new(connection), memory);
                    let stream =
                        WebSocketStream::from_raw_socket(io, Role::Server, Some(config)).await;
                    socket.serve(stream).await;
                }
                Err(error) => tracing::debug!(%error, "a connection was not upgraded"),
            }
        });
    let headers = [
        (header::CONNECTION, HeaderValue::from_static("Upgrade")),
        (header::UPGRADE, HeaderValue::from_static("websocket")),
        (header::SEC_WEBSOCKET_ACCEPT, accept(&key)?),
    ];
    Ok((StatusCode::SWITCHING_PROTOCOLS, headers, Body::empty()).into_response())
}

/// Returns the key of a request that asks for a WebSocket.
fn upgrade_key(headers: &HeaderMap) -> Option<Vec<u8>> {
    let names = |name: header::HeaderName, wanted: &str| {
        let value = headers.get(name).and_then(|value| value.to_str().ok());
        value.is_some_and(|value| {
            value
                .split(',')
                .any(|token| token.trim().eq_ignore_ascii_case(wanted))
        })
    };
    let is_upgrade = names(header::CONNECTION, "upgrade") && names(header::UPGRADE, "websocket");
    let key = headers.get(header::SEC_WEBSOCKET_KEY)?;
    is_upgrade.then(|| key.as_bytes().to_vec())
}

fn accept(key: &[u8]) -> Result<HeaderValue, ApiError> {
    HeaderValue::from_str(&derive_accept_key(key))
        .map_err(|error| ApiError::Internal(error.to_string()))
}

/// Rejects a socket that an untrusted page opens. Browsers open sockets of foreign pages without
/// asking, and the request is a `GET`, so it is checked like one that changes something.
fn check_page(
    state: &Arc<GatewayState>,
    path: &str,
    headers: &HeaderMap,
    extensions: &axum::http::Extensions,
) -> Result<(), ApiError> {
    let Some(client) = extensions.get::<WebClient>() else {
        let missing = "the route was mounted without a client".to_owned();
        return Err(ApiError::Internal(missing));
    };
    let rule = page_rule(class_of(path), headers);
    let policy = &state.security.origin_policy;
    policy.check_page(&Method::POST, client, headers, rule)
}

/// Returns the response to a `GET` that asks for no WebSocket.
fn post_only() -> Response {
    let allow = [(header::ALLOW, HeaderValue::from_static("POST"))];
    (allow, ApiError::MethodNotAllowed).into_response()
}

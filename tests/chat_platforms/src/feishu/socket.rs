//! Endpoint of long connections and the task of each connection.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use futures_util::{SinkExt, StreamExt};
use http::StatusCode;
use prost::Message as _;
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;

use super::frames::{CONTROL, DATA, FeishuFrame, pong};
use super::line::{FeishuConnection, Outbound};
use super::shared::FeishuShared;
use crate::common::{Socket, accept_socket};

/// Service id of all connections.
pub(super) const SERVICE: i32 = 3;
/// Path of the socket.
pub(super) const PATH: &str = "/ws/v2";
/// Time within which the first ping is expected.
const FIRST_PING: Duration = Duration::from_secs(2);

/// Returns the configuration of clients.
pub(super) fn client_config(ping_interval: u64) -> Value {
    json!({"ReconnectCount": -1, "ReconnectInterval": 1, "ReconnectNonce": 0, "PingInterval": ping_interval})
}

/// Answers the request for the address of the socket.
pub(super) fn endpoint(shared: &FeishuShared, body: &Value) -> (u16, Value) {
    let options = &shared.options;
    if body["AppID"] != options.app_id.as_str() || body["AppSecret"] != options.app_secret.as_str()
    {
        return (
            200,
            json!({"code": 1_000_040_345, "msg": "invalid app id or secret"}),
        );
    }
    let url = format!(
        "{}{PATH}?fpid=493&aid=552564&device_id=7382&access_key=AK&service_id={SERVICE}&ticket=TK",
        shared.socket_base
    );
    let config = client_config(options.ping_interval);
    (
        200,
        json!({"code": 0, "msg": "ok", "data": {"URL": url, "ClientConfig": config}}),
    )
}

/// Accepts or refuses a socket.
pub(super) async fn open(State(shared): State<Arc<FeishuShared>>, request: Request) -> Response {
    let refusal = shared.line.lock().refusals.pop_front();
    if let Some(refusal) = refusal {
        let mut response = StatusCode::FORBIDDEN.into_response();
        let headers = response.headers_mut();
        let code = refusal.auth_code.map(|code| code.to_string());
        for (name, value) in [
            ("handshake-status", Some(refusal.status.to_string())),
            ("handshake-msg", Some(refusal.message)),
            ("handshake-autherrcode", code),
        ] {
            if let Some(value) = value.and_then(|value| value.parse().ok()) {
                headers.insert(name, value);
            }
        }
        return response;
    }
    let query = request.uri().query().unwrap_or_default();
    if !query.contains("ticket=TK") || !query.contains("access_key=AK") {
        return (StatusCode::FORBIDDEN, [("handshake-status", "403")]).into_response();
    }
    accept_socket(request, async move |socket| {
        connection(shared, socket).await
    })
}

async fn connection(shared: Arc<FeishuShared>, socket: Socket) {
    let (sender, receiver) = unbounded_channel();
    let id = {
        let mut line = shared.line.lock();
        line.opened += 1;
        let id = line.opened;
        line.connections.push(FeishuConnection { id, sender });
        id
    };
    shared.change();
    shared.wake.notify_one();
    let close = exchange(&shared, socket, receiver).await;
    {
        let mut line = shared.line.lock();
        if close.is_some() || !shared.options.ghosts {
            line.connections.retain(|connection| connection.id != id);
        }
        line.closes.push(close);
    }
    shared.change();
}

/// Runs a connection until it ends and returns the code of the close frame that the client sent.
async fn exchange(
    shared: &FeishuShared,
    mut socket: Socket,
    mut outbound: UnboundedReceiver<Outbound>,
) -> Option<u16> {
    let opened = Instant::now();
    let mut pinged = false;
    let stopped = shared.stop.cancelled();
    tokio::pin!(stopped);
    loop {
        let received = tokio::select! {
            received = socket.next() => received,
            message = outbound.recv() => {
                match message {
                    Some(Outbound::Bytes(bytes)) => {
                        let _ = socket.send(Message::Binary(bytes.into())).await;
                        continue;
                    }
                    Some(Outbound::Close) => {
                        let _ = socket.send(Message::Close(None)).await;
                        continue;
                    }
                    Some(Outbound::Cut) | None => return None,
                }
            }
            () = &mut stopped => return None,
        };
        let bytes = match received {
            Some(Ok(Message::Binary(bytes))) => bytes,
            Some(Ok(Message::Close(frame))) => {
                // Answers the close frame.
                let _ = socket.flush().await;
                return Some(frame.map_or(1005, |frame: CloseFrame| frame.code.into()));
            }
            Some(Ok(_)) => continue,
            Some(Err(_)) | None => return None,
        };
        let Ok(frame) = FeishuFrame::decode(bytes) else {
            violation(shared, "a frame is not protobuf".to_owned());
            continue;
        };
        if frame.service != SERVICE {
            violation(
                shared,
                format!("a frame names the service {}", frame.service),
            );
        }
        match (frame.method, frame.header("type")) {
            (CONTROL, Some("ping")) => {
                if !pinged && opened.elapsed() > FIRST_PING {
                    violation(shared, "the first ping was late".to_owned());
                }
                pinged = true;
                shared.calls.record("ping", Value::Null, 0);
                if !shared.line.lock().mute {
                    let config = client_config(shared.options.ping_interval);
                    let bytes = pong(SERVICE, &config).encode_to_vec();
                    let _ = socket.send(Message::Binary(bytes.into())).await;
                }
            }
            (DATA, Some("event" | "card")) => {
                shared.line.lock().acknowledge(&frame, Instant::now());
                shared.change();
            }
            _ => violation(shared, format!("unexpected frame {frame:?}")),
        }
    }
}

fn violation(shared: &FeishuShared, text: String) {
    shared.line.lock().violations.push(text);
    shared.change();
}

/// Delivers events when they are due, until the fake stops.
pub(super) async fn deliver(shared: Arc<FeishuShared>) {
    loop {
        let wake = shared.wake.notified();
        tokio::pin!(wake);
        wake.as_mut().enable();
        let next = shared
            .line
            .lock()
            .deliver(SERVICE, &shared.options, Instant::now());
        let due = async {
            match next {
                Some(next) => tokio::time::sleep_until(next.into()).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = wake => {}
            () = due => {}
            () = shared.stop.cancelled() => return,
        }
    }
}

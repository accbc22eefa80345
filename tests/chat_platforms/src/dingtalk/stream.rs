//! Connections of stream mode.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Query, Request, State};
use axum::response::{IntoResponse, Response};
use futures_util::{SinkExt, StreamExt};
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use super::deliveries::Out;
use super::shared::DingTalkShared;
use crate::common::{Socket, accept_socket};

/// Time for which a frozen connection stays open.
const FROZEN: Duration = Duration::from_secs(120);

/// Query of the upgrade request.
#[derive(Debug, Deserialize)]
pub(super) struct Ticket {
    ticket: String,
}

/// Accepts a connection with an unused ticket.
pub(super) async fn connect(
    State(shared): State<Arc<DingTalkShared>>,
    Query(query): Query<Ticket>,
    request: Request,
) -> Response {
    if !shared.tickets.lock().remove(&query.ticket) {
        shared.calls.record("connect", Value::Null, 401);
        return StatusCode::UNAUTHORIZED.into_response();
    }
    shared.calls.record("connect", Value::Null, 0);
    accept_socket(request, move |socket| serve(shared, socket))
}

async fn serve(shared: Arc<DingTalkShared>, mut socket: Socket) {
    let (out, mut commands) = mpsc::unbounded_channel();
    let ping = json!({
        "specVersion": "1.0", "type": "SYSTEM",
        "headers": {
            "topic": "ping", "messageId": "p-1", "contentType": "application/json",
            "time": "1763870000000",
        },
        "data": "{\"opaque\":\"0d96\"}",
    });
    let _ = out.send(Out::Frame(ping));
    let number = shared.deliveries.lock().connect(out);
    let mut redelivery = interval(shared.options.redelivery / 2);
    redelivery.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let command = tokio::select! {
            command = commands.recv() => command.unwrap_or(Out::Drop),
            message = socket.next() => match message {
                Some(Ok(Message::Text(text))) => {
                    receive(&shared, text.as_str());
                    continue;
                }
                Some(Ok(Message::Close(frame))) => {
                    let code = frame.map_or(1005, |frame| u16::from(frame.code));
                    shared.calls.record("close", json!({"code": code}), 0);
                    // Sends the answer that the library prepared.
                    let _ = socket.flush().await;
                    break;
                }
                Some(Ok(Message::Ping(_))) => {
                    shared.calls.record("ping", Value::Null, 0);
                    continue;
                }
                Some(Ok(_)) => continue,
                Some(Err(_)) | None => break,
            },
            _ = redelivery.tick() => {
                shared.deliveries.lock().deliver(shared.options.redelivery);
                continue;
            }
        };
        match command {
            Out::Frame(frame) => drop(socket.send(Message::text(frame.to_string())).await),
            Out::Raw(text) => drop(socket.send(Message::text(text)).await),
            Out::Close(code) => {
                let frame = CloseFrame {
                    code: CloseCode::from(code),
                    reason: "".into(),
                };
                let _ = socket.close(Some(frame)).await;
                let rest = async { while let Some(Ok(_)) = socket.next().await {} };
                let _ = timeout(Duration::from_secs(1), rest).await;
                break;
            }
            Out::Drop => break,
            Out::Freeze => {
                sleep(FROZEN).await;
                break;
            }
        }
    }
    shared.deliveries.lock().disconnect(number);
}

/// Takes an acknowledgement.
fn receive(shared: &DingTalkShared, text: &str) {
    let Ok(frame) = serde_json::from_str::<Value>(text) else {
        shared.calls.record("ack", json!(text), 400);
        return;
    };
    let id = frame["headers"]["messageId"].as_str().unwrap_or_default();
    let data = frame["data"]
        .as_str()
        .and_then(|data| serde_json::from_str::<Value>(data).ok());
    let is_valid = frame["code"] == 200
        && frame["headers"]["contentType"] == "application/json"
        && data.as_ref().is_some_and(Value::is_object);
    let is_echo = id != "p-1" || data == Some(json!({"opaque": "0d96"}));
    let error = match is_valid && is_echo {
        true => 0,
        false => 400,
    };
    let known = error == 0 && shared.deliveries.lock().acknowledge(id);
    let name = match (id, known) {
        ("p-1", _) => "ack ping",
        ("d-1", _) => "ack disconnect",
        (_, true) => "ack message",
        (_, false) => "ack",
    };
    shared.calls.record(name, frame.clone(), error);
}

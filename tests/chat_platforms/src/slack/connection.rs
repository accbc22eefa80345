//! Socket Mode connection: frames, pings and its end.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use super::links::Command;
use super::shared::Shared;
use super::workspace::APP;
use crate::common::Socket;

/// Serves one connection until it ends.
pub(super) async fn serve(shared: Arc<Shared>, mut socket: Socket) {
    let (link, count, commands) = shared.links.enter();
    let hello = json!({
        "type": "hello",
        "num_connections": count,
        "debug_info": {"host": "applink-1", "build_number": 10, "approximate_connection_time": 18060},
        "connection_info": {"app_id": APP},
    });
    shared.calls.record("socket.open", json!({"link": link}), 0);
    let how = if socket.send(Message::text(hello.to_string())).await.is_ok() {
        run(&shared, link, &mut socket, commands).await
    } else {
        json!({"ended": "aborted"})
    };
    shared.links.leave(link);
    let mut body = json!({"link": link});
    body["end"] = how;
    shared.calls.record("socket.close", body, 0);
}

async fn run(
    shared: &Shared,
    link: u64,
    socket: &mut Socket,
    mut commands: UnboundedReceiver<Command>,
) -> Value {
    let interval = shared.options.lock().ping_interval;
    let mut pings = tokio::time::interval(interval.max(Duration::from_millis(1)));
    let mut silent = false;
    loop {
        tokio::select! {
            command = commands.recv() => {
                let sent = match command {
                    Some(Command::Silence) => { silent = true; Ok(()) }
                    Some(Command::Abort) | None => return json!({"by": "abort"}),
                    Some(Command::Text(_) | Command::Binary(_)) if silent => Ok(()),
                    Some(Command::Text(text)) => socket.send(Message::text(text)).await,
                    Some(Command::Binary(bytes)) => socket.send(Message::binary(bytes)).await,
                    Some(Command::Close(code)) => {
                        let frame = CloseFrame { code: CloseCode::from(code), reason: "".into() };
                        let _ = socket.close(Some(frame)).await;
                        while let Some(Ok(_)) = socket.next().await {}
                        return json!({"by": "server", "code": code});
                    }
                };
                if sent.is_err() {
                    return json!({"by": "error"});
                }
            }
            _ = pings.tick(), if !silent => {
                if socket.send(Message::Ping("fake".into())).await.is_err() {
                    return json!({"by": "error"});
                }
            }
            frame = socket.next(), if !silent => match frame {
                Some(Ok(Message::Text(text))) => received(shared, link, text.as_str()),
                Some(Ok(Message::Close(frame))) => {
                    // The answer to the close frame is written by the next read.
                    while let Some(Ok(_)) = socket.next().await {}
                    return json!({"by": "client", "code": frame.map(|frame| u16::from(frame.code))});
                }
                Some(Ok(Message::Ping(_))) => shared.calls.record("ping", json!({"link": link}), 0),
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return json!({"by": "error"}),
            },
        }
    }
}

fn received(shared: &Shared, link: u64, text: &str) {
    let frame: Value = serde_json::from_str(text).unwrap_or(Value::Null);
    let id = frame["envelope_id"].as_str().unwrap_or_default();
    let known = shared.links.ack(link, id);
    let body = json!({"link": link, "envelope_id": id, "frame": frame});
    shared.calls.record("ack", body, i64::from(!known));
}

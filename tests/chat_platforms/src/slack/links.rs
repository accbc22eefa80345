//! Socket Mode connections: tickets, frames, pings and their ends.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use super::shared::Shared;
use super::workspace::APP;
use crate::common::Socket;

/// Command to a connection.
#[derive(Debug, Clone)]
pub(super) enum Command {
    /// Sends a text.
    Text(String),
    /// Sends bytes.
    Binary(Vec<u8>),
    /// Sends a close frame and ends.
    Close(u16),
    /// Ends without a close frame.
    Abort,
    /// Stays open without reading or writing.
    Silence,
}

/// Envelope that waits for its acknowledgement.
#[derive(Debug)]
struct Waiting {
    link: u64,
    acked: oneshot::Sender<()>,
}

#[derive(Debug, Default)]
struct State {
    tickets: HashSet<String>,
    open: BTreeMap<u64, UnboundedSender<Command>>,
    last: u64,
    turn: u64,
    waiting: HashMap<String, Waiting>,
}

/// Connections.
#[derive(Debug, Default)]
pub(super) struct Links(Mutex<State>);

impl Links {
    /// Creates a ticket, unless too many connections are open.
    pub(super) fn ticket(&self, max: usize) -> Option<String> {
        let mut state = self.0.lock();
        if state.open.len() >= max {
            return None;
        }
        let ticket = format!("t{}", hex::encode(rand::random::<[u8; 8]>()));
        state.tickets.insert(ticket.clone());
        Some(ticket)
    }

    /// Consumes a ticket.
    pub(super) fn redeem(&self, ticket: &str) -> bool {
        self.0.lock().tickets.remove(ticket)
    }

    /// Returns the number of open connections.
    pub(super) fn count(&self) -> usize {
        self.0.lock().open.len()
    }

    /// Sends a command to every connection.
    pub(super) fn all(&self, command: &Command) {
        for link in self.0.lock().open.values() {
            // A connection that just ended gets nothing.
            let _ = link.send(command.clone());
        }
    }

    /// Sends an envelope to the next connection in turn. The receiver resolves when it is
    /// acknowledged there.
    pub(super) fn send(&self, id: &str, text: String) -> Option<oneshot::Receiver<()>> {
        let mut state = self.0.lock();
        let turn = state.turn as usize % state.open.len().max(1);
        state.turn += 1;
        let (link, sender) = state.open.iter().nth(turn)?;
        let (link, sender) = (*link, sender.clone());
        sender.send(Command::Text(text)).ok()?;
        let (acked, receiver) = oneshot::channel();
        state.waiting.insert(id.to_owned(), Waiting { link, acked });
        Some(receiver)
    }

    /// Forgets an envelope; a later acknowledgement has no effect.
    pub(super) fn forget(&self, id: &str) {
        self.0.lock().waiting.remove(id);
    }

    fn enter(&self) -> (u64, usize, UnboundedReceiver<Command>) {
        let (sender, receiver) = unbounded_channel();
        let mut state = self.0.lock();
        state.last += 1;
        let id = state.last;
        state.open.insert(id, sender);
        (id, state.open.len(), receiver)
    }

    fn leave(&self, link: u64) {
        let mut state = self.0.lock();
        state.open.remove(&link);
        state.waiting.retain(|_, waiting| waiting.link != link);
    }

    /// Returns `false` if no envelope of this connection waits under the id.
    fn ack(&self, link: u64, id: &str) -> bool {
        let mut state = self.0.lock();
        if state.waiting.get(id).is_none_or(|waiting| waiting.link != link) {
            return false;
        }
        state.waiting.remove(id).is_some_and(|waiting| waiting.acked.send(()).is_ok())
    }
}

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

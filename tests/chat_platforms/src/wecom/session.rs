//! One connection of a bot.

use std::collections::HashSet;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::FuturesUnordered;
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio_tungstenite::tungstenite::Message;

use super::files;
use super::replies::{self, Strictness};
use super::rules::{Refusal, answer, invalid, too_many, unanswered};
use super::state::{Connection, Outgoing, World};
use crate::common::{Fault, Socket};

/// Frame whose answer is pending.
struct Pending {
    req_id: String,
    command: String,
    body: Value,
    fault: Option<Fault>,
}

/// Event that is sent to a connection whose bot has connected elsewhere.
fn displaced() -> String {
    json!({
        "cmd": "aibot_event_callback",
        "headers": {"req_id": "EVENT"},
        "body": {"msgtype": "event", "event": {"eventtype": "disconnected_event"}},
    })
    .to_string()
}

/// Serves a connection until it ends.
pub(super) async fn run(world: Arc<World>, mut socket: Socket) {
    let (sender, receiver) = unbounded_channel();
    let number = world.state.lock().next();
    let mut session = Session {
        world: world.clone(),
        number,
        is_subscribed: false,
        sender,
        unanswered: HashSet::new(),
    };
    session.serve(&mut socket, receiver).await;
    let mut state = world.state.lock();
    if state.connection.as_ref().map(|current| current.number) == Some(number) {
        state.connection = None;
    }
}

struct Session {
    world: Arc<World>,
    number: u64,
    is_subscribed: bool,
    sender: UnboundedSender<Outgoing>,
    /// Requests with a frame whose answer is pending.
    unanswered: HashSet<String>,
}

type Delayed = Pin<Box<dyn Future<Output = Pending> + Send>>;

impl Session {
    async fn serve(&mut self, socket: &mut Socket, mut outgoing: UnboundedReceiver<Outgoing>) {
        let mut pending: FuturesUnordered<Delayed> = FuturesUnordered::new();
        loop {
            tokio::select! {
                message = socket.next() => match message {
                    Some(Ok(Message::Text(text))) => match self.receive(text.as_str()) {
                        Some((frame, delay)) => pending.push(Box::pin(async move {
                            tokio::time::sleep(delay).await;
                            frame
                        })),
                        None => return,
                    },
                    Some(Ok(Message::Close(_)) | Err(_)) | None => return,
                    Some(Ok(_)) => {}
                },
                Some(frame) = pending.next(), if !pending.is_empty() => {
                    if !self.answer(socket, frame).await {
                        return;
                    }
                }
                Some(outgoing) = outgoing.recv() => {
                    let sent = match outgoing {
                        Outgoing::Text(text) => socket.send(Message::text(text)).await,
                        Outgoing::Binary(bytes) => socket.send(Message::Binary(bytes.into())).await,
                        Outgoing::Displace => {
                            // The bot may have closed the connection already.
                            let _ = socket.send(Message::text(displaced())).await;
                            let _ = socket.close(None).await;
                            return;
                        }
                        Outgoing::Drop => return,
                    };
                    if sent.is_err() {
                        return;
                    }
                }
            }
        }
    }

    /// Takes a frame. Returns it with the delay of its answer, or `None` to end the connection.
    fn receive(&mut self, text: &str) -> Option<(Pending, Duration)> {
        let frame: Value = serde_json::from_str(text).ok()?;
        let command = frame["cmd"].as_str()?.to_owned();
        let req_id = frame["headers"]["req_id"]
            .as_str()
            .filter(|id| !id.is_empty())?
            .to_owned();
        let fault = self.world.faults.take(&command);
        if fault == Some(Fault::Drop) {
            self.record(&command, &req_id, &frame["body"], -1);
            return None;
        }
        let mut pending = Pending {
            req_id,
            command,
            body: frame["body"].clone(),
            fault,
        };
        // A frame that follows too early is refused, and the first one stays unanswered.
        if !self.unanswered.insert(pending.req_id.clone()) {
            let refusal = unanswered();
            pending.fault = Some(Fault::Answer {
                status: 200,
                body: json!({"errcode": refusal.code, "errmsg": refusal.message}),
                headers: Default::default(),
            });
        }
        let delay = match &pending.fault {
            Some(Fault::Delay { ms }) => Duration::from_millis(*ms),
            _ => self.world.options.answer_delay,
        };
        Some((pending, delay))
    }

    fn record(&self, command: &str, req_id: &str, body: &Value, error: i64) {
        let mut body = match body {
            Value::Object(body) => body.clone(),
            _ => serde_json::Map::new(),
        };
        body.insert("req_id".to_owned(), json!(req_id));
        self.world.calls.record(command, Value::Object(body), error);
    }

    /// Performs a frame and answers it. Returns `false` to end the connection.
    async fn answer(&mut self, socket: &mut Socket, frame: Pending) -> bool {
        self.unanswered.remove(&frame.req_id);
        let result = match &frame.fault {
            Some(Fault::Answer { body, .. }) => Err(Refusal::new(
                body["errcode"].as_i64().unwrap_or(-1),
                body["errmsg"].as_str().unwrap_or_default(),
            )),
            Some(Fault::RateLimited { .. }) => Err(too_many()),
            Some(Fault::Ignore) => Ok(Value::Null),
            _ => self.perform(&frame),
        };
        let error = result.as_ref().err().map_or(0, |refusal| refusal.code);
        self.record(&frame.command, &frame.req_id, &frame.body, error);
        let is_ping = frame.command == "ping";
        if frame.fault == Some(Fault::LoseReply) {
            return false;
        }
        if is_ping && self.world.state.lock().ignores_pings {
            return true;
        }
        let text = answer(&frame.req_id, &result).to_string();
        let is_sent = socket.send(Message::text(text)).await.is_ok();
        if frame.command == "aibot_subscribe" && result.is_err() {
            // The bot may have closed the connection already.
            let _ = socket.close(None).await;
            return false;
        }
        is_sent
    }

    fn perform(&mut self, frame: &Pending) -> Result<Value, Refusal> {
        let body = &frame.body;
        if frame.command == "aibot_subscribe" {
            return self.subscribe(body);
        }
        if !self.is_subscribed {
            return Err(Refusal::new(846_600, "not subscribed"));
        }
        let strictness = Strictness {
            rate_limits: self.world.options.rate_limits,
            silent_expiry: self.world.options.silent_expiry,
        };
        let mut state = self.world.state.lock();
        match frame.command.as_str() {
            "ping" => Ok(Value::Null),
            "aibot_respond_msg" => {
                replies::respond(&mut state, self.number, &frame.req_id, body, strictness)
            }
            "aibot_send_msg" => replies::push(&mut state, body, strictness),
            "aibot_upload_media_init" => files::init(&mut state.uploads, body),
            "aibot_upload_media_chunk" => files::chunk(&mut state.uploads, body),
            "aibot_upload_media_finish" => files::finish(&mut state.uploads, body),
            _ => Err(invalid("unknown cmd")),
        }
    }

    /// Subscribes, and ends the former connection of the bot.
    fn subscribe(&mut self, body: &Value) -> Result<Value, Refusal> {
        let options = &self.world.options;
        if body["bot_id"] != options.bot_id || body["secret"] != options.secret {
            return Err(Refusal::new(40_001, "invalid bot_id or secret"));
        }
        self.is_subscribed = true;
        let mut state = self.world.state.lock();
        state.subscriptions += 1;
        let former = state.connection.replace(Connection {
            number: self.number,
            sender: self.sender.clone(),
        });
        if let Some(former) = former.filter(|former| former.number != self.number) {
            // It may have ended already.
            let _ = former.sender.send(Outgoing::Displace);
        }
        state.redeliver(options.redelivery);
        Ok(Value::Null)
    }
}

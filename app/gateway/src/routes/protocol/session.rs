//! One WebSocket: commands in, answers and events out.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{FutureExt, SinkExt, StreamExt};
use harness::ids::ThreadId;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use serde_json::{Map, Value, json};
use tokio::time::{Instant, MissedTickBehavior, interval_at};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Error as SocketError, Message, Utf8Bytes};

use super::answer::{CommandError, answer};
use super::command::{Command, Malformed, execute};
use super::input_respond::names_nested_agent;
use super::metered_socket::MeteredSocket;
use super::pending_events::PendingEvents;
use super::subscriptions::Subscriptions;
use crate::error::ApiError;
use crate::extract::parse_within;
use crate::guard::auth::CurrentSession;
use crate::guard::body_memory::RequestMemory;
use crate::observability::metrics::OpenStream;
use crate::state::GatewayState;
use crate::thread_log::{EventSelection, LogEvent, LogReader};

/// Maximum number of bytes of events that are read at once.
const BATCH: usize = 256 * 1024;
/// Time to wait for the events that were published before the socket was opened.
const REPLAY_TIMEOUT: Duration = Duration::from_millis(500);
/// Interval of checks of the session and of pings.
const CHECK: Duration = Duration::from_secs(2);
/// Number of checks between two pings.
const PING_EVERY: u32 = 10;
/// Close code of a session that has ended. Clients take it for the status 401.
const SESSION_ENDED: u16 = 4401;

type Stream = WebSocketStream<MeteredSocket<TokioIo<Upgraded>>>;

/// Reason why a socket ends.
enum Ending {
    /// The client is gone, or sends what is no WebSocket.
    Broken,
    /// The socket is closed with this code and text.
    Closed(CloseCode, &'static str),
}

impl From<SocketError> for Ending {
    fn from(error: SocketError) -> Self {
        tracing::debug!(%error, "a socket ended");
        match error {
            SocketError::Capacity(_) => Self::Closed(CloseCode::Size, "the frame is too large"),
            _ => Self::Broken,
        }
    }
}

/// State of one socket.
pub(super) struct SocketSession {
    state: Arc<GatewayState>,
    thread: ThreadId,
    reader: LogReader,
    subscriptions: Subscriptions,
    pending: PendingEvents,
    /// Position of the last event that was sent.
    sent: u64,
    session: Option<CurrentSession>,
    /// Memory of the message that is handled.
    memory: Option<RequestMemory>,
    _open: OpenStream,
}

impl SocketSession {
    pub(super) fn new(
        state: Arc<GatewayState>,
        thread: ThreadId,
        reader: LogReader,
        session: Option<CurrentSession>,
        memory: Option<RequestMemory>,
    ) -> Self {
        Self {
            state,
            thread,
            reader,
            subscriptions: Subscriptions::default(),
            pending: PendingEvents::default(),
            sent: 0,
            session,
            memory,
            _open: OpenStream::new(),
        }
    }

    /// Serves the socket until one side closes it.
    pub(super) async fn serve(mut self, mut stream: Stream) {
        let Err(ending) = self.exchange(&mut stream).await else {
            return;
        };
        if let Ending::Closed(code, reason) = ending {
            let frame = CloseFrame {
                code,
                reason: reason.into(),
            };
            if let Err(error) = stream.close(Some(frame)).await {
                tracing::debug!(%error, "a socket ended before it was closed");
            }
        }
    }

    async fn exchange(&mut self, stream: &mut Stream) -> Result<(), Ending> {
        let shutdown = self.state.process.shutdown.clone();
        let mut checks = interval_at(Instant::now() + CHECK, CHECK);
        checks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut ticks = 0_u32;
        loop {
            tokio::select! {
                frame = stream.next() => match frame {
                    None => return Ok(()),
                    Some(frame) => self.receive(frame?, stream).await?,
                },
                () = self.pending.due() => {
                    // A subscription that has arrived was sent at once with those before it.
                    let frame = if self.pending.is_overdue() {
                        None
                    } else {
                        stream.next().now_or_never()
                    };
                    match frame {
                        None => self.send_pending(stream).await?,
                        Some(None) => return Ok(()),
                        Some(Some(frame)) => self.receive(frame?, stream).await?,
                    }
                }
                is_open = self.reader.changed(), if !self.pending.is_delayed() => {
                    self.collect_events()?;
                    self.send_pending(stream).await?;
                    if !is_open {
                        return Err(Ending::Closed(CloseCode::Error, "the events are interrupted"));
                    }
                }
                _ = checks.tick() => {
                    if self.has_session_ended().await {
                        let code = CloseCode::from(SESSION_ENDED);
                        return Err(Ending::Closed(code, "the session has ended"));
                    }
                    ticks = ticks.wrapping_add(1);
                    if ticks.is_multiple_of(PING_EVERY) {
                        stream.send(Message::Ping(Default::default())).await?;
                    }
                }
                () = shutdown.cancelled() => {
                    return Err(Ending::Closed(CloseCode::Restart, "the server is shutting down"));
                }
            }
        }
    }

    async fn has_session_ended(&self) -> bool {
        let Some(session) = &self.session else {
            return false;
        };
        let sessions = self.state.security.authenticator.sessions();
        sessions.has_ended(session.token()).await
    }

    /// Collects the next events that the subscriptions select. Returns `false` if there are none.
    fn collect_events(&mut self) -> Result<bool, Ending> {
        let events = self.reader.read(BATCH).map_err(|error| {
            tracing::debug!(%error, "a socket is too slow");
            Ending::Closed(CloseCode::Error, "the client is too slow")
        })?;
        let selected = events
            .iter()
            .filter(|event| self.subscriptions.select(event));
        for event in selected {
            self.pending.add(event.seq, text(event)?);
        }
        Ok(!events.is_empty())
    }

    /// Sends the collected events.
    async fn send_pending(&mut self, stream: &mut Stream) -> Result<(), Ending> {
        for (seq, event) in self.pending.take() {
            stream.feed(event).await?;
            self.sent = self.sent.max(seq);
        }
        Ok(stream.flush().await?)
    }

    /// Handles a frame of the client, and releases its memory.
    async fn receive(&mut self, frame: Message, stream: &mut Stream) -> Result<(), Ending> {
        self.handle(frame, stream).await?;
        stream.get_mut().message_handled();
        Ok(())
    }

    async fn handle(&mut self, frame: Message, stream: &mut Stream) -> Result<(), Ending> {
        let body = match &frame {
            Message::Text(text) => parse_within(text.as_bytes(), self.memory.as_ref()).await,
            Message::Binary(_) => Err(ApiError::BadRequest(
                "a command must be a text frame".to_owned(),
            )),
            Message::Close(_) | Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => {
                return Ok(());
            }
        };
        let read = match body {
            Ok(body) => Command::read(body),
            Err(error) => Err(Malformed {
                id: Value::Null,
                error: CommandError::invalid(error.to_string()),
            }),
        };
        let command = match read {
            Ok(command) => command,
            Err(Malformed { id, error }) => return self.reply(&id, Err(error), stream).await,
        };
        match self.execute(&command).await {
            Ok(Outcome::Result(result)) => {
                self.send_pending(stream).await?;
                self.reply(&command.id, Ok(result), stream).await
            }
            Ok(Outcome::Subscribe(subscribe)) => self.add(&command.id, *subscribe, stream).await,
            Err(error) => self.reply(&command.id, Err(error), stream).await,
        }
    }

    async fn reply(
        &mut self,
        id: &Value,
        result: Result<Value, CommandError>,
        stream: &mut Stream,
    ) -> Result<(), Ending> {
        let body = answer(id, &result, self.sent);
        Ok(stream.send(Message::text(body.to_string())).await?)
    }

    async fn execute(&mut self, command: &Command) -> Result<Outcome, CommandError> {
        match command.method.as_str() {
            "subscription.subscribe" => self.subscribe(&command.params()?, false).await,
            "subscription.reconnect" => self.subscribe(&command.params()?, true).await,
            "subscription.unsubscribe" => {
                let params = command.params()?;
                let Some(Value::String(id)) = params.get("subscription_id") else {
                    return Err(CommandError::invalid("subscription_id must be a text"));
                };
                if !self.subscriptions.remove(id) {
                    let unknown = "the socket has no such subscription";
                    return Err(CommandError::new("no_such_subscription", unknown));
                }
                Ok(Outcome::Result(json!({})))
            }
            "agent.getTree" => {
                let tree = self.reader.tree().ok_or_else(CommandError::no_such_run)?;
                Ok(Outcome::Result(json!({ "tree": tree })))
            }
            "input.respond" if names_nested_agent(&command.params()?) => {
                Err(CommandError::no_such_interrupt("of another namespace"))
            }
            _ => {
                let result = execute(&self.state, &self.thread, command).await?;
                Ok(Outcome::Result(result))
            }
        }
    }

    async fn subscribe(
        &mut self,
        params: &Map<String, Value>,
        is_reconnect: bool,
    ) -> Result<Outcome, CommandError> {
        let selection = EventSelection::read(params).map_err(CommandError::invalid)?;
        self.reader.wait_until_complete(REPLAY_TIMEOUT).await;
        let since = selection.since;
        if let Some(since) = since
            && let Some(available) = self.reader.gap_after(since)
        {
            let gap = format!(
                "events after {since} are not available; the first available one is {available}"
            );
            let mut refused = CommandError::new("resume_gap", gap);
            for (key, value) in [("since", since), ("min_available_seq", available)] {
                refused.details.insert(key.to_owned(), value.into());
            }
            return Err(refused);
        }
        let former = params.get("subscription_id").and_then(Value::as_str);
        Ok(Outcome::Subscribe(Box::new(Subscribe {
            selection,
            former: former.filter(|_| is_reconnect).map(str::to_owned),
        })))
    }

    /// Adds a subscription, answers its command, and collects the events that the socket has
    /// passed.
    async fn add(
        &mut self,
        command: &Value,
        Subscribe { selection, former }: Subscribe,
        stream: &mut Stream,
    ) -> Result<(), Ending> {
        // Published events that other subscriptions select are not counted as replayed.
        while self.collect_events()? {}
        let mut position = selection.since.unwrap_or_default();
        let added = self
            .subscriptions
            .add(selection, position, former.as_deref());
        let id = match added {
            Ok(id) => id,
            Err(error) => {
                self.pending.delay();
                return self.reply(command, Err(error), stream).await;
            }
        };
        let mut replayed = 0;
        loop {
            let (events, is_whole) = self.reader.replay(position, BATCH);
            let only = events
                .iter()
                .filter(|event| self.subscriptions.select_only_by(&id, event));
            for event in only {
                self.pending.add(event.seq, text(event)?);
                replayed += 1;
            }
            match events.last() {
                Some(last) if !is_whole => position = last.seq,
                _ => break,
            }
        }
        self.pending.delay();
        let result = json!({ "subscription_id": id, "replayed_events": replayed });
        self.reply(command, Ok(result), stream).await
    }
}

/// A valid request for a subscription.
struct Subscribe {
    selection: EventSelection,
    /// Id of the subscription that it replaces.
    former: Option<String>,
}

/// Outcome of a command.
enum Outcome {
    Result(Value),
    Subscribe(Box<Subscribe>),
}

fn text(event: &LogEvent) -> Result<Message, Ending> {
    match Utf8Bytes::try_from(event.json.clone()) {
        Ok(text) => Ok(Message::Text(text)),
        Err(error) => {
            tracing::error!(%error, "an event is no text");
            Err(Ending::Closed(CloseCode::Error, "an event is damaged"))
        }
    }
}

//! The long connection: subscription, heartbeats, and the frames of both directions.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use harness::clock::Clock;
use http::HeaderMap;
use parking_lot::Mutex;
use reqwest::Client;
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};
use tokio::sync::mpsc::Receiver;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use url::Url;

use super::decode;
use super::exchange::{Call, Exchange};
use super::failure;
use super::frame::{self, FrameAnswer, Received};
use super::intake::Intake;
use super::line::Line;
use super::route::Question;
use crate::platform::{Event, EventSink, PlatformError};
use crate::socket::{Incoming, Socket};

/// Interval of pings.
const PING_INTERVAL: Duration = Duration::from_secs(30);
/// Number of unanswered pings after which the connection is dead.
const MAX_UNANSWERED: u32 = 2;
/// Timeout of the subscription.
const SUBSCRIBE_TIMEOUT: Duration = Duration::from_secs(10);
/// Time after a stop for the answers to sent frames, for the close handshake, and for storing what was
/// received until then. Together they are less than the time after which the service drops a listener
/// that does not stop.
const FINISH_TIMEOUT: Duration = Duration::from_millis(600);
const CLOSE_TIMEOUT: Duration = Duration::from_millis(400);
const DRAIN_TIMEOUT: Duration = Duration::from_millis(800);

/// Bot, and the address of its connection.
#[derive(Debug, Clone)]
pub(super) struct Account {
    /// Id.
    pub(super) bot_id: String,
    /// Secret.
    pub(super) secret: SecretString,
    /// Address.
    pub(super) address: Url,
}

/// Parts of a connection.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wiring<'a> {
    /// Bot.
    pub(super) account: &'a Account,
    /// HTTP client.
    pub(super) http: &'a Client,
    /// Clock.
    pub(super) clock: &'a Arc<dyn Clock>,
    /// Access of senders.
    pub(super) line: &'a Line,
    /// Received events that no inbox has stored yet.
    pub(super) backlog: &'a Mutex<Vec<Event>>,
    /// Number of consecutive refused subscriptions.
    pub(super) refusals: &'a AtomicU32,
}

/// Connects and serves the connection until it ends or `stop` is cancelled.
pub(super) async fn listen(
    wiring: Wiring<'_>,
    sink: &dyn EventSink,
    stop: CancellationToken,
) -> Result<(), PlatformError> {
    let opening = Socket::open(wiring.http, &wiring.account.address, HeaderMap::new());
    let socket = tokio::select! {
        socket = opening => socket?,
        () = stop.cancelled() => return Ok(()),
    };
    let id = format!("{:016x}", rand::random::<u64>());
    let mut connection = ListenConnection {
        wiring,
        id,
        socket,
        intake: Intake::new(sink, std::mem::take(&mut wiring.backlog.lock())),
        exchange: Exchange::default(),
        unanswered_pings: 0,
    };
    let result = connection.run(sink, &stop).await;
    let ListenConnection {
        id,
        socket,
        mut intake,
        ..
    } = connection;
    // The platform does not redeliver: what it sent before the peer's close frame, and what waits, is
    // stored now, or by the next connection.
    let mut received = Vec::new();
    // A peer that does not answer has no more messages.
    let _ = timeout(CLOSE_TIMEOUT, socket.close_after(1000, &mut received)).await;
    for text in received {
        if let Ok(Received::Message { req_id, body }) = frame::parse(&text) {
            add(wiring, &id, &mut intake, req_id, &body);
        }
    }
    let drained = match result {
        Err(PlatformError::Sink(_)) => Ok(()),
        _ => timeout(DRAIN_TIMEOUT, intake.drain())
            .await
            .unwrap_or(Ok(())),
    };
    let rest = intake.into_rest();
    if !rest.is_empty() {
        tracing::warn!(
            messages = rest.len(),
            "messages of wecom are not stored yet"
        );
        *wiring.backlog.lock() = rest;
    }
    drained?;
    result
}

struct ListenConnection<'a> {
    wiring: Wiring<'a>,
    id: String,
    socket: Socket,
    intake: Intake<'a>,
    exchange: Exchange,
    unanswered_pings: u32,
}

impl ListenConnection<'_> {
    async fn run(
        &mut self,
        sink: &dyn EventSink,
        stop: &CancellationToken,
    ) -> Result<(), PlatformError> {
        let subscribed = timeout(SUBSCRIBE_TIMEOUT, self.subscribe());
        tokio::select! {
            result = subscribed => match result {
                Ok(result) => result?,
                Err(_) => return Err(unavailable("wecom did not answer the subscription")),
            },
            () = stop.cancelled() => return Ok(()),
        }
        let (registration, mut calls) = self.wiring.line.register(&self.id);
        sink.connected();
        let result = self.serve(&mut calls, stop).await;
        drop((registration, calls));
        if result.is_ok() {
            // The connection closes in any case, and the inbox reports a lost lease again.
            let _ = timeout(FINISH_TIMEOUT, self.finish()).await;
        }
        self.exchange = Exchange::default();
        result
    }

    async fn subscribe(&mut self) -> Result<(), PlatformError> {
        let req_id = self.new_request_id("aibot_subscribe");
        let account = self.wiring.account;
        let body = json!({"bot_id": account.bot_id, "secret": account.secret.expose_secret()});
        self.socket
            .send_text(frame::write("aibot_subscribe", &req_id, &body))
            .await?;
        loop {
            let incoming = self.socket.next().await;
            if let Some((answered, answer)) = self.receive(incoming)?
                && answered == req_id
            {
                let refusals = self.wiring.refusals;
                let before = match answer.code {
                    0 => refusals.swap(0, Ordering::Relaxed),
                    _ => refusals.fetch_add(1, Ordering::Relaxed),
                };
                return failure::subscription(&answer, before);
            }
        }
    }

    async fn serve(
        &mut self,
        calls: &mut Receiver<Call>,
        stop: &CancellationToken,
    ) -> Result<(), PlatformError> {
        let mut next_ping = Instant::now() + PING_INTERVAL;
        loop {
            let wake = self
                .exchange
                .deadline()
                .map_or(next_ping, |deadline| deadline.min(next_ping));
            tokio::select! {
                () = stop.cancelled() => return Ok(()),
                stored = self.intake.advance() => stored?,
                incoming = self.socket.next(), if self.intake.has_room() => {
                    if let Some((req_id, answer)) = self.receive(incoming)? {
                        let next = self.exchange.answered(&req_id, answer, Instant::now());
                        self.send(next).await?;
                    }
                }
                Some(call) = calls.recv() => {
                    let frame = self.exchange.submit(call, Instant::now());
                    self.send(frame).await?;
                }
                () = sleep_until(wake) => {
                    let now = Instant::now();
                    let frames = self.exchange.expire(now);
                    self.send(frames).await?;
                    if now >= next_ping {
                        self.ping().await?;
                        next_ping = now + PING_INTERVAL;
                    }
                }
            }
        }
    }

    /// Receives the answers to the frames that were sent before a stop. A message whose answer is lost
    /// would be sent again by the next connection.
    async fn finish(&mut self) -> Result<(), PlatformError> {
        self.exchange.drop_waiting();
        while self.exchange.awaits_answer() {
            tokio::select! {
                stored = self.intake.advance() => stored?,
                incoming = self.socket.next(), if self.intake.has_room() => {
                    if let Some((req_id, answer)) = self.receive(incoming)? {
                        self.exchange.answered(&req_id, answer, Instant::now());
                    }
                }
            }
        }
        Ok(())
    }

    async fn send(
        &mut self,
        frames: impl IntoIterator<Item = String>,
    ) -> Result<(), PlatformError> {
        for frame in frames {
            self.socket.send_text(frame).await?;
        }
        Ok(())
    }

    async fn ping(&mut self) -> Result<(), PlatformError> {
        if self.unanswered_pings >= MAX_UNANSWERED {
            return Err(unavailable("wecom did not answer two pings"));
        }
        self.unanswered_pings += 1;
        let req_id = self.new_request_id("ping");
        self.send([frame::write("ping", &req_id, &Value::Null)])
            .await
    }

    fn new_request_id(&self, command: &str) -> String {
        frame::new_request_id(command, self.wiring.clock.now().timestamp_millis())
    }

    /// Handles a received message. Returns the answer to a frame of the bot.
    fn receive(
        &mut self,
        incoming: Incoming,
    ) -> Result<Option<(String, FrameAnswer)>, PlatformError> {
        let text = match incoming {
            Incoming::Text(text) => text,
            Incoming::Binary(_) => {
                tracing::warn!("wecom sent a binary message, which is ignored");
                return Ok(None);
            }
            Incoming::Alive => return Ok(None),
            Incoming::Closed { code, reason } => {
                return Err(PlatformError::Unavailable(match code {
                    Some(code) => format!("wecom closed the connection with {code}: {reason}"),
                    None => format!("the connection to wecom ended: {reason}"),
                }));
            }
        };
        match frame::parse(&text) {
            Ok(Received::Answer { req_id, answer }) => {
                if req_id.starts_with("ping") {
                    self.unanswered_pings = 0;
                    return Ok(None);
                }
                return Ok(Some((req_id, answer)));
            }
            Ok(Received::Message { req_id, body }) => {
                add(self.wiring, &self.id, &mut self.intake, req_id, &body);
            }
            Ok(Received::Event { kind }) if kind == "disconnected_event" => {
                return Err(PlatformError::Displaced(
                    "another connection of the same bot took over, stop the other program or use \
                     another bot"
                        .to_owned(),
                ));
            }
            Ok(Received::Event { kind }) => tracing::debug!(kind, "event of wecom ignored"),
            Err(error) => tracing::warn!(error, "frame of wecom ignored"),
        }
        Ok(None)
    }
}

/// Adds a message of a connection to the events that wait for the inbox.
fn add(wiring: Wiring<'_>, id: &str, intake: &mut Intake<'_>, req_id: String, body: &Value) {
    let question = Question {
        req_id,
        connection: id.to_owned(),
    };
    match decode::message(body, &question, wiring.clock.now()) {
        Ok(event) => intake.add(event),
        Err(error) => tracing::warn!(error, "message of wecom ignored"),
    }
}

fn unavailable(text: &str) -> PlatformError {
    PlatformError::Unavailable(text.to_owned())
}

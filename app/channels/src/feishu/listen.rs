//! Driver of the long connection.

use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use prost::Message as _;
use serde_json::Value;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval, interval_at};
use tokio_util::sync::CancellationToken;

use super::api::FeishuApi;
use super::cursor::SeenChats;
use super::decode::decode;
use super::endpoint::{SocketAddress, address_of, open_error, ping_interval};
use super::frame::{CONTROL, DATA, FeishuFrame};
use super::missed::missed;
use super::parts::{Joined, PartBuffer};
use crate::platform::{Event, EventSink, PlatformError, SinkError};
use crate::socket::{Incoming, Socket};

/// Interval of WebSocket pings, which find silent sockets faster than those of the protocol.
const PROBE: Duration = Duration::from_secs(15);
/// Silence after which a socket is given up.
const SILENCE: Duration = Duration::from_secs(40);
/// Pings of the protocol that may remain without an answer.
const MAX_UNANSWERED: u32 = 2;
/// Maximum number of frames that are stored in one transaction.
const MAX_BATCH: usize = 64;
/// Time after an event within which the platform takes an acknowledgement. A later one is not sent:
/// the platform redelivers, and the repetition is a duplicate.
const ACK_LIMIT: Duration = Duration::from_millis(2_800);
/// Time within which events in progress are stored and acknowledged after a stop.
const STOP_GRACE: Duration = Duration::from_millis(500);
/// Maximum number of events of one transaction of missed messages.
const MISSED_BATCH: usize = 100;

/// Data frame whose event is complete.
struct Arrived {
    frame: FeishuFrame,
    since: Instant,
    event: Option<Event>,
}

/// State of one connection.
struct LongConnection<'a> {
    socket: Socket,
    service: i32,
    bot: Option<&'a str>,
    api: &'a FeishuApi,
    sink: &'a dyn EventSink,
    parts: PartBuffer,
    seen: SeenChats,
    pings: Interval,
    period: Duration,
    unanswered: u32,
    last_traffic: Instant,
}

/// Connects and delivers events until `stop` or until the connection ends.
pub(super) async fn listen(
    api: &FeishuApi,
    bot: Option<&str>,
    sink: &dyn EventSink,
    cursor: Option<String>,
    stop: CancellationToken,
) -> Result<(), PlatformError> {
    let connecting = async {
        let (status, headers, body) = api
            .endpoint()
            .await
            .map_err(|failure| failure.into_error(1))?;
        let address = address_of(status, &headers, &body)?;
        let socket = Socket::open(&api.http, &address.url, http::HeaderMap::new())
            .await
            .map_err(open_error)?;
        Ok::<(SocketAddress, Socket), PlatformError>((address, socket))
    };
    let (address, socket) = tokio::select! {
        connected = connecting => connected?,
        () = stop.cancelled() => return Ok(()),
    };
    sink.connected();
    let mut connection = LongConnection {
        socket,
        service: address.service,
        bot,
        api,
        sink,
        parts: PartBuffer::default(),
        seen: SeenChats::read(cursor.as_deref()),
        pings: pings(address.ping, Instant::now()),
        period: address.ping,
        unanswered: 0,
        last_traffic: Instant::now(),
    };
    // A store that hangs does not delay the shutdown; the platform redelivers the event.
    let expired = async {
        stop.cancelled().await;
        tokio::time::sleep(STOP_GRACE).await;
    };
    let result = tokio::select! {
        result = connection.run(&stop) => result,
        () = expired => Ok(()),
    };
    match result {
        // The close frame makes the platform route messages to other connections.
        Ok(()) | Err(PlatformError::Sink(_)) => connection.socket.close(1000).await,
        Err(_) => drop(connection.socket.close(1001).now_or_never()),
    }
    result
}

fn pings(period: Duration, first: Instant) -> Interval {
    let mut pings = interval_at(first, period);
    pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
    pings
}

impl LongConnection<'_> {
    async fn run(&mut self, stop: &CancellationToken) -> Result<(), PlatformError> {
        let seen = self.seen.clone();
        let mut listing = Box::pin(missed(self.api, &seen, self.bot)).fuse();
        let mut probes = interval(PROBE);
        probes.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => return Ok(()),
                _ = self.pings.tick() => self.ping().await?,
                _ = probes.tick() => self.probe().await?,
                incoming = self.socket.next() => self.receive(incoming).await?,
                events = &mut listing => self.store_missed(events).await?,
            }
        }
    }

    async fn ping(&mut self) -> Result<(), PlatformError> {
        if self.unanswered >= MAX_UNANSWERED {
            return Err(PlatformError::Unavailable(
                "the platform does not answer pings".to_owned(),
            ));
        }
        self.unanswered += 1;
        let ping = FeishuFrame::ping(self.service).bytes();
        self.socket.send_binary(ping).await
    }

    async fn probe(&mut self) -> Result<(), PlatformError> {
        let now = Instant::now();
        self.parts.expire(now);
        if now.duration_since(self.last_traffic) > SILENCE {
            return Err(PlatformError::Unavailable(
                "the connection is silent".to_owned(),
            ));
        }
        self.socket.ping().await
    }

    /// Handles a message of the socket, and those that have arrived behind it in one transaction.
    async fn receive(&mut self, first: Incoming) -> Result<(), PlatformError> {
        let mut arrived = Vec::new();
        let mut end = self.sort(first, &mut arrived);
        while end.is_none() && arrived.len() < MAX_BATCH {
            match self.socket.next().now_or_never() {
                Some(incoming) => end = self.sort(incoming, &mut arrived),
                None => break,
            }
        }
        if !arrived.is_empty() {
            let result = self.store(arrived).await;
            // After the end of the connection its error says more than that of the writes.
            if end.is_none() || matches!(result, Err(PlatformError::Sink(_))) {
                result?;
            }
        }
        end.map_or(Ok(()), Err)
    }

    /// Takes one message of the socket; returns the reason if the connection has ended.
    fn sort(&mut self, incoming: Incoming, arrived: &mut Vec<Arrived>) -> Option<PlatformError> {
        let now = Instant::now();
        self.last_traffic = now;
        match incoming {
            Incoming::Alive => {}
            Incoming::Text(_) => tracing::warn!("text frame of the platform ignored"),
            Incoming::Binary(bytes) => match FeishuFrame::decode(bytes) {
                Ok(frame) if frame.method == CONTROL => self.control(&frame),
                Ok(frame) if frame.method == DATA => arrived.extend(self.data(frame, now)),
                Ok(frame) => {
                    tracing::warn!(method = frame.method, "frame of unknown method ignored");
                }
                Err(error) => tracing::warn!(%error, "malformed frame ignored"),
            },
            Incoming::Closed { code, reason } => {
                let code = code.map(|code| format!(" with code {code}"));
                let code = code.unwrap_or_default();
                return Some(PlatformError::Unavailable(format!(
                    "the connection was closed{code}: {reason}"
                )));
            }
        }
        None
    }

    fn control(&mut self, frame: &FeishuFrame) {
        if frame.header("type") != Some("pong") {
            return;
        }
        self.unanswered = 0;
        let payload = frame.payload.as_deref().unwrap_or_default();
        let config: Value = serde_json::from_slice(payload).unwrap_or_default();
        if let Some(period) = ping_interval(&config).filter(|period| *period != self.period) {
            self.period = period;
            self.pings = pings(period, Instant::now() + period);
        }
    }

    /// Joins and decodes a data frame. Malformed events have none, and are acknowledged.
    fn data(&mut self, frame: FeishuFrame, since: Instant) -> Option<Arrived> {
        let payload = frame.payload.clone().unwrap_or_default();
        let payload = match self.join(&frame, payload, since) {
            Joined::Waiting => return None,
            Joined::Complete(payload) => payload,
            problem @ (Joined::TooLarge | Joined::Invalid) => {
                tracing::warn!(?problem, "event in several frames dropped");
                return Some(Arrived {
                    frame,
                    since,
                    event: None,
                });
            }
        };
        let event = match frame.header("type") {
            Some("event" | "card") => decode(&payload, self.bot, self.api.now()),
            other => Err(format!("unknown type {other:?}")),
        };
        let event = event.unwrap_or_else(|problem| {
            let message = frame.header("message_id").unwrap_or_default();
            tracing::warn!(%message, %problem, "malformed event dropped");
            None
        });
        Some(Arrived {
            frame,
            since,
            event,
        })
    }

    fn join(&mut self, frame: &FeishuFrame, payload: Bytes, now: Instant) -> Joined {
        let sum = frame.number("sum").unwrap_or(1);
        let seq = frame.number("seq").unwrap_or(0);
        let id = frame.header("message_id").unwrap_or_default();
        self.parts.add(id, sum, seq, payload, now)
    }

    /// Stores events and acknowledges them. Without a store the platform is asked to redeliver.
    async fn store(&mut self, mut arrived: Vec<Arrived>) -> Result<(), PlatformError> {
        let events: Vec<Event> = arrived
            .iter_mut()
            .filter_map(|arrived| arrived.event.take())
            .collect();
        let stored = self.accept(events).await;
        // Nothing is read while the store works.
        self.last_traffic = Instant::now();
        let code = match stored {
            Ok(()) => 200,
            Err(SinkError::Full | SinkError::Unavailable) => 500,
            Err(SinkError::Fenced) => return Err(SinkError::Fenced.into()),
        };
        for Arrived { frame, since, .. } in arrived {
            let duration = since.elapsed();
            if duration > ACK_LIMIT {
                let message = frame.header("message_id").unwrap_or_default();
                tracing::warn!(%message, ?duration, "event was stored too late for its acknowledgement");
                continue;
            }
            let ack = frame.into_ack(code, duration).bytes();
            self.socket.send_binary(ack).await?;
        }
        Ok(())
    }

    async fn accept(&mut self, events: Vec<Event>) -> Result<(), SinkError> {
        if events.is_empty() {
            return Ok(());
        }
        let mut seen = self.seen.clone();
        seen.observe(&events);
        self.sink.accept(events, seen.write()).await?;
        self.seen = seen;
        Ok(())
    }

    async fn store_missed(&mut self, events: Vec<Event>) -> Result<(), PlatformError> {
        for chunk in events.chunks(MISSED_BATCH) {
            match self.accept(chunk.to_vec()).await {
                Ok(()) => {}
                Err(SinkError::Fenced) => return Err(SinkError::Fenced.into()),
                Err(error) => {
                    tracing::warn!(%error, "missed messages were not stored");
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "listen_tests.rs"]
mod tests;

//! Driver of Socket Mode: connections, envelopes and acknowledgements.

use std::future::pending;
use std::time::Duration;

use futures_util::future::{BoxFuture, join_all};
use futures_util::stream::{BoxStream, FuturesUnordered};
use futures_util::{FutureExt, StreamExt};
use harness::clock::Clock;
use http::HeaderMap;
use serde_json::json;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use super::api::Api;
use super::catch_up::{self, Found};
use super::cursor::Cursors;
use super::events::{self, Decoded, Me};
use super::frames::{self, Frame};
use super::inbox::{Ack, Inbox, Landed, Pending};
use super::links::{Beat, Link, Timing, next_of};
use crate::platform::{EventSink, PlatformError};
use crate::socket::{Incoming, Socket};

/// Delay before a replacement is opened again.
const REOPEN: Duration = Duration::from_secs(2);
/// Number of waiting events from which no more missed messages are fetched.
const BUSY: usize = 200;

/// Result of one turn of the loop.
enum Turn {
    Stop,
    Frame(usize, Incoming),
    Opened(Box<Result<Socket, PlatformError>>),
    Landed(Landed),
    Found(Option<Found>),
    Closed,
    Tick,
}

/// Listener of one account.
pub(super) struct Listener<'a> {
    api: &'a Api,
    me: &'a Me,
    timing: Timing,
    clock: &'a dyn Clock,
    sink: &'a dyn EventSink,
    inbox: Inbox<'a>,
    links: Vec<Link>,
    count: u64,
    opening: Option<BoxFuture<'a, Result<Socket, PlatformError>>>,
    reopen_at: Option<Instant>,
    closing: FuturesUnordered<BoxFuture<'a, ()>>,
    missed: Option<BoxStream<'a, Found>>,
    is_connected: bool,
}

impl<'a> Listener<'a> {
    /// Creates a listener that opens its first connection.
    pub(super) fn new(
        api: &'a Api,
        me: &'a Me,
        timing: Timing,
        clock: &'a dyn Clock,
        sink: &'a dyn EventSink,
        cursor: Option<&str>,
    ) -> Self {
        let cursors = Cursors::decode(cursor);
        let places = cursors.places();
        let missed = (!places.is_empty()).then(|| catch_up::fetch(api, me, places));
        Self {
            api,
            me,
            timing,
            clock,
            sink,
            inbox: Inbox::new(sink, cursors),
            links: Vec::new(),
            count: 0,
            opening: Some(open(api).boxed()),
            reopen_at: None,
            closing: FuturesUnordered::new(),
            missed,
            is_connected: false,
        }
    }

    /// Listens until `stop`, or until an error.
    pub(super) async fn run(mut self, stop: CancellationToken) -> Result<(), PlatformError> {
        let result = loop {
            match self.turn(&stop).await {
                Turn::Stop => break Ok(()),
                turn => {
                    if let Err(error) = self.handle(turn).await {
                        break Err(error);
                    }
                }
            }
        };
        if result.is_ok() {
            self.finish().await;
        }
        join_all(self.links.into_iter().map(|link| link.socket.close(1000))).await;
        result
    }

    async fn turn(&mut self, stop: &CancellationToken) -> Turn {
        let now = Instant::now();
        self.inbox.start(now);
        let tick = now + self.timing.ping / 4;
        let tick = [self.reopen_at, self.inbox.not_before]
            .into_iter()
            .flatten()
            .fold(tick, Instant::min);
        let may_fetch = self.is_connected && self.inbox.len() < BUSY;
        tokio::select! {
            () = stop.cancelled() => Turn::Stop,
            landed = ready(&mut self.inbox.flight) => Turn::Landed(landed),
            (index, incoming) = next_of(&mut self.links), if !self.links.is_empty() => {
                Turn::Frame(index, incoming)
            }
            opened = ready(&mut self.opening) => Turn::Opened(Box::new(opened)),
            found = next_missed(&mut self.missed), if may_fetch => Turn::Found(found),
            Some(()) = self.closing.next() => Turn::Closed,
            () = sleep_until(tick) => Turn::Tick,
        }
    }

    async fn handle(&mut self, turn: Turn) -> Result<(), PlatformError> {
        let now = Instant::now();
        match turn {
            Turn::Stop | Turn::Closed => {}
            Turn::Frame(index, incoming) => self.received(index, incoming, now).await?,
            Turn::Opened(opened) => self.opened(*opened, now)?,
            Turn::Landed(landed) => {
                let acks = self.inbox.land(landed, now)?;
                self.acknowledge(acks).await;
            }
            Turn::Found(found) => self.found(found),
            Turn::Tick => self.beat(now).await,
        }
        if self.links.is_empty() && self.opening.is_none() && self.reopen_at.is_none() {
            return Err(PlatformError::Unavailable(
                "the connection to slack ended".to_owned(),
            ));
        }
        Ok(())
    }

    async fn received(
        &mut self,
        index: usize,
        incoming: Incoming,
        now: Instant,
    ) -> Result<(), PlatformError> {
        let link = &mut self.links[index];
        link.alive(now);
        match incoming {
            Incoming::Alive => {}
            Incoming::Closed { code, reason } => {
                let link = self.links.remove(index);
                if !link.is_replaced() {
                    tracing::info!(code, reason, "slack connection ended");
                }
            }
            Incoming::Binary(bytes) => {
                tracing::warn!(
                    bytes = bytes.len(),
                    "slack sent a binary frame, skipping it"
                );
            }
            Incoming::Text(text) => {
                let id = link.id;
                return self.frame(id, &text, now).await;
            }
        }
        Ok(())
    }

    async fn frame(&mut self, link: u64, text: &str, now: Instant) -> Result<(), PlatformError> {
        match frames::decode(text) {
            Frame::Hello => self.greeted(link, now),
            Frame::Disconnect(reason) => return self.disconnecting(link, &reason, now),
            Frame::Broken { id, problem } => {
                tracing::warn!(problem, "slack frame cannot be decoded, skipping it");
                if let Some(envelope) = id {
                    self.acknowledge_at_once(link, envelope, now).await;
                }
            }
            Frame::Envelope {
                id,
                kind,
                retry,
                payload,
            } => {
                if retry > 0 {
                    tracing::debug!(retry, "slack delivers an event again");
                }
                match events::decode(&kind, &payload, self.me, self.clock.now()) {
                    Decoded::Event(event) => self.inbox.push(Pending {
                        event: *event,
                        ack: Some(self.ack(link, id, now)),
                        fetched: None,
                    }),
                    Decoded::Ignored => self.acknowledge_at_once(link, id, now).await,
                    Decoded::Broken(problem) => {
                        tracing::warn!(kind, problem, "slack event cannot be decoded, skipping it");
                        self.acknowledge_at_once(link, id, now).await;
                    }
                }
            }
        }
        Ok(())
    }

    fn ack(&self, link: u64, envelope: String, now: Instant) -> Ack {
        Ack {
            link,
            envelope,
            deadline: now + self.timing.ack,
        }
    }

    async fn acknowledge_at_once(&mut self, link: u64, envelope: String, now: Instant) {
        let ack = self.ack(link, envelope, now);
        self.acknowledge(vec![ack]).await;
    }

    fn greeted(&mut self, id: u64, now: Instant) {
        for link in &mut self.links {
            if link.id == id {
                link.ready = true;
            } else if link.id < id {
                link.replace(now, &self.timing);
            }
        }
        if !self.is_connected {
            self.is_connected = true;
            self.sink.connected();
        }
    }

    fn disconnecting(&mut self, id: u64, reason: &str, now: Instant) -> Result<(), PlatformError> {
        match reason {
            "link_disabled" => {
                return Err(PlatformError::Rejected(
                    "slack disabled Socket Mode for the app: enable it in the settings of the app"
                        .to_owned(),
                ));
            }
            "too_many_websockets" => {
                return Err(PlatformError::Displaced(
                    "the app has too many Socket Mode connections: stop other programs that use \
                     its app token"
                        .to_owned(),
                ));
            }
            reason => tracing::info!(reason, "slack announces the end of a connection"),
        }
        let is_newest = self.links.iter().all(|link| link.id <= id);
        if is_newest && self.opening.is_none() && self.reopen_at.is_none_or(|at| at <= now) {
            self.reopen_at = None;
            self.opening = Some(open(self.api).boxed());
        }
        Ok(())
    }

    fn opened(
        &mut self,
        opened: Result<Socket, PlatformError>,
        now: Instant,
    ) -> Result<(), PlatformError> {
        self.opening = None;
        let delay = match opened {
            Ok(socket) => {
                self.count += 1;
                self.links.push(Link::new(self.count, socket, now));
                return Ok(());
            }
            Err(PlatformError::RateLimited { retry_after, .. }) => retry_after,
            Err(PlatformError::Unavailable(_)) if !self.links.is_empty() => REOPEN,
            Err(error) => return Err(error),
        };
        tracing::warn!(
            delay_s = delay.as_secs(),
            "slack opened no connection, trying again"
        );
        self.reopen_at = Some(now + delay);
        Ok(())
    }

    fn found(&mut self, found: Option<Found>) {
        let Some(Found { place, events }) = found else {
            self.missed = None;
            return;
        };
        if events.is_empty() {
            self.inbox.nothing_in(&place);
            return;
        }
        tracing::info!(
            channel = place.channel,
            count = events.len(),
            "missed messages fetched"
        );
        let last = events.len() - 1;
        for (index, event) in events.into_iter().enumerate() {
            self.inbox.push(Pending {
                event,
                ack: None,
                fetched: Some((place.clone(), index == last)),
            });
        }
    }

    async fn beat(&mut self, now: Instant) {
        if self.opening.is_none() && self.reopen_at.is_some_and(|at| at <= now) {
            self.reopen_at = None;
            self.opening = Some(open(self.api).boxed());
        }
        let mut index = 0;
        while index < self.links.len() {
            let link = &mut self.links[index];
            let stays = match link.beat(now, &self.timing) {
                Beat::Wait => true,
                Beat::Ping => {
                    link.pinged(now);
                    link.socket.ping().await.is_ok()
                }
                Beat::Dead => {
                    tracing::warn!("slack connection is silent, closing it");
                    false
                }
                Beat::Drained => {
                    let socket = self.links.remove(index).socket;
                    self.closing.push(socket.close(1000).boxed());
                    continue;
                }
            };
            if stays {
                index += 1;
            } else {
                self.links.remove(index);
            }
        }
    }

    /// Sends acknowledgements on the connections of their envelopes.
    async fn acknowledge(&mut self, acks: Vec<Ack>) {
        for ack in acks {
            let Some(index) = self.links.iter().position(|link| link.id == ack.link) else {
                continue;
            };
            let text = json!({"envelope_id": ack.envelope}).to_string();
            if let Err(error) = self.links[index].socket.send_text(text).await {
                tracing::info!(%error, "slack connection ended before an acknowledgement");
                self.links.remove(index);
            }
        }
    }

    /// Waits for the batch that is being stored and acknowledges it.
    async fn finish(&mut self) {
        if self.inbox.flight.is_some()
            && let Ok(landed) = timeout(self.timing.ack, ready(&mut self.inbox.flight)).await
            && let Ok(acks) = self.inbox.land(landed, Instant::now())
        {
            self.acknowledge(acks).await;
        }
    }
}

async fn open(api: &Api) -> Result<Socket, PlatformError> {
    let address = api.open_connection().await?;
    Ok(Socket::open(api.http(), &address, HeaderMap::new()).await?)
}

/// Waits for a future that may be absent.
async fn ready<T>(future: &mut Option<BoxFuture<'_, T>>) -> T {
    match future {
        Some(future) => future.await,
        None => pending().await,
    }
}

/// Waits for the next missed messages.
async fn next_missed(missed: &mut Option<BoxStream<'_, Found>>) -> Option<Found> {
    match missed {
        Some(missed) => missed.next().await,
        None => pending().await,
    }
}

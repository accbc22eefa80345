//! One connection of stream mode.

use std::collections::VecDeque;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use super::decode;
use super::frames::{self, Frame};
use super::settings::Intervals;
use crate::platform::{Event, EventSink, PlatformError, SinkError};
use crate::socket::{Incoming, Socket};

/// Timeout of storing at the end of a connection.
const FINISH_TIMEOUT: Duration = Duration::from_secs(1);
/// Time in which waiting messages are stored after the platform announced the end.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum number of messages that wait to be stored; beyond it nothing is read from the socket.
const MAX_QUEUE: usize = 1000;
/// Maximum number of messages that are stored at once.
const BATCH: usize = 50;
/// Close code of a normal end.
const NORMAL: u16 = 1000;

/// Way in which a connection ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Ended {
    /// The listener was asked to stop.
    Stopped,
    /// The platform asked for a new connection.
    Announced,
    /// Failure.
    Failed(PlatformError),
}

/// Parts of a connection.
#[derive(Clone, Copy)]
pub(super) struct Parts<'a> {
    /// Receiver of events.
    pub(super) sink: &'a dyn EventSink,
    /// Signal to stop.
    pub(super) stop: &'a CancellationToken,
    /// Code of the robot for messages that name none.
    pub(super) robot: &'a str,
    /// Intervals.
    pub(super) intervals: Intervals,
}

/// Storing in progress; gives the ids of the frames that are acknowledged after it.
type Work<'a> = BoxFuture<'a, Result<Vec<String>, PlatformError>>;

/// Connection in progress.
struct Connection<'a> {
    parts: Parts<'a>,
    socket: Socket,
    queue: VecDeque<(String, Event)>,
    last_heard: Instant,
    next_ping: Instant,
    ends_at: Option<Instant>,
    is_closed: bool,
}

/// Serves a connection until it ends.
pub(super) async fn run<'a>(socket: Socket, parts: Parts<'a>) -> Ended {
    let now = Instant::now();
    let mut connection = Connection {
        parts,
        socket,
        queue: VecDeque::new(),
        last_heard: now,
        next_ping: now + parts.intervals.ping,
        ends_at: None,
        is_closed: false,
    };
    let mut work: Option<Work<'a>> = None;
    let ended = loop {
        if work.is_none() && !connection.queue.is_empty() {
            work = Some(connection.begin_work());
        }
        if connection.ends_at.is_some() && work.is_none() {
            break Ended::Announced;
        }
        let next = connection.next_action();
        let step = tokio::select! {
            biased;
            () = parts.stop.cancelled() => break Ended::Stopped,
            stored = finished(&mut work) => {
                work = None;
                connection.acknowledge(stored).await
            }
            () = sleep_until(next) => connection.act().await,
            incoming = connection.socket.next(), if connection.is_reading() => {
                connection.receive(incoming).await
            }
        };
        if let Err(ended) = step {
            break ended;
        }
    };
    if let Some(work) = work
        && let Ok(stored) = timeout(FINISH_TIMEOUT, work).await
        && !connection.is_closed
    {
        // The end of the connection is known; a failed write changes nothing.
        let _ = connection.acknowledge(stored).await;
    }
    if !connection.is_closed {
        connection.socket.close(NORMAL).await;
    }
    ended
}

async fn finished(work: &mut Option<Work<'_>>) -> Result<Vec<String>, PlatformError> {
    match work {
        Some(work) => work.await,
        None => std::future::pending().await,
    }
}

/// Stores events. Returns only after a success, unless another node serves the account or the
/// listener stops.
async fn store(parts: Parts<'_>, events: Vec<Event>) -> Result<(), PlatformError> {
    let mut is_reported = false;
    loop {
        match parts.sink.accept(events.clone(), None).await {
            Ok(()) => return Ok(()),
            Err(SinkError::Fenced) => return Err(SinkError::Fenced.into()),
            Err(error) if !is_reported => {
                tracing::warn!(%error, "dingtalk messages wait for the inbox");
                is_reported = true;
            }
            Err(_) => {}
        }
        tokio::select! {
            () = sleep(parts.intervals.store) => {}
            () = parts.stop.cancelled() => {
                return Err(PlatformError::Unavailable("the listener stops".to_owned()));
            }
        }
    }
}

impl<'a> Connection<'a> {
    fn is_reading(&self) -> bool {
        self.queue.len() < MAX_QUEUE
    }

    fn begin_work(&mut self) -> Work<'a> {
        let mut ids = Vec::new();
        let mut events: Vec<Event> = Vec::new();
        for (id, event) in self.queue.drain(..self.queue.len().min(BATCH)) {
            ids.push(id);
            // A redelivery may wait next to its original.
            if !events
                .iter()
                .any(|known| known.id == event.id && known.chat == event.chat)
            {
                events.push(event);
            }
        }
        let parts = self.parts;
        Box::pin(async move { store(parts, events).await.map(|()| ids) })
    }

    async fn acknowledge(
        &mut self,
        stored: Result<Vec<String>, PlatformError>,
    ) -> Result<(), Ended> {
        for id in stored.map_err(Ended::Failed)? {
            self.send(frames::stored(&id)).await?;
        }
        Ok(())
    }

    fn next_action(&self) -> Instant {
        let silent_at = self.last_heard + self.parts.intervals.silence;
        let end = self.ends_at.unwrap_or(silent_at);
        if self.is_reading() {
            self.next_ping.min(silent_at).min(end)
        } else {
            self.next_ping.min(end)
        }
    }

    /// Sends a ping, or ends a connection that is silent or whose end was announced.
    async fn act(&mut self) -> Result<(), Ended> {
        let now = Instant::now();
        if self.ends_at.is_some_and(|at| now >= at) {
            return Err(Ended::Announced);
        }
        if !self.is_reading() {
            self.last_heard = now;
        }
        if now >= self.last_heard + self.parts.intervals.silence {
            return Err(Ended::Failed(PlatformError::Unavailable(
                "the connection to DingTalk is silent".to_owned(),
            )));
        }
        if now >= self.next_ping {
            self.next_ping = now + self.parts.intervals.ping;
            return self.socket.ping().await.map_err(Ended::Failed);
        }
        Ok(())
    }

    async fn receive(&mut self, incoming: Incoming) -> Result<(), Ended> {
        self.last_heard = Instant::now();
        let text = match incoming {
            Incoming::Text(text) => text,
            Incoming::Alive => return Ok(()),
            Incoming::Binary(_) => {
                tracing::warn!("dingtalk sent a binary frame");
                return Ok(());
            }
            Incoming::Closed { code, reason } => {
                self.is_closed = true;
                tracing::debug!(code, reason, "dingtalk closed the connection");
                return Err(Ended::Failed(PlatformError::Unavailable(
                    "DingTalk closed the connection".to_owned(),
                )));
            }
        };
        match frames::decode(&text) {
            Err(problem) => {
                tracing::warn!(problem, "dingtalk sent a malformed frame");
                Ok(())
            }
            Ok(Frame::Plain { answer, ends }) => {
                if ends && self.ends_at.is_none() {
                    self.ends_at = Some(Instant::now() + DRAIN_TIMEOUT);
                }
                self.send(answer).await
            }
            Ok(Frame::Message { id, data }) => match decode::message(&data, self.parts.robot) {
                Ok(Some(event)) => {
                    self.queue.push_back((id, event));
                    Ok(())
                }
                Ok(None) => self.send(frames::stored(&id)).await,
                Err(problem) => {
                    tracing::warn!(problem, "dingtalk sent a malformed message");
                    self.send(frames::stored(&id)).await
                }
            },
        }
    }

    async fn send(&mut self, frame: String) -> Result<(), Ended> {
        self.socket.send_text(frame).await.map_err(Ended::Failed)
    }
}

//! One connection to the gateway.

use std::collections::VecDeque;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use super::cursor::Session;
use super::heartbeat::{Beat, Heartbeat};
use super::protocol::{self, Dispatch, Next, Received};
use super::worker::Worker;
use crate::platform::{EventSink, PlatformError};
use crate::socket::{Incoming, Socket};

/// Timeout from the connection to an established session.
const READY_TIMEOUT: Duration = Duration::from_secs(60);
/// Timeout of storing at the end of a connection.
const FINISH_TIMEOUT: Duration = Duration::from_secs(1);
/// Maximum number of events that wait to be stored; beyond it nothing is read from the socket.
const MAX_QUEUE: usize = 1000;
/// Maximum number of events that are stored at once.
const BATCH: usize = 100;
/// Close code that keeps the session resumable.
const RESUMABLE: u16 = 4000;

/// Way in which a connection ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Ended {
    /// The listener was asked to stop.
    Stopped,
    /// The connection ended; a session was established if the flag is set.
    After(Next, bool),
}

/// Parts of a connection.
pub(super) struct Parts<'a> {
    /// Bot token.
    pub(super) token: &'a secrecy::SecretString,
    /// Receiver of events.
    pub(super) sink: &'a dyn EventSink,
    /// Signal to stop.
    pub(super) stop: &'a CancellationToken,
    /// Session that is resumed; `None` to begin one.
    pub(super) session: Option<Session>,
}

/// Storing in progress; gives the worker back.
type Work<'a> = BoxFuture<'a, (Worker<'a>, Result<(), PlatformError>)>;

/// Connection in progress.
struct Connection<'a> {
    parts: Parts<'a>,
    socket: Socket,
    heartbeat: Option<Heartbeat>,
    received_seq: Option<u64>,
    queue: VecDeque<Dispatch>,
    is_ready: bool,
    is_closed: bool,
}

/// Serves a connection until it ends. The worker is absent afterwards if it did not finish in time.
pub(super) async fn run<'a>(
    socket: Socket,
    parts: Parts<'a>,
    worker: Worker<'a>,
) -> (Ended, Option<Worker<'a>>) {
    let received_seq = parts.session.as_ref().map(|session| session.seq);
    let mut connection = Connection {
        parts,
        socket,
        heartbeat: None,
        received_seq,
        queue: VecDeque::new(),
        is_ready: false,
        is_closed: false,
    };
    let mut idle = Some(worker);
    let mut work: Option<Work<'a>> = None;
    let deadline = Instant::now() + READY_TIMEOUT;
    let ended = loop {
        if !connection.queue.is_empty()
            && let Some(worker) = idle.take()
        {
            work = Some(begin_work(worker, &mut connection.queue));
        }
        let next = connection.next_action(deadline);
        tokio::select! {
            biased;
            () = connection.parts.stop.cancelled() => break Ended::Stopped,
            (worker, result) = finished(&mut work) => {
                work = None;
                idle = Some(worker);
                if let Err(error) = result {
                    break Ended::After(Next::Fail(error), connection.is_ready);
                }
            }
            () = sleep_until(next) => {
                if let Err(next) = connection.act(deadline).await {
                    break Ended::After(next, connection.is_ready);
                }
            }
            incoming = connection.socket.next(), if connection.queue.len() < MAX_QUEUE => {
                if let Err(next) = connection.receive(incoming).await {
                    break Ended::After(next, connection.is_ready);
                }
            }
        }
    };
    if let Some(work) = work {
        idle = timeout(FINISH_TIMEOUT, work)
            .await
            .ok()
            .map(|(worker, _)| worker);
    }
    if !connection.is_closed {
        connection.socket.close(RESUMABLE).await;
    }
    (ended, idle)
}

fn begin_work<'a>(mut worker: Worker<'a>, queue: &mut VecDeque<Dispatch>) -> Work<'a> {
    let batch: Vec<Dispatch> = queue.drain(..queue.len().min(BATCH)).collect();
    Box::pin(async move {
        let result = worker.handle(batch).await;
        (worker, result)
    })
}

async fn finished<'a>(work: &mut Option<Work<'a>>) -> (Worker<'a>, Result<(), PlatformError>) {
    match work {
        Some(work) => work.await,
        None => std::future::pending().await,
    }
}

impl Connection<'_> {
    fn next_action(&self, deadline: Instant) -> Instant {
        let beat = self.heartbeat.as_ref().map(Heartbeat::next);
        let deadline = (!self.is_ready).then_some(deadline);
        beat.into_iter()
            .chain(deadline)
            .min()
            .unwrap_or_else(|| Instant::now() + READY_TIMEOUT)
    }

    /// Sends a heartbeat, or ends a connection that is dead or not established in time.
    async fn act(&mut self, deadline: Instant) -> Result<(), Next> {
        let now = Instant::now();
        if !self.is_ready && now >= deadline {
            return Err(Next::Fail(PlatformError::Unavailable(
                "Discord did not establish a session in time".to_owned(),
            )));
        }
        let is_reading = self.queue.len() < MAX_QUEUE;
        let Some(heartbeat) = &mut self.heartbeat else {
            return Ok(());
        };
        if !is_reading {
            heartbeat.acknowledged();
        }
        match heartbeat.due(now) {
            Beat::Send => self.send(protocol::heartbeat(self.received_seq)).await,
            Beat::Dead => {
                tracing::warn!("discord did not acknowledge a heartbeat, reconnecting");
                Err(Next::Resume)
            }
        }
    }

    async fn receive(&mut self, incoming: Incoming) -> Result<(), Next> {
        let text = match incoming {
            Incoming::Text(text) => text,
            Incoming::Alive => return Ok(()),
            Incoming::Binary(_) => {
                tracing::warn!("discord sent a binary frame");
                return Ok(());
            }
            Incoming::Closed { code, reason } => {
                self.is_closed = true;
                return Err(protocol::after_close(code, &reason));
            }
        };
        match protocol::decode(&text) {
            Err(problem) => tracing::warn!(problem, "discord sent a malformed frame"),
            Ok(Received::Hello(interval)) => return self.greet(interval).await,
            Ok(Received::Acknowledged) => {
                if let Some(heartbeat) = &mut self.heartbeat {
                    heartbeat.acknowledged();
                }
            }
            Ok(Received::HeartbeatRequest) => {
                return self.send(protocol::heartbeat(self.received_seq)).await;
            }
            Ok(Received::Reconnect | Received::Invalid(true)) => return Err(Next::Resume),
            Ok(Received::Invalid(false)) => return Err(Next::Identify),
            Ok(Received::Event(event)) => self.enqueue(event),
            Ok(Received::Other) => {}
        }
        Ok(())
    }

    fn enqueue(&mut self, event: Dispatch) {
        self.received_seq = Some(event.seq);
        if matches!(event.kind.as_str(), "READY" | "RESUMED") {
            self.is_ready = true;
            self.parts.sink.connected();
        }
        self.queue.push_back(event);
    }

    async fn greet(&mut self, interval: u64) -> Result<(), Next> {
        if self.heartbeat.is_some() {
            return Ok(());
        }
        self.heartbeat = Some(Heartbeat::begin(interval, rand::random(), Instant::now()));
        let token = self.parts.token;
        let frame = match &self.parts.session {
            Some(session) => protocol::resume(token, session),
            None => protocol::identify(token),
        };
        self.send(frame).await
    }

    async fn send(&mut self, frame: String) -> Result<(), Next> {
        self.socket.send_text(frame).await.map_err(|error| {
            tracing::debug!(%error, "a frame to discord failed");
            Next::Resume
        })
    }
}

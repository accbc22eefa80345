//! Open connections and their heartbeats.

use std::time::Duration;

use futures_util::future::select_all;
use tokio::time::Instant;

use crate::socket::{Incoming, Socket};

/// Intervals of a connection.
#[derive(Debug, Clone, Copy)]
pub(super) struct Timing {
    /// Interval of pings.
    pub(super) ping: Duration,
    /// Silence after which a connection is dead.
    pub(super) dead: Duration,
    /// Time within which the greeting must arrive.
    pub(super) hello: Duration,
    /// Time for which a replaced connection is still read.
    pub(super) drain: Duration,
    /// Time within which an envelope is acknowledged, or not at all.
    pub(super) ack: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            ping: Duration::from_secs(10),
            dead: Duration::from_secs(35),
            hello: Duration::from_secs(20),
            drain: Duration::from_secs(4),
            ack: Duration::from_millis(2_900),
        }
    }
}

/// Open connection.
#[derive(Debug)]
pub(super) struct Link {
    /// Number.
    pub(super) id: u64,
    /// Socket.
    pub(super) socket: Socket,
    /// `true` after the greeting.
    pub(super) ready: bool,
    opened: Instant,
    last_sign: Instant,
    pinged: Instant,
    drained_at: Option<Instant>,
}

/// Next action for a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Beat {
    /// Nothing.
    Wait,
    /// Sends a ping.
    Ping,
    /// The peer is silent.
    Dead,
    /// The connection was replaced and is complete.
    Drained,
}

impl Link {
    /// Returns a new connection.
    pub(super) fn new(id: u64, socket: Socket, now: Instant) -> Self {
        Self {
            id,
            socket,
            ready: false,
            opened: now,
            last_sign: now,
            pinged: now,
            drained_at: None,
        }
    }

    /// Records a frame.
    pub(super) fn alive(&mut self, now: Instant) {
        self.last_sign = now;
    }

    /// Records a ping of ours.
    pub(super) fn pinged(&mut self, now: Instant) {
        self.pinged = now;
    }

    /// Lets the connection end after the drain time.
    pub(super) fn replace(&mut self, now: Instant, timing: &Timing) {
        self.drained_at.get_or_insert(now + timing.drain);
    }

    /// Returns `true` for a connection that was replaced.
    pub(super) fn is_replaced(&self) -> bool {
        self.drained_at.is_some()
    }

    /// Decides about the next action.
    pub(super) fn beat(&self, now: Instant, timing: &Timing) -> Beat {
        if self.drained_at.is_some_and(|at| at <= now) {
            return Beat::Drained;
        }
        let greeting_missing = !self.ready && now.duration_since(self.opened) >= timing.hello;
        if greeting_missing || now.duration_since(self.last_sign) >= timing.dead {
            return Beat::Dead;
        }
        if now.duration_since(self.pinged) >= timing.ping {
            return Beat::Ping;
        }
        Beat::Wait
    }
}

/// Returns the next frame of any connection. There must be at least one.
pub(super) async fn next_of(links: &mut [Link]) -> (usize, Incoming) {
    let frames = links.iter_mut().map(|link| Box::pin(link.socket.next()));
    let (incoming, index, _) = select_all(frames).await;
    (index, incoming)
}

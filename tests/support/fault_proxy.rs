//! TCP proxy with network faults: delay, fragmentation, lost responses, partition, reset.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::seeded_random::SeededRandom;

/// Faults of all connections of a proxy.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Faults {
    /// No byte passes in either direction and no error is reported: sent data arrives after the
    /// partition, as with retransmission.
    pub partitioned: bool,
    /// Minimum delay of each piece; the maximum is twice as long.
    pub delay: Duration,
    /// Maximum size of a forwarded piece in bytes; 0 for no limit.
    pub slice: usize,
    /// Lost responses per thousand: the connection is reset after the request and before its
    /// response.
    pub lost_answers: usize,
}

/// Listener that forwards its connections to one server, with faults. Dropping it resets them all.
#[derive(Debug)]
pub struct FaultProxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    _accepting: JoinSet<()>,
}

#[derive(Debug)]
struct Shared {
    target: SocketAddr,
    faults: watch::Sender<Faults>,
    random: Mutex<SeededRandom>,
    lost: AtomicU64,
    /// Cancelled and replaced to reset the open connections.
    connections: Mutex<CancellationToken>,
}

impl FaultProxy {
    /// Starts a proxy for `target` without faults. Random choices follow from `seed` and the order
    /// of events.
    ///
    /// # Errors
    /// Returns an error if no port can be bound.
    pub async fn start(target: SocketAddr, seed: u64) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            target,
            faults: watch::Sender::default(),
            random: Mutex::new(SeededRandom::of(seed)),
            lost: AtomicU64::new(0),
            connections: Mutex::default(),
        });
        let mut accepting = JoinSet::new();
        accepting.spawn(accept(listener, shared.clone()));
        Ok(Self {
            address,
            shared,
            _accepting: accepting,
        })
    }

    /// Returns the listener's address.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Changes the faults of new and open connections.
    pub fn set(&self, faults: Faults) {
        self.shared.faults.send_replace(faults);
    }

    /// Resets all open connections.
    pub fn reset(&self) {
        std::mem::take(&mut *self.shared.connections.lock()).cancel();
    }

    /// Returns the number of responses lost so far.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.shared.lost.load(Ordering::Acquire)
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                if let Ok((client, _)) = accepted {
                    connections.spawn(connect(client, shared.clone()));
                }
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

/// Connects a client to the server until one of them closes or a fault resets the connection.
/// Either end closes both halves.
async fn connect(client: TcpStream, shared: Arc<Shared>) {
    let token = shared.connections.lock().clone();
    let mut faults = shared.faults.subscribe();
    let joined = async {
        faults.wait_for(|faults| !faults.partitioned).await.ok()?;
        let server = TcpStream::connect(shared.target).await.ok()?;
        client.set_nodelay(true).ok()?;
        server.set_nodelay(true).ok()?;
        let ((asking, answered), (answering, asked)) = (client.into_split(), server.into_split());
        tokio::select! {
            () = pass(asking, asked, &shared, false) => {}
            () = pass(answering, answered, &shared, true) => {}
        }
        Some(())
    };
    tokio::select! {
        _ = joined => {}
        () = token.cancelled() => {}
    }
}

async fn pass(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    shared: &Shared,
    answers: bool,
) {
    let mut faults = shared.faults.subscribe();
    let mut bytes = vec![0; 64 * 1024];
    while let Ok(read @ 1..) = from.read(&mut bytes).await {
        let Ok(now) = faults
            .wait_for(|faults| !faults.partitioned)
            .await
            .map(|faults| faults.clone())
        else {
            return;
        };
        if answers && shared.random.lock().happens(now.lost_answers) {
            shared.lost.fetch_add(1, Ordering::AcqRel);
            return;
        }
        for piece in bytes[..read].chunks(if now.slice == 0 { read } else { now.slice }) {
            if !now.delay.is_zero() {
                let more = shared
                    .random
                    .lock()
                    .millis(0, now.delay.as_millis().max(1) as usize);
                tokio::time::sleep(now.delay + more).await;
            }
            if to.write_all(piece).await.is_err() {
                return;
            }
        }
    }
}

#[cfg(test)]
#[path = "fault_proxy_tests.rs"]
mod tests;

//! A TCP proxy that does to a connection what networks do: delay, cut into pieces, lose answers, partition, reset.

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

use crate::dice::Dice;

/// What happens to all connections of a proxy, from now on.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Faults {
    /// No byte passes either way, and nobody is told: what was sent comes when this is over, as with retransmission.
    pub partitioned: bool,
    /// Each piece is held back for this long, and up to as long again.
    pub delay: Duration,
    /// The longest piece passed on at once, in bytes; 0 for as they come.
    pub slice: usize,
    /// So many answers in a thousand never arrive: the connection is reset after the request and before its answer.
    pub lost_answers: usize,
}

/// A listener whose connections lead to one server, through faults. Dropping it resets them all.
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
    dice: Mutex<Dice>,
    lost: AtomicU64,
    /// Cancelled, and replaced, to reset the connections there are.
    connections: Mutex<CancellationToken>,
}

impl FaultProxy {
    /// A proxy before `target` that does no harm yet. Whatever it leaves to chance follows from `seed` and the order of events.
    ///
    /// # Errors
    /// When no port can be bound.
    pub async fn before(target: SocketAddr, seed: u64) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            target,
            faults: watch::Sender::default(),
            dice: Mutex::new(Dice::of(seed)),
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

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Changes what happens to connections, also those that are open.
    pub fn set(&self, faults: Faults) {
        self.shared.faults.send_replace(faults);
    }

    /// Resets all connections that are open.
    pub fn reset(&self) {
        std::mem::take(&mut *self.shared.connections.lock()).cancel();
    }

    /// Answers lost so far.
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

/// Joins a client to the server until one of them goes, or a fault takes the connection. Whatever ends it ends both halves.
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
        if answers && shared.dice.lock().happens(now.lost_answers) {
            shared.lost.fetch_add(1, Ordering::AcqRel);
            return;
        }
        for piece in bytes[..read].chunks(if now.slice == 0 { read } else { now.slice }) {
            if !now.delay.is_zero() {
                let more = shared
                    .dice
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
mod tests {
    use super::*;

    /// A server that says back what it hears.
    async fn echo() -> (SocketAddr, JoinSet<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((socket, _)) = listener.accept().await {
                connections.spawn(async move {
                    let (mut from, mut to) = socket.into_split();
                    _ = tokio::io::copy(&mut from, &mut to).await;
                });
            }
        });
        (address, tasks)
    }

    async fn proxied() -> (FaultProxy, TcpStream, JoinSet<()>) {
        let (address, tasks) = echo().await;
        let proxy = FaultProxy::before(address, 1).await.expect("a port");
        let stream = TcpStream::connect(proxy.address())
            .await
            .expect("connected");
        (proxy, stream, tasks)
    }

    async fn hear(stream: &mut TcpStream, length: usize) -> io::Result<String> {
        let mut heard = vec![0; length];
        stream.read_exact(&mut heard).await?;
        Ok(String::from_utf8_lossy(&heard).into_owned())
    }

    #[tokio::test]
    async fn what_a_partition_held_back_comes_when_it_is_over() {
        let (proxy, mut stream, _server) = proxied().await;
        stream.write_all(b"before").await.expect("sent");
        assert_eq!(hear(&mut stream, 6).await.expect("an answer"), "before");
        proxy.set(Faults {
            partitioned: true,
            ..Faults::default()
        });
        stream
            .write_all(b"during")
            .await
            .expect("sent: nobody is told");
        let early = tokio::time::timeout(Duration::from_millis(50), hear(&mut stream, 6)).await;
        assert!(early.is_err(), "{early:?}");
        proxy.set(Faults::default());
        assert_eq!(hear(&mut stream, 6).await.expect("an answer"), "during");
    }

    #[tokio::test]
    async fn a_lost_answer_ends_its_connection_and_is_counted() {
        let (proxy, mut stream, _server) = proxied().await;
        proxy.set(Faults {
            lost_answers: 1_000,
            ..Faults::default()
        });
        stream.write_all(b"asked").await.expect("sent");
        assert!(hear(&mut stream, 5).await.is_err());
        assert_eq!(proxy.lost(), 1);
    }

    #[tokio::test]
    async fn pieces_come_whole_and_late_and_a_reset_ends_what_is_open() {
        let (proxy, mut stream, _server) = proxied().await;
        proxy.set(Faults {
            delay: Duration::from_millis(2),
            slice: 3,
            ..Faults::default()
        });
        let begun = std::time::Instant::now();
        stream.write_all(b"in small pieces").await.expect("sent");
        assert_eq!(
            hear(&mut stream, 15).await.expect("an answer"),
            "in small pieces"
        );
        assert!(
            begun.elapsed() >= Duration::from_millis(10),
            "five pieces of 2 ms"
        );
        proxy.reset();
        assert!(hear(&mut stream, 1).await.is_err());
        let mut another = TcpStream::connect(proxy.address())
            .await
            .expect("connected");
        another.write_all(b"on").await.expect("sent");
        assert_eq!(hear(&mut another, 2).await.expect("an answer"), "on");
    }
}

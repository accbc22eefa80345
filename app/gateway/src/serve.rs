//! Serves a router on a bound listener until it is told to stop.

use std::io;
use std::time::Duration;

use axum::Router;
use harness::runtime::tasks::{TaskKind, Tasks};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use crate::access::Peer;
use crate::linger::{LINGER, LingeringSocket, Unread};
use crate::probe::begins_with_probe;
use crate::stall::StallGuard;

/// Limits on connections.
#[derive(Debug, Clone)]
pub struct ServeOptions {
    /// How long a client may take to send a request's head.
    pub header_timeout: Duration,
    /// How long a client may leave its answer unread before it is cut off.
    pub stall_timeout: Duration,
    /// How long requests may go on once the server stops. Open streams abort at once; this is for the others.
    pub grace: Duration,
    /// The runtimes that connections are served on: those of health checks on the control runtime, where there is one.
    pub tasks: Tasks,
}

impl Default for ServeOptions {
    fn default() -> Self {
        Self {
            header_timeout: Duration::from_secs(30),
            stall_timeout: Duration::from_secs(30),
            grace: Duration::from_secs(10),
            tasks: Tasks::new(),
        }
    }
}

/// How much of an answer the system takes before it has sent it, in bytes.
const MOST_UNSENT: u32 = 64 << 10;

/// How long to hold back when the system has no descriptor left for a new connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// Accepts connections until `shutdown`, then lets requests finish for a bounded time and cuts what is left.
///
/// Give the state's `shutdown` the same token: it is what makes open streams abort instead of being waited for.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    shutdown: CancellationToken,
    options: ServeOptions,
) -> io::Result<()> {
    let connections = options.tasks.sibling();
    let cut = CancellationToken::new();
    // A new connection is accepted, and its first bytes are read, although everything else may be busy.
    let listener = connections
        .within_control(async { TcpListener::from_std(listener.into_std()?) })
        .await?;
    loop {
        let accepted = tokio::select! {
            accepted = connections.within_control(listener.accept()) => accepted,
            () = shutdown.cancelled() => break,
        };
        match accepted {
            Ok((stream, peer)) => {
                let client = Client {
                    peer: Peer(peer.ip().to_canonical()),
                    router: router.clone(),
                    shutdown: shutdown.clone(),
                    cut: cut.clone(),
                    options: options.clone(),
                    keeps_alive: true,
                };
                if connections.has_control() {
                    connections.spawn(
                        TaskKind::Control,
                        "new http connection",
                        route(stream, client, connections.clone()),
                    );
                } else {
                    connections.spawn(
                        TaskKind::Service,
                        "http connection",
                        connection(stream, client),
                    );
                }
            }
            Err(error) if is_of_one_connection(&error) => {}
            Err(error) => {
                tracing::error!(%error, "connections cannot be accepted");
                tokio::select! {
                    () = tokio::time::sleep(ACCEPT_PAUSE) => {}
                    () = shutdown.cancelled() => break,
                }
            }
        }
    }
    drop(listener);
    let grace = options.grace;
    if tokio::time::timeout(grace, connections.shut_down())
        .await
        .is_err()
    {
        tracing::warn!(
            connections = connections.alive(),
            "requests are cut at shutdown"
        );
        cut.cancel();
        connections.shut_down().await;
    }
    Ok(())
}

/// Whether only the connection at hand is lost.
fn is_of_one_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionRefused
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
    )
}

/// A connection that was accepted, and how it is served.
struct Client {
    peer: Peer,
    router: Router,
    shutdown: CancellationToken,
    cut: CancellationToken,
    options: ServeOptions,
    /// Whether it may send more than one request.
    keeps_alive: bool,
}

/// Serves a connection of health checks here, on the control runtime, and hands any other to the main one. A connection of health
/// checks takes one request: another one could be for anything.
async fn route(stream: TcpStream, mut client: Client, connections: Tasks) {
    let shutdown = client.shutdown.clone();
    let probing = begins_with_probe(&stream, client.options.header_timeout);
    match shutdown.run_until_cancelled(probing).await {
        Some(Ok(true)) => {
            client.keeps_alive = false;
            connection(stream, client).await;
        }
        Some(Ok(false)) => {
            let moved = stream.into_std();
            connections.spawn(TaskKind::Service, "http connection", async move {
                match moved.and_then(TcpStream::from_std) {
                    Ok(stream) => connection(stream, client).await,
                    Err(error) => tracing::error!(%error, "a connection cannot be served"),
                }
            });
        }
        Some(Err(error)) => tracing::debug!(%error, "a connection ended before its first request"),
        None => {}
    }
}

async fn connection(
    stream: TcpStream,
    Client {
        peer,
        router,
        shutdown,
        cut,
        options,
        keeps_alive,
    }: Client,
) {
    // Without it a one-token stream waits 40 ms for an acknowledgement.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "a connection has no TCP_NODELAY");
    }
    if let Err(error) = bound_unsent(&stream) {
        tracing::debug!(%error, "a connection has no bound on what is not sent yet");
    }
    let unread = Unread::default();
    let observed = unread.clone();
    let router = router.map_request(move |mut request: hyper::Request<Incoming>| {
        request.extensions_mut().insert(peer);
        request.map(|body| observed.observe(body))
    });
    let socket = LingeringSocket::new(
        StallGuard::new(stream, options.stall_timeout),
        unread,
        LINGER,
    );
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .keep_alive(keeps_alive)
        .header_read_timeout(options.header_timeout)
        .serve_connection(TokioIo::new(socket), TowerToHyperService::new(router));
    let mut served = std::pin::pin!(served);
    let mut stopping = false;
    loop {
        tokio::select! {
            ended = served.as_mut() => {
                if let Err(error) = ended {
                    tracing::debug!(%error, "a connection ended early");
                }
                return;
            }
            () = shutdown.cancelled(), if !stopping => {
                stopping = true;
                served.as_mut().graceful_shutdown();
            }
            () = cut.cancelled() => return,
        }
    }
}

/// Has the system ask for more as soon as half of so little is left. Else it takes megabytes and asks for more when a third of them is
/// gone, so that a peer who reads slowly and steadily seems to have stopped.
#[cfg(target_os = "linux")]
fn bound_unsent(stream: &TcpStream) -> io::Result<()> {
    socket2::SockRef::from(stream).set_tcp_notsent_lowat(MOST_UNSENT)
}

#[cfg(not(target_os = "linux"))]
fn bound_unsent(_stream: &TcpStream) -> io::Result<()> {
    Ok(())
}

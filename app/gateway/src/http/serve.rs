//! Serves a router on a bound listener until shutdown.

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

use crate::guard::web_client::Peer;
use crate::http::lingering_close::{LINGER, LingeringSocket, UnreadBody};
use crate::http::probe::begins_with_probe;
use crate::http::write_timeout::WriteTimeout;

/// Limits of connections.
#[derive(Debug, Clone)]
pub struct ServeOptions {
    /// Timeout for receiving a request's head.
    pub header_timeout: Duration,
    /// Timeout after which a connection is reset because the client does not read its response.
    pub write_timeout: Duration,
    /// Time for requests to finish after shutdown begins. Open streams abort at once.
    pub grace: Duration,
    /// Spawner of connection tasks: health checks run on its control runtime, if it has one.
    pub tasks: Tasks,
}

impl Default for ServeOptions {
    fn default() -> Self {
        Self {
            header_timeout: Duration::from_secs(30),
            write_timeout: Duration::from_secs(30),
            grace: Duration::from_secs(10),
            tasks: Tasks::new(),
        }
    }
}

/// Maximum amount of unsent response data in the kernel's socket buffer, in bytes.
const MAX_UNSENT: u32 = 64 << 10;

/// Maximum size of a connection's buffers, in bytes: one for a request's head or a piece of its
/// body, and one for a response.
const MAX_BUFFER: usize = 64 << 10;

/// Pause before the next accept after a failure, for example if no file descriptor is available.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// Accepts connections until `shutdown`, then lets requests finish within the grace period and
/// aborts the others.
///
/// Use the same token as the state's `shutdown`: it aborts open streams, so that shutdown does not
/// wait for them.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    shutdown: CancellationToken,
    options: ServeOptions,
) -> io::Result<()> {
    let connections = options.tasks.sibling();
    let abort = CancellationToken::new();
    // Connections are accepted, and their first bytes are read, even if the main runtime is busy.
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
                    abort: abort.clone(),
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
            Err(error) if is_connection_error(&error) => {}
            Err(error) => {
                tracing::error!(%error, "failed to accept a connection");
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
            "aborting requests at shutdown"
        );
        abort.cancel();
        connections.shut_down().await;
    }
    Ok(())
}

/// `true` if the error affects only one connection.
fn is_connection_error(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionRefused
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
    )
}

/// An accepted connection and its settings.
struct Client {
    peer: Peer,
    router: Router,
    shutdown: CancellationToken,
    abort: CancellationToken,
    options: ServeOptions,
    /// `true` if the connection may carry more than one request.
    keeps_alive: bool,
}

/// Serves a health check connection here, on the control runtime, and passes any other connection
/// to the main runtime. A health check connection carries a single request, because the next one
/// could be for any route.
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
                    Err(error) => tracing::error!(%error, "failed to serve a connection"),
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
        abort,
        options,
        keeps_alive,
    }: Client,
) {
    // Without `TCP_NODELAY`, a stream of single tokens waits 40 ms for each acknowledgement.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "failed to set TCP_NODELAY");
    }
    if let Err(error) = limit_unsent(&stream) {
        tracing::debug!(%error, "failed to limit unsent data");
    }
    let unread = UnreadBody::default();
    let observed = unread.clone();
    let router = router.map_request(move |mut request: hyper::Request<Incoming>| {
        request.extensions_mut().insert(peer);
        request.map(|body| observed.observe(body))
    });
    let socket = LingeringSocket::new(
        WriteTimeout::new(stream, options.write_timeout),
        unread,
        LINGER,
    );
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .keep_alive(keeps_alive)
        .header_read_timeout(options.header_timeout)
        .max_buf_size(MAX_BUFFER)
        .serve_connection(TokioIo::new(socket), TowerToHyperService::new(router))
        .with_upgrades();
    let mut served = std::pin::pin!(served);
    let mut stopping = false;
    loop {
        tokio::select! {
            ended = served.as_mut() => {
                if let Err(error) = ended {
                    tracing::debug!(%error, "a connection ended with an error");
                }
                return;
            }
            () = shutdown.cancelled(), if !stopping => {
                stopping = true;
                served.as_mut().graceful_shutdown();
            }
            () = abort.cancelled() => return,
        }
    }
}

/// Limits the unsent data in the kernel's socket buffer. By default the kernel buffers megabytes
/// and reports the socket writable again only when a third is sent, so a slow but steady reader
/// would exceed the write timeout.
#[cfg(target_os = "linux")]
fn limit_unsent(stream: &TcpStream) -> io::Result<()> {
    socket2::SockRef::from(stream).set_tcp_notsent_lowat(MAX_UNSENT)
}

#[cfg(not(target_os = "linux"))]
fn limit_unsent(_stream: &TcpStream) -> io::Result<()> {
    Ok(())
}

//! Relay inside the sandbox: from a loopback port to the socket of the proxy.
//!
//! It makes no decisions and has no privileges: a command cannot extend its access by killing the
//! relay or by connecting to the socket itself.

use std::io;
use std::net::{Ipv4Addr, TcpListener as StdListener};
use std::path::Path;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::net::{TcpListener, UnixStream};

use super::PROXY_PORT;
use super::tunnel::copy_both_ways;

/// Binds the port. Connections are queued until [`run`] accepts them.
pub(crate) fn listen() -> io::Result<StdListener> {
    let listener = StdListener::bind((Ipv4Addr::LOCALHOST, PROXY_PORT))?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Relays connections to `socket` forever. Needs a runtime with I/O; all work happens in the
/// caller's task.
pub(crate) async fn run(listener: StdListener, socket: &Path) -> io::Result<()> {
    let listener = TcpListener::from_std(listener)?;
    let mut open = FuturesUnordered::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((connection, _)) => open.push(async move { copy_both_ways(connection, UnixStream::connect(socket).await?).await }),
                // Out of file descriptors: clients wait.
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            },
            // The failure of a connection affects only its client and its server.
            Some(_ended) = open.next() => {}
        }
    }
}

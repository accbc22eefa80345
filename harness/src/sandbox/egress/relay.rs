//! The part of the way out that lies inside: from a port of the sandbox' loopback to the socket of the proxy.
//!
//! It judges nothing and has no rights: a command that ends it, or goes to the socket itself, wins nothing.

use std::io;
use std::net::{Ipv4Addr, TcpListener as StdListener};
use std::path::Path;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::net::{TcpListener, UnixStream};

use super::PROXY_PORT;
use super::tunnel::carry;

/// The port, bound: from now on connections wait for [`run`].
pub(crate) fn listen() -> io::Result<StdListener> {
    let listener = StdListener::bind((Ipv4Addr::LOCALHOST, PROXY_PORT))?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Carries connections to `socket`, for ever. Needs a runtime with I/O; all of it is done in the caller's task.
pub(crate) async fn run(listener: StdListener, socket: &Path) -> io::Result<()> {
    let listener = TcpListener::from_std(listener)?;
    let mut open = FuturesUnordered::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((connection, _)) => open.push(async move { carry(connection, UnixStream::connect(socket).await?).await }),
                // Without descriptors for the moment: clients wait.
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            },
            // One that broke off is its two ends' affair.
            Some(_ended) = open.next() => {}
        }
    }
}

//! HTTP server on a loopback port with the lifetime of its handle.

use std::{io, net::SocketAddr, time::Duration};

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::{rt::TokioIo, service::TowerToHyperService};
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

/// Running HTTP/1.1 server on 127.0.0.1.
///
/// Dropping it closes the listener and every open connection at once, also in the middle of a
/// response. Connections use `TCP_NODELAY`: without it a response of one token waits 40 ms for a
/// delayed acknowledgement.
#[derive(Debug)]
pub struct LocalServer {
    address: SocketAddr,
    _accepting: JoinSet<()>,
}

impl LocalServer {
    /// Serves `router` on `port` of 127.0.0.1; 0 selects a free port.
    ///
    /// # Errors
    /// Returns an error if the port cannot be bound.
    pub async fn start(router: Router, port: u16) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", port)).await?;
        let address = listener.local_addr()?;
        let mut accepting = JoinSet::new();
        accepting.spawn(accept(listener, router));
        Ok(Self {
            address,
            _accepting: accepting,
        })
    }

    /// Returns the listener's address.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

async fn accept(listener: TcpListener, router: Router) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((socket, _)) => {
                    connections.spawn(serve(socket, router.clone()));
                }
                Err(error) => {
                    tracing::warn!(%error, "connection not accepted");
                    // Without free file descriptors, an immediate retry would only spin.
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn serve(socket: TcpStream, router: Router) {
    if let Err(error) = socket.set_nodelay(true) {
        tracing::debug!(%error, "TCP_NODELAY not set");
    }
    let service = TowerToHyperService::new(router);
    if let Err(error) = http1::Builder::new()
        .serve_connection(TokioIo::new(socket), service)
        .await
    {
        tracing::debug!(%error, "connection ended early");
    }
}

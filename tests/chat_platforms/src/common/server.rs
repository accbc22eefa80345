//! HTTP server of a fake.

use std::net::{Ipv4Addr, SocketAddr};

use axum::Router;
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};

/// Running server. It stops when it is dropped.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    stop: CancellationToken,
    _guard: DropGuard,
}

impl Server {
    /// Binds a loopback port; 0 selects a free one.
    pub async fn bind(port: u16) -> std::io::Result<(TcpListener, SocketAddr)> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
        let address = listener.local_addr()?;
        Ok((listener, address))
    }

    /// Serves routes on a bound port until the returned value is dropped.
    pub fn serve(listener: TcpListener, address: SocketAddr, routes: Router) -> Self {
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        #[expect(
            clippy::disallowed_methods,
            reason = "a fake is a program of its own, without the task registry of the server"
        )]
        tokio::spawn(async move {
            let serving = axum::serve(listener, routes);
            tokio::select! {
                result = serving => drop(result),
                () = stopped.cancelled() => {}
            }
        });
        Self {
            address,
            stop: stop.clone(),
            _guard: stop.drop_guard(),
        }
    }

    /// Returns the base address, such as `http://127.0.0.1:4000`.
    pub fn base(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the base address for WebSockets.
    pub fn socket_base(&self) -> String {
        format!("ws://{}", self.address)
    }

    /// Returns a token that is cancelled when the server stops.
    pub fn stopped(&self) -> CancellationToken {
        self.stop.clone()
    }
}

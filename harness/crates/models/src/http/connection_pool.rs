//! Connections to providers without a proxy, which later requests use again.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use deerflow_core::tasks::{TaskKind, Tasks};
use hyper::body::Incoming;
use hyper::{HeaderMap, Request, StatusCode, Uri};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use parking_lot::Mutex;
use tokio::time::Instant;
use tower::ServiceExt;

use super::connection::{BodyChunks, Connection};
use super::transport_error::{HttpUnavailable, TransportError};

/// Timeout of a connection attempt.
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Time after which an idle connection is closed.
pub(super) const IDLE_CONNECTION_TIMEOUT: Duration = Duration::from_secs(90);
/// Time without data after which TCP checks that the peer exists.
pub(super) const KEEPALIVE: Duration = Duration::from_secs(30);
/// Interval at which idle connections are checked for their timeout.
const EVICTION_INTERVAL: Duration = Duration::from_secs(30);

/// Connections of one client. A response returns its connection when it is dropped, if its body was
/// read to its end.
pub(super) struct ConnectionPool {
    connector: HttpsConnector<HttpConnector>,
    /// Idle connections by the scheme, host and port of their server, oldest first.
    idle: Mutex<HashMap<Box<str>, Vec<Idle>>>,
    eviction: std::sync::Once,
}

/// Connection that no request uses.
struct Idle {
    connection: Connection,
    since: Instant,
}

impl fmt::Debug for ConnectionPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectionPool").finish_non_exhaustive()
    }
}

impl ConnectionPool {
    /// Creates an empty pool. Certificates are verified as the operating system does.
    pub(super) fn new() -> Result<Self, HttpUnavailable> {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_connect_timeout(Some(CONNECT_TIMEOUT));
        tcp.set_nodelay(true);
        tcp.set_keepalive(Some(KEEPALIVE));
        let connector = HttpsConnectorBuilder::new()
            .try_with_platform_verifier()
            .map_err(|error| HttpUnavailable::new(&error))?
            .https_or_http()
            .enable_http1()
            .wrap_connector(tcp);
        Ok(Self {
            connector,
            idle: Mutex::default(),
            eviction: std::sync::Once::new(),
        })
    }

    /// Sends a request to `server`, a scheme, host and port, and returns the response when its
    /// headers arrive.
    ///
    /// A server may close an idle connection at any time. A request that was not sent for this
    /// reason is sent on another connection.
    pub(super) async fn send(
        self: &Arc<Self>,
        server: &str,
        mut request: Request<BodyChunks>,
    ) -> Result<PooledResponse, TransportError> {
        while let Some(connection) = self.take(server) {
            match connection.send(request).await {
                Ok((response, connection)) => {
                    return Ok(self.response(server, response, connection));
                }
                Err(failure) => match failure.unsent {
                    Some(unsent) => request = unsent,
                    None => return Err(TransportError::new(&failure.error)),
                },
            }
        }
        let connection = self.connect(server).await?;
        match connection.send(request).await {
            Ok((response, connection)) => Ok(self.response(server, response, connection)),
            Err(failure) => Err(TransportError::new(&failure.error)),
        }
    }

    async fn connect(self: &Arc<Self>, server: &str) -> Result<Connection, TransportError> {
        self.eviction.call_once(|| self.spawn_eviction());
        let address: Uri = server
            .parse()
            .map_err(|error| TransportError::new(&error))?;
        let connected =
            tokio::time::timeout(CONNECT_TIMEOUT, self.connector.clone().oneshot(address));
        let socket = connected
            .await
            .map_err(|_| TransportError::connect_timeout(CONNECT_TIMEOUT))?
            .map_err(|error| TransportError::new(&*error))?;
        Connection::start(socket)
            .await
            .map_err(|error| TransportError::new(&error))
    }

    fn response(
        self: &Arc<Self>,
        server: &str,
        response: hyper::Response<Incoming>,
        connection: Connection,
    ) -> PooledResponse {
        let (head, body) = response.into_parts();
        PooledResponse {
            status: head.status,
            headers: head.headers,
            body: Some(body),
            connection: Some(connection),
            server: server.into(),
            pool: Arc::clone(self),
        }
    }

    /// Takes the connection to `server` that was used last, if one is open.
    fn take(&self, server: &str) -> Option<Connection> {
        let mut idle = self.idle.lock();
        let connections = idle.get_mut(server)?;
        let oldest = Instant::now().checked_sub(IDLE_CONNECTION_TIMEOUT);
        while let Some(Idle {
            mut connection,
            since,
        }) = connections.pop()
        {
            if oldest.is_none_or(|oldest| since > oldest) && connection.is_reusable() {
                return Some(connection);
            }
        }
        None
    }

    fn put(&self, server: Box<str>, connection: Connection) {
        self.idle.lock().entry(server).or_default().push(Idle {
            connection,
            since: Instant::now(),
        });
    }

    /// Closes idle connections after their timeout, for as long as the pool exists.
    fn spawn_eviction(self: &Arc<Self>) {
        let pool = Arc::downgrade(self);
        Tasks::new().spawn(
            TaskKind::Service,
            "close idle connections to providers",
            async move {
                loop {
                    tokio::time::sleep(EVICTION_INTERVAL).await;
                    let Some(pool) = Weak::upgrade(&pool) else {
                        return;
                    };
                    pool.evict();
                }
            },
        );
    }

    fn evict(&self) {
        let now = Instant::now();
        self.idle.lock().retain(|_, connections| {
            connections.retain(|idle| now - idle.since < IDLE_CONNECTION_TIMEOUT);
            !connections.is_empty()
        });
    }
}

/// Response whose body is read from its connection.
#[derive(Debug)]
pub(crate) struct PooledResponse {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    body: Option<Incoming>,
    connection: Option<Connection>,
    server: Box<str>,
    pool: Arc<ConnectionPool>,
}

impl PooledResponse {
    /// Returns the next bytes of the body, and `None` at its end.
    pub(super) async fn chunk(&mut self) -> Result<Option<Bytes>, TransportError> {
        match (&mut self.connection, &mut self.body) {
            (Some(connection), Some(body)) => connection
                .chunk(body)
                .await
                .map_err(|error| TransportError::new(&error)),
            _ => Ok(None),
        }
    }
}

impl Drop for PooledResponse {
    fn drop(&mut self) {
        // Hyper closes the connection unless the rest of the body has arrived.
        drop(self.body.take());
        if let Some(mut connection) = self.connection.take()
            && connection.is_reusable()
        {
            self.pool.put(std::mem::take(&mut self.server), connection);
        }
    }
}

#[cfg(test)]
#[path = "connection_pool_tests.rs"]
mod tests;

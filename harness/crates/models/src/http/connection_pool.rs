//! Connections to providers without a proxy, which later requests use again.

use std::collections::HashMap;
use std::fmt;
use std::mem;
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use deerflow_core::tasks::{TaskKind, TaskPanicked, Tasks};
use hyper::body::Incoming;
use hyper::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use hyper::{HeaderMap, Request, Response, StatusCode};
use parking_lot::Mutex;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tracing::subscriber::NoSubscriber;

use super::connection::{BodyChunks, Connection};
use super::connector::Connector;
use super::transport_error::{HttpUnavailable, TransportError};

/// Time after which an idle connection is closed.
pub(super) const IDLE_TIMEOUT: Duration = Duration::from_secs(90);
/// Interval at which idle connections are checked for their timeout.
const EVICTION_INTERVAL: Duration = Duration::from_secs(15);

/// Connections of one client. A response returns its connection when it is dropped, if its body has
/// ended, or if the caller knows that nothing of interest follows.
pub(super) struct ConnectionPool {
    connector: Connector,
    /// Idle connections by the scheme, host and port of their server, oldest first.
    idle: Mutex<HashMap<Box<str>, Vec<Idle>>>,
    /// Task that closes idle connections.
    eviction: Mutex<Option<JoinHandle<Result<(), TaskPanicked>>>>,
}

/// Connection that no request uses.
struct Idle {
    connection: Connection,
    /// Body whose end had not arrived when its response was dropped.
    rest: Option<Incoming>,
    since: Instant,
}

impl Idle {
    fn is_expired(&self) -> bool {
        self.since.elapsed() >= IDLE_TIMEOUT
    }

    /// Returns the connection if another request can be sent.
    fn into_reusable(mut self) -> Option<Connection> {
        let rest = self.rest.take();
        let ended = rest.is_none_or(|mut rest| self.connection.has_ended(&mut rest));
        (ended && !self.is_expired() && self.connection.is_reusable()).then_some(self.connection)
    }
}

impl fmt::Debug for ConnectionPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectionPool").finish_non_exhaustive()
    }
}

impl ConnectionPool {
    /// Creates an empty pool.
    pub(super) fn new() -> Result<Self, HttpUnavailable> {
        Ok(Self {
            connector: Connector::new()?,
            idle: Mutex::default(),
            eviction: Mutex::default(),
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
        self.ensure_eviction();
        // Boxed: most requests use an existing connection and need less memory.
        let connection = Box::pin(self.connector.connect(server)).await?;
        match connection.send(request).await {
            Ok((response, connection)) => Ok(self.response(server, response, connection)),
            Err(failure) => Err(TransportError::new(&failure.error)),
        }
    }

    fn response(
        self: &Arc<Self>,
        server: &str,
        response: Response<Incoming>,
        connection: Connection,
    ) -> PooledResponse {
        let (head, body) = response.into_parts();
        let has = |name| head.headers.contains_key(name);
        PooledResponse {
            status: head.status,
            has_formal_end: has(CONTENT_LENGTH) || has(TRANSFER_ENCODING),
            headers: head.headers,
            exchange: Some((connection, body)),
            is_complete: false,
            server: server.into(),
            pool: Arc::clone(self),
        }
    }

    /// Takes the connection to `server` that was used last, if one is open.
    fn take(&self, server: &str) -> Option<Connection> {
        loop {
            // A separate statement: sockets are read and closed without the lock.
            let last = self.idle.lock().get_mut(server)?.pop()?;
            if let Some(connection) = last.into_reusable() {
                return Some(connection);
            }
        }
    }

    fn put(&self, server: Box<str>, connection: Connection, rest: Option<Incoming>) {
        self.idle.lock().entry(server).or_default().push(Idle {
            connection,
            rest,
            since: Instant::now(),
        });
    }

    /// Starts the task that closes idle connections, unless it is running.
    fn ensure_eviction(self: &Arc<Self>) {
        let mut eviction = self.eviction.lock();
        if eviction.as_ref().is_none_or(JoinHandle::is_finished) {
            let evicting = evict_while_used(Arc::downgrade(self));
            // The task outlives the run that starts it, so it must not keep the run's spans open.
            let task = tracing::subscriber::with_default(NoSubscriber::default(), || {
                Tasks::new().spawn(TaskKind::Service, "idle connections", evicting)
            });
            *eviction = Some(task);
        }
    }

    /// Closes the connections that reached their timeout.
    fn evict(&self) {
        let mut expired = Vec::new();
        self.idle.lock().retain(|_, connections| {
            let first = connections.partition_point(Idle::is_expired);
            expired.extend(connections.drain(..first));
            !connections.is_empty()
        });
        // Dropping closes the sockets, without the lock.
    }
}

/// Evicts connections until the pool is dropped.
async fn evict_while_used(pool: Weak<ConnectionPool>) {
    loop {
        tokio::time::sleep(EVICTION_INTERVAL).await;
        let Some(pool) = pool.upgrade() else { return };
        pool.evict();
    }
}

/// Response whose body is read from its connection.
#[derive(Debug)]
pub(crate) struct PooledResponse {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    exchange: Option<(Connection, Incoming)>,
    /// The body ends before the connection does.
    has_formal_end: bool,
    is_complete: bool,
    server: Box<str>,
    pool: Arc<ConnectionPool>,
}

impl PooledResponse {
    /// Returns the next bytes of the body, and `None` at its end.
    pub(super) async fn chunk(&mut self) -> Result<Option<Bytes>, TransportError> {
        let Some((connection, body)) = &mut self.exchange else {
            return Ok(None);
        };
        let chunk = connection.chunk(body).await;
        chunk.map_err(|error| TransportError::new(&error))
    }

    /// Marks the body as complete: at most its formal end follows, so the connection can be used
    /// again once that has arrived.
    pub(super) fn complete(&mut self) {
        self.is_complete = self.has_formal_end;
    }
}

impl Drop for PooledResponse {
    fn drop(&mut self) {
        let Some((mut connection, mut body)) = self.exchange.take() else {
            return;
        };
        let rest = (!connection.has_ended(&mut body)).then_some(body);
        let returned = match &rest {
            Some(_) => self.is_complete && connection.is_open(),
            None => connection.is_reusable(),
        };
        if returned {
            self.pool.put(mem::take(&mut self.server), connection, rest);
        }
    }
}

#[cfg(test)]
#[path = "connection_pool_tests.rs"]
mod tests;

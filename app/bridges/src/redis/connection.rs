//! One shared connection, opened on first use and reopened after a failure.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use metrics::counter;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, ErrorKind, RedisError, RedisResult};
use tokio::sync::Mutex;
use tokio::time::Instant;

/// A server that does not answer within this time is unavailable.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(5);
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// Minimum delay after a failed connection attempt: callers within it get the error of that
/// attempt.
const RECONNECT_DELAY: Duration = Duration::from_millis(50);

/// Failure of a request: the server is unreachable, or refuses because of its own state (memory
/// limit, replica role, startup, connection limit). Temporary, unless `denied`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub(super) struct Outage {
    pub(super) reason: String,
    /// The server rejected the user or its permissions.
    pub(super) denied: bool,
    /// The connection was broken, perhaps for a long time: a new one may work.
    pub(super) stale: bool,
}

impl Outage {
    pub(super) fn new(reason: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
            denied: false,
            stale: false,
        }
    }
}

impl From<RedisError> for Outage {
    fn from(error: RedisError) -> Self {
        let denied = error.kind() == ErrorKind::AuthenticationFailed
            || matches!(error.code(), Some("NOAUTH" | "WRONGPASS" | "NOPERM"));
        Self {
            reason: error.to_string(),
            denied,
            stale: error.is_io_error() && !error.is_timeout() && !error.is_connection_refusal(),
        }
    }
}

/// At most one connection, shared by all callers.
pub(super) struct SharedConnection {
    /// Kind of traffic, for logs and metrics.
    name: &'static str,
    state: Mutex<ConnectionState>,
    unavailable: AtomicBool,
}

#[derive(Default)]
struct ConnectionState {
    connection: Option<MultiplexedConnection>,
    /// Number of connections opened so far. It identifies a connection, so that only the broken one
    /// is dropped.
    dial_count: u64,
    failed: Option<(Instant, Outage)>,
}

/// A connection and its number.
pub(super) struct ConnectionHandle {
    pub(super) connection: MultiplexedConnection,
    number: u64,
}

impl SharedConnection {
    pub(super) fn new(name: &'static str) -> Self {
        Self {
            name,
            state: Mutex::default(),
            unavailable: AtomicBool::new(false),
        }
    }

    /// Returns the open connection, or opens one.
    pub(super) async fn acquire(&self, client: &Client) -> Result<ConnectionHandle, Outage> {
        let mut state = self.state.lock().await;
        if let Some(connection) = &state.connection {
            return Ok(ConnectionHandle {
                connection: connection.clone(),
                number: state.dial_count,
            });
        }
        if let Some((_, outage)) = state
            .failed
            .as_ref()
            .filter(|(at, _)| at.elapsed() < RECONNECT_DELAY)
        {
            return Err(outage.clone());
        }
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(CONNECT_TIMEOUT))
            .set_response_timeout(Some(RESPONSE_TIMEOUT));
        match client
            .get_multiplexed_async_connection_with_config(&config)
            .await
        {
            Ok(connection) => {
                state.connection = Some(connection.clone());
                state.dial_count += 1;
                state.failed = None;
                Ok(ConnectionHandle {
                    connection,
                    number: state.dial_count,
                })
            }
            Err(error) => {
                let outage = Outage::from(error);
                self.note(Some(&outage));
                state.failed = Some((Instant::now(), outage.clone()));
                Err(outage)
            }
        }
    }

    /// Converts the result of a request. Drops the connection if it is no longer usable.
    pub(super) async fn check<T>(
        &self,
        handle: &ConnectionHandle,
        answered: RedisResult<T>,
    ) -> Result<T, Outage> {
        let error = match answered {
            Ok(answer) => {
                self.note(None);
                return Ok(answer);
            }
            Err(error) => error,
        };
        if error.is_io_error() || error.is_unrecoverable_error() {
            let mut state = self.state.lock().await;
            if state.dial_count == handle.number {
                state.connection = None;
            }
        }
        let outage = Outage::from(error);
        if !outage.stale {
            self.note(Some(&outage));
        }
        Err(outage)
    }

    /// Logs when the server becomes unavailable and when it is available again, not on each
    /// request.
    fn note(&self, outage: Option<&Outage>) {
        if outage.is_some() {
            counter!("deerflow_redis_errors_total", "lane" => self.name).increment(1);
        }
        let before = self.unavailable.swap(outage.is_some(), Ordering::AcqRel);
        match outage {
            Some(outage) if !before => {
                tracing::warn!(connection = self.name, %outage, "redis is unavailable; runs continue, their events are queued")
            }
            None if before => tracing::info!(connection = self.name, "redis is available again"),
            _ => {}
        }
    }
}

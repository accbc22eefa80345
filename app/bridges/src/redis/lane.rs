//! One shared connection, dialled when it is needed and again when it broke.

use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, ErrorKind, RedisError};
use tokio::sync::Mutex;
use tokio::time::Instant;

/// A server that does not answer within this is out of order.
pub(super) const ANSWER_LIMIT: Duration = Duration::from_secs(5);
const DIAL_LIMIT: Duration = Duration::from_secs(2);
/// So many may ask at once after a failure without each dialling for itself.
const DIAL_AGAIN_AFTER: Duration = Duration::from_millis(50);

/// The server could not be asked, or refused for reasons of its own: memory, role, start, limits. Passes, unless it is `denied`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub(super) struct Outage {
    pub(super) why: String,
    /// The server does not know this user, or does not let it.
    pub(super) denied: bool,
    /// The connection was broken, perhaps long ago: another may do.
    pub(super) stale: bool,
}

impl Outage {
    pub(super) fn because(why: impl Into<String>) -> Self {
        Self { why: why.into(), denied: false, stale: false }
    }
}

impl From<RedisError> for Outage {
    fn from(error: RedisError) -> Self {
        let denied = error.kind() == ErrorKind::AuthenticationFailed || matches!(error.code(), Some("NOAUTH" | "WRONGPASS" | "NOPERM"));
        Self { why: error.to_string(), denied, stale: error.is_io_error() && !error.is_timeout() && !error.is_connection_refusal() }
    }
}

/// Holds at most one connection, whoever asks.
#[derive(Default)]
pub(super) struct Lane(Mutex<State>);

#[derive(Default)]
struct State {
    connection: Option<MultiplexedConnection>,
    /// Counts connections, so that only the one that broke is dropped.
    dialled: u64,
    failed: Option<(Instant, Outage)>,
}

/// A connection to use, and which one it is.
pub(super) struct Ticket {
    pub(super) connection: MultiplexedConnection,
    number: u64,
}

impl Lane {
    /// The present connection, or a new one.
    pub(super) async fn ticket(&self, client: &Client) -> Result<Ticket, Outage> {
        let mut state = self.0.lock().await;
        if let Some(connection) = &state.connection {
            return Ok(Ticket { connection: connection.clone(), number: state.dialled });
        }
        if let Some((at, outage)) = state.failed.as_ref().filter(|(at, _)| at.elapsed() < DIAL_AGAIN_AFTER) {
            tracing::trace!(since = ?at.elapsed(), "not dialled again yet");
            return Err(outage.clone());
        }
        let config = AsyncConnectionConfig::new().set_connection_timeout(Some(DIAL_LIMIT)).set_response_timeout(Some(ANSWER_LIMIT));
        match client.get_multiplexed_async_connection_with_config(&config).await {
            Ok(connection) => {
                state.connection = Some(connection.clone());
                state.dialled += 1;
                state.failed = None;
                Ok(Ticket { connection, number: state.dialled })
            }
            Err(error) => {
                let outage = Outage::from(error);
                state.failed = Some((Instant::now(), outage.clone()));
                Err(outage)
            }
        }
    }

    /// Drops the connection of `number` if `error` means that it is of no more use.
    pub(super) async fn judge(&self, number: u64, error: &RedisError) {
        if error.is_io_error() || error.is_unrecoverable_error() {
            let mut state = self.0.lock().await;
            if state.dialled == number {
                state.connection = None;
            }
        }
    }
}

impl Ticket {
    pub(super) fn number(&self) -> u64 {
        self.number
    }
}

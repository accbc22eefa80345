//! One shared connection, dialled when it is needed and again when it broke.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use metrics::counter;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, ErrorKind, RedisError, RedisResult};
use tokio::sync::Mutex;
use tokio::time::Instant;

/// A server that does not answer within this is out of order.
const ANSWER_LIMIT: Duration = Duration::from_secs(5);
pub(super) const DIAL_LIMIT: Duration = Duration::from_secs(2);
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
        Self {
            why: why.into(),
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
            why: error.to_string(),
            denied,
            stale: error.is_io_error() && !error.is_timeout() && !error.is_connection_refusal(),
        }
    }
}

/// Holds at most one connection, whoever asks.
pub(super) struct Lane {
    /// What goes over it.
    name: &'static str,
    state: Mutex<State>,
    out_of_order: AtomicBool,
}

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
    pub(super) fn new(name: &'static str) -> Self {
        Self {
            name,
            state: Mutex::default(),
            out_of_order: AtomicBool::new(false),
        }
    }

    /// The present connection, or a new one.
    pub(super) async fn ticket(&self, client: &Client) -> Result<Ticket, Outage> {
        let mut state = self.state.lock().await;
        if let Some(connection) = &state.connection {
            return Ok(Ticket {
                connection: connection.clone(),
                number: state.dialled,
            });
        }
        if let Some((_, outage)) = state
            .failed
            .as_ref()
            .filter(|(at, _)| at.elapsed() < DIAL_AGAIN_AFTER)
        {
            return Err(outage.clone());
        }
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(DIAL_LIMIT))
            .set_response_timeout(Some(ANSWER_LIMIT));
        match client
            .get_multiplexed_async_connection_with_config(&config)
            .await
        {
            Ok(connection) => {
                state.connection = Some(connection.clone());
                state.dialled += 1;
                state.failed = None;
                Ok(Ticket {
                    connection,
                    number: state.dialled,
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

    /// The answer. A connection that is of no more use is dropped.
    pub(super) async fn judge<T>(
        &self,
        ticket: &Ticket,
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
            if state.dialled == ticket.number {
                state.connection = None;
            }
        }
        let outage = Outage::from(error);
        if !outage.stale {
            self.note(Some(&outage));
        }
        Err(outage)
    }

    /// Tells the log when the server goes out of order and when it is back, not each time somebody asks.
    fn note(&self, outage: Option<&Outage>) {
        if outage.is_some() {
            counter!("deerflow_redis_errors_total", "lane" => self.name).increment(1);
        }
        let before = self.out_of_order.swap(outage.is_some(), Ordering::AcqRel);
        match outage {
            Some(outage) if !before => {
                tracing::warn!(lane = self.name, %outage, "redis is out of order; runs go on, their events wait")
            }
            None if before => tracing::info!(lane = self.name, "redis is in order again"),
            _ => {}
        }
    }
}

//! The HTTP client that every adapter shares: one pool, kept warm, made once.

use std::time::Duration;

/// Longer than this nobody waits for a connection.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);
/// How long an idle connection is kept for the next call.
const KEEP_IDLE: Duration = Duration::from_secs(90);

/// A shared client; clones use the same connections.
#[derive(Debug, Clone)]
pub struct SharedHttp(reqwest::Client);

/// The client could not be made, for instance because the system's certificates cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the HTTP client cannot be made: {0}")]
pub struct HttpUnavailable(String);

impl SharedHttp {
    /// A client with its own pool. Takes the system's proxy settings.
    pub fn new() -> Result<Self, HttpUnavailable> {
        reqwest::Client::builder()
            .user_agent(concat!("deerflow/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(CONNECT_LIMIT)
            .pool_idle_timeout(KEEP_IDLE)
            // Keys in headers of their own would follow to any host.
            .redirect(reqwest::redirect::Policy::none())
            .tcp_nodelay(true)
            // Compressed streams come in blocks: words would wait for each other.
            .no_gzip()
            .tcp_keepalive(Duration::from_secs(30))
            .build()
            .map(Self)
            .map_err(|error| HttpUnavailable(error.to_string()))
    }

    pub(in crate::models) fn client(&self) -> &reqwest::Client {
        &self.0
    }
}

//! HTTP client of the adapters.

use std::time::Duration;

/// Timeout of a connection attempt.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Time without received bytes after which a call fails; longer than any long poll.
const READ_TIMEOUT: Duration = Duration::from_secs(90);
/// Time after which an idle connection is closed.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// Creates the client that all adapters share. It uses the proxies of the environment and follows
/// no redirects, which would forward tokens to other hosts.
///
/// # Errors
/// An error if the certificates of the system cannot be read.
pub fn http_client() -> Result<reqwest::Client, reqwest::Error> {
    reqwest::Client::builder()
        .user_agent(concat!("deerflow/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT_TIMEOUT)
        .read_timeout(READ_TIMEOUT)
        .pool_idle_timeout(IDLE_TIMEOUT)
        .redirect(reqwest::redirect::Policy::none())
        .tcp_nodelay(true)
        .build()
}

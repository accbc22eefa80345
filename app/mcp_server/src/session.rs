//! Session with one client, from its first message to the end of its runs.

use std::time::Duration;

use harness::runtime::tasks::Tasks;
use rmcp::service::serve_directly_with_ct;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::framing;
use crate::ports::ServerPorts;
use crate::server::AgentServer;

/// Timeout for cancelling the runs of a disconnected client.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);
/// Timeout for writing the last responses.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

/// Serves the client at the other end of the streams until it disconnects or `shutdown` is
/// cancelled. On return, `shutdown` is cancelled and the client's runs have ended, except runs that
/// exceeded a timeout. `services` receives the task that writes the output.
pub async fn serve<R, W>(
    ports: ServerPorts,
    (input, output): (R, W),
    shutdown: &CancellationToken,
    services: &Tasks,
) where
    R: AsyncRead + Unpin + Send + 'static,
    W: AsyncWrite + Unpin + Send + 'static,
{
    tracing::info!("ready for the mcp client");
    let (transport, writer) = framing::open(input, output, shutdown, services);
    let server = AgentServer::new(ports);
    let call_limiter = server.call_limiter();
    // However the session ends, even by a panic in the protocol implementation, the steps below
    // must run.
    let ended = serve_directly_with_ct(server, transport, None, shutdown.clone())
        .waiting()
        .await;
    tracing::info!(?ended, "mcp client disconnected");
    shutdown.cancel();
    if timeout(STOP_TIMEOUT, call_limiter.wait_until_idle())
        .await
        .is_err()
    {
        tracing::warn!(
            "some runs did not stop in time; the next start or another process resumes them"
        );
    }
    _ = timeout(FLUSH_TIMEOUT, writer).await;
}

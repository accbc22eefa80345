//! `deerflow mcp`: serves the agent as a tool to one MCP client.
//!
//! The client starts this process and communicates over standard input and output. `framing` reads
//! and writes messages, `server` handles requests, and `ask` executes each question as a run. Runs
//! that are active when the client disconnects are cancelled.

mod arguments;
mod artifact;
mod ask;
mod call_limit;
mod elicitation;
mod framing;
mod outcome;
mod parse;
mod progress;
mod progress_sink;
mod server;
mod stdio;
mod tools;

use std::process::ExitCode;
use std::time::Duration;

use harness::config_file::{Environment, load};
use harness::runtime::tasks::{TaskKind, Tasks};
use rmcp::service::serve_directly_with_ct;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use crate::cli::FileArgs;
use crate::config::{ConfigHandle, Settings, watch};
use crate::lifecycle::{shut_down_app, watch_signals};
use crate::telemetry;
use crate::wiring::{App, Role};
use server::AgentServer;

/// Timeout for cancelling the runs of a disconnected client.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);
/// Timeout for writing the last responses.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

/// Serves one client until it disconnects or a signal arrives.
///
/// # Errors
/// The configuration or the stores cannot be used.
pub async fn run(args: FileArgs, environment: Environment) -> anyhow::Result<ExitCode> {
    let (input, output) = stdio::take()?;
    let loaded = load(args.config.as_deref(), &environment)?;
    let settings = Settings::from_environment(&environment)?;
    let services = Tasks::new();
    let telemetry = telemetry::start(&loaded.config, &environment, &services)?;
    loaded.log();
    let config = ConfigHandle::new(loaded, environment);
    let shutdown = CancellationToken::new();
    services.spawn(
        TaskKind::Service,
        "signals",
        watch_signals(shutdown.clone()),
    );
    services.spawn(
        TaskKind::Service,
        "configuration",
        watch(config.clone(), shutdown.clone()),
    );
    let app = tokio::select! {
        app = App::build(&settings, &config, Role::Guest, Tasks::new(), shutdown.clone()) => app?,
        () = shutdown.cancelled() => return Ok(ExitCode::SUCCESS),
    };
    tracing::info!("ready for the mcp client");
    let (transport, writer) = framing::open(input, output, &shutdown, &services);
    let server = AgentServer::new(&app);
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
    shut_down_app(&app, Instant::now()).await;
    services.token().cancel();
    telemetry.stop().await;
    Ok(ExitCode::SUCCESS)
}

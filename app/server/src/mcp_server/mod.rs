//! `deerflow mcp`: the agent as a tool of MCP clients, from opening the installation to leaving it in order.
//!
//! A client starts the process and talks with it over its standard streams; `lines` reads and writes them, `server` answers what is
//! asked, and each question is a run that `ask` follows. What is not asked for ends with the client: its runs are stopped.

mod arguments;
mod artifact;
mod ask;
mod caller;
mod lines;
mod news;
mod outcome;
mod person;
mod places;
mod reading;
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
use crate::lifecycle::{watch_signals, wind_down};
use crate::telemetry;
use crate::wiring::{App, Role};
use server::AgentServer;

/// How long the runs of a client that left may take to stop.
const STOP_LIMIT: Duration = Duration::from_secs(10);
/// How long the last answers may take to be written.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Serves one client until it closes its end or a signal ends the process.
///
/// # Errors
/// When the configuration or the stores cannot be used.
pub async fn run(args: FileArgs, environment: Environment) -> anyhow::Result<ExitCode> {
    let (input, output) = stdio::take()?;
    let loaded = load(args.config.as_deref(), &environment)?;
    let settings = Settings::from_environment(&environment)?;
    let services = Tasks::new();
    let telemetry = telemetry::start(&loaded.config, &environment, &services)?;
    loaded.log();
    let config = ConfigHandle::new(loaded, environment);
    let over = CancellationToken::new();
    services.spawn(TaskKind::Service, "signals", watch_signals(over.clone()));
    services.spawn(
        TaskKind::Service,
        "configuration",
        watch(config.clone(), over.clone()),
    );
    let app = tokio::select! {
        app = App::build(&settings, &config, Role::Guest, Tasks::new(), over.clone()) => app?,
        () = over.cancelled() => return Ok(ExitCode::SUCCESS),
    };
    tracing::info!("ready for an mcp client");
    let (link, writer) = lines::open(input, output, &over, &services);
    let server = AgentServer::new(&app);
    let places = server.places();
    // What this ends with, a panic of the protocol's machine included, leaves the rest to be done.
    let ended = serve_directly_with_ct(server, link, None, over.clone())
        .waiting()
        .await;
    tracing::info!(?ended, "the mcp client is gone");
    over.cancel();
    if timeout(STOP_LIMIT, places.all_free()).await.is_err() {
        tracing::warn!(
            "some runs did not stop in time; the next start, or another process, goes on with them"
        );
    }
    _ = timeout(LAST_WORDS, writer).await;
    wind_down(&app, Instant::now()).await;
    services.token().cancel();
    telemetry.stop().await;
    Ok(ExitCode::SUCCESS)
}

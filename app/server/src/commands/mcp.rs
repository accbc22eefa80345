//! `deerflow mcp`: opens the installation, serves one MCP client and shuts down.

use std::process::ExitCode;

use deerflow_mcp_server::{ServerPorts, serve, take_standard_streams};
use harness::config_file::{Environment, load};
use harness::runtime::tasks::{TaskKind, Tasks};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::chat::approval_command;
use crate::cli::FileArgs;
use crate::config::{ConfigHandle, Settings, watch};
use crate::lifecycle::{shut_down_app, watch_signals};
use crate::telemetry;
use crate::wiring::{App, Role};

/// Serves one client until it disconnects or a signal arrives.
///
/// # Errors
/// The configuration or the stores cannot be used.
pub async fn run(args: FileArgs, environment: Environment) -> anyhow::Result<ExitCode> {
    let streams = take_standard_streams()?;
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
    serve(ports(&app), streams, &shutdown, &services).await;
    shut_down_app(&app, Instant::now()).await;
    services.token().cancel();
    telemetry.stop().await;
    Ok(ExitCode::SUCCESS)
}

fn ports(app: &App) -> ServerPorts {
    ServerPorts {
        runs: app.runs.clone(),
        threads: app.gateway.thread_services.threads.clone(),
        files: app.files.clone(),
        ids: app.gateway.process.ids.clone(),
        tasks: app.tasks.clone(),
        approval_command: |thread, options| approval_command(thread, options),
    }
}

//! Serves the API, from binding the port to the shutdown.

use deerflow_gateway::{ServeOptions, router, serve};
use harness::runtime::tasks::{TaskKind, Tasks};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::config::{ConfigHandle, Settings, watch};
use crate::lifecycle::{shut_down_app, watch_signals};
use crate::wiring::{App, Role};
use crate::{listener, open_files};

/// Runs the server until a signal. Leases and health checks run on the control runtime of `tasks`,
/// if it has one.
pub async fn run(settings: Settings, config: ConfigHandle, tasks: Tasks) -> anyhow::Result<()> {
    let exposure = settings.exposure()?;
    tracing::info!("{exposure}");
    // Binds first, so a port in use is reported before stores are opened or runs recovered.
    let listener = listener::listen(&settings).await?;
    if let Some(warning) = listener::cap_warning(listener::backlog_cap()) {
        tracing::warn!("{warning}");
    }
    open_files::raise_and_log();
    let shutdown = CancellationToken::new();
    let services = Tasks::new();
    let app = App::build(
        &settings,
        &config,
        Role::Server,
        tasks.sibling(),
        shutdown.clone(),
    )
    .await?;
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
    tracing::info!(address = %listener.local_addr()?, "ready");
    let serving = async {
        let served = serve(
            listener,
            router(app.gateway.clone()),
            shutdown.clone(),
            ServeOptions {
                tasks,
                ..ServeOptions::default()
            },
        )
        .await;
        shutdown.cancel();
        served
    };
    // The grace period of runs starts with the signal, not when the last connection closes.
    let stop_requested = async {
        shutdown.cancelled().await;
        app.tasks.token().cancel();
        Instant::now()
    };
    let (served, stop_requested) = tokio::join!(serving, stop_requested);
    shut_down_app(
        &app,
        stop_requested + config.current().runs.shutdown_grace(),
    )
    .await;
    tracing::info!("stopped");
    Ok(served?)
}

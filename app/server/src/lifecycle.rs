//! Shutdown of the process: the first signal is graceful, the second immediate.

use std::time::Duration;

use harness::runtime::fail_points;
use harness::runtime::runs::NodeLifecycle;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::wiring::App;

/// Time for released work to write its state.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(3);
/// Interval of checks whether the last run has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Cancels `shutdown` on SIGTERM or SIGINT. A second signal exits immediately, like a kill:
/// acknowledged data is durable, and other nodes or the next start resume the active runs.
pub async fn watch_signals(shutdown: CancellationToken) -> std::io::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut either = async || {
        tokio::select! {
            _ = terminate.recv() => "SIGTERM",
            _ = interrupt.recv() => "SIGINT",
        }
    };
    let first = either().await;
    tracing::info!(
        signal = first,
        "shutting down; a second signal exits immediately"
    );
    shutdown.cancel();
    let second = either().await;
    tracing::warn!(signal = second, "exiting immediately");
    #[expect(
        clippy::disallowed_methods,
        reason = "a second signal must exit without any delay"
    )]
    std::process::exit(130);
}

/// Shuts the runtime down in order. New runs are rejected; active runs may continue until
/// `deadline` and are then released. Memory updates end concurrently, with a timeout of their own.
/// The bridge closes after the runs, so their events still reach viewers on other nodes; viewers of
/// this node were disconnected with the server and reconnect elsewhere. The stores close last.
pub async fn shut_down_app(app: &App, deadline: Instant) {
    app.tasks.token().cancel();
    tokio::join!(end_runs(app, deadline), app.memory_tasks.shut_down());
    app.bridge.close().await;
    app.store_tasks.shut_down().await;
}

async fn end_runs(App { runs, tasks, .. }: &App, deadline: Instant) {
    let node = NodeLifecycle::new(runs.runtime());
    if tokio::time::timeout_at(deadline, wait_until_no_runs(&node))
        .await
        .is_err()
    {
        tracing::warn!(
            runs = node.live_runs(),
            "releasing active runs for the next start or another node"
        );
    }
    fail_points::pass("shutdown.patience-over");
    node.release_all();
    if tokio::time::timeout(SHUTDOWN_GRACE, tasks.shut_down())
        .await
        .is_err()
    {
        tracing::error!(
            tasks = tasks.alive(),
            "some work did not end in time; the next start recovers it"
        );
    }
    fail_points::pass("shutdown.work-over");
}

async fn wait_until_no_runs(node: &NodeLifecycle) {
    while node.live_runs() > 0 {
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

//! The end of a process: one signal asks politely, a second one insists.

use std::time::Duration;

use harness::runtime::fail_points;
use harness::runtime::runs::RunsFacade;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::wiring::App;

/// How long what is left may take to write where it stands.
const END_GRACE: Duration = Duration::from_secs(3);
/// How often to look whether the last run has ended.
const LOOK: Duration = Duration::from_millis(20);

/// Cancels `shutdown` at SIGTERM or SIGINT; a second signal ends the process at once, as a kill would: what was acknowledged is
/// durable, and others, or the next start, go on with what was under way.
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
        "shutting down; a second signal ends the process at once"
    );
    shutdown.cancel();
    let second = either().await;
    tracing::warn!(signal = second, "ending at once");
    #[expect(
        clippy::disallowed_methods,
        reason = "the operator insists; nothing may delay the end"
    )]
    std::process::exit(130);
}

/// Ends the runtime in order: no new runs, those at work given time until `deadline`, then given back; beside them what is learned
/// from threads has a time of its own. What runs say until then reaches viewers on other nodes, so the bridge closes after them; viewers
/// here were aborted with the server, so that they come back elsewhere. The stores end last.
pub async fn wind_down(app: &App, deadline: Instant) {
    app.tasks.token().cancel();
    tokio::join!(end_runs(app, deadline), app.lessons.shut_down());
    app.bridge.close().await;
    app.store_tasks.shut_down().await;
}

async fn end_runs(App { runs, tasks, .. }: &App, deadline: Instant) {
    if tokio::time::timeout_at(deadline, no_live_runs(runs))
        .await
        .is_err()
    {
        tracing::warn!(
            runs = runs.live_runs(),
            "runs still at work are given back, for the next start or another node"
        );
    }
    fail_points::pass("shutdown.patience-over");
    runs.hand_over_all();
    if tokio::time::timeout(END_GRACE, tasks.shut_down())
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

async fn no_live_runs(runs: &RunsFacade) {
    while runs.live_runs() > 0 {
        tokio::time::sleep(LOOK).await;
    }
}

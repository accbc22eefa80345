//! Notices edits of the configuration file.

use std::sync::Arc;
use std::time::Duration;

use notify::{RecursiveMode, Watcher};
use tokio::sync::Notify;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep};
use tokio_util::sync::CancellationToken;

use super::handle::ConfigHandle;

/// How long an editor may take to finish writing.
const DEBOUNCE: Duration = Duration::from_millis(200);
/// How often the file is looked at where changes are not announced, as on network file systems.
const POLL: Duration = Duration::from_secs(5);

/// Reloads `handle` after each change of its file, until `shutdown`.
///
/// The directory is watched rather than the file, since editors and orchestrators replace files.
pub async fn watch(handle: ConfigHandle, shutdown: CancellationToken) {
    let Some(directory) = handle.path().and_then(|path| path.parent()) else {
        return;
    };
    let changed = Arc::new(Notify::new());
    let announce = Arc::clone(&changed);
    let watcher = notify::recommended_watcher(move |_event| announce.notify_one()).and_then(|mut watcher| {
        watcher.watch(directory, RecursiveMode::NonRecursive)?;
        Ok(watcher)
    });
    if let Err(error) = &watcher {
        tracing::warn!(%error, "configuration changes are not announced here, looking every {POLL:?}");
    }
    let mut poll = interval_at(Instant::now() + POLL, POLL);
    poll.set_missed_tick_behavior(MissedTickBehavior::Delay);

    loop {
        tokio::select! {
            () = shutdown.cancelled() => return,
            () = changed.notified() => sleep(DEBOUNCE).await,
            _ = poll.tick() => {}
        }
        let handle = handle.clone();
        let looked = tokio::task::spawn_blocking(move || handle.reload_now()).await;
        if let Err(error) = looked {
            tracing::error!(%error, "looking at the configuration file failed");
        }
    }
}

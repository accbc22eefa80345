//! Watches the configuration file.

use std::sync::Arc;
use std::time::Duration;

use harness::config::FileSignature;
use notify::event::{AccessKind, AccessMode};
use notify::{EventKind, RecursiveMode, Watcher};
use tokio::sync::Notify;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep};
use tokio_util::sync::CancellationToken;

use super::handle::ConfigHandle;

/// Time for an editor to finish writing.
const DEBOUNCE: Duration = Duration::from_millis(200);
/// Poll interval, for file systems without change events, such as network file systems. A poll
/// reads the file only if its metadata has changed.
const POLL: Duration = Duration::from_secs(1);

/// Reloads `handle` after each change of its file, until `shutdown`.
///
/// Watches the directory rather than the file, because editors and orchestrators replace files.
pub async fn watch(handle: ConfigHandle, shutdown: CancellationToken) {
    let Some(directory) = handle.path().and_then(|path| path.parent()) else {
        return;
    };
    let changed = Arc::new(Notify::new());
    let notifier = Arc::clone(&changed);
    let on_event = move |event: notify::Result<notify::Event>| {
        if may_be_a_change(&event) {
            notifier.notify_one();
        }
    };
    let watcher = notify::recommended_watcher(on_event).and_then(|mut watcher| {
        watcher.watch(directory, RecursiveMode::NonRecursive)?;
        Ok(watcher)
    });
    if let Err(error) = &watcher {
        tracing::warn!(%error, "no change events for the configuration file, polling every {POLL:?}");
    }
    let mut poll = interval_at(Instant::now() + POLL, POLL);
    poll.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut seen = None;

    loop {
        let is_notified = tokio::select! {
            () = shutdown.cancelled() => return,
            () = changed.notified() => {
                sleep(DEBOUNCE).await;
                true
            }
            _ = poll.tick() => false,
        };
        let handle = handle.clone();
        let known = seen.filter(|_| !is_notified);
        match tokio::task::spawn_blocking(move || reload_changed(&handle, known)).await {
            Ok(signature) => seen = signature,
            Err(error) => tracing::error!(%error, "cannot reload the configuration file"),
        }
    }
}

/// Reloads the file if its metadata differs from `known`, or if it has none. Returns the metadata
/// from before the reload, so that a later change is never missed.
pub(super) fn reload_changed(
    handle: &ConfigHandle,
    known: Option<FileSignature>,
) -> Option<FileSignature> {
    let facts = handle.path().and_then(|path| std::fs::metadata(path).ok());
    let signature = facts.as_ref().map(FileSignature::of);
    if signature.is_none() || signature != known {
        handle.reload_now();
    }
    signature
}

/// Reports whether an event may mean changed content. Reading the file also causes events, which
/// must not trigger another reload.
pub(crate) fn may_be_a_change(event: &notify::Result<notify::Event>) -> bool {
    event.as_ref().map_or(true, |event| match event.kind {
        EventKind::Access(access) => access == AccessKind::Close(AccessMode::Write),
        _ => true,
    })
}

#[cfg(test)]
mod tests {
    use notify::Event;
    use notify::event::{CreateKind, DataChange, ModifyKind};

    use super::*;

    #[test]
    fn read_events_do_not_trigger_reload() {
        let triggers = |kind| may_be_a_change(&Ok(Event::new(kind)));
        for access in [
            AccessKind::Open(AccessMode::Any),
            AccessKind::Read,
            AccessKind::Close(AccessMode::Read),
        ] {
            assert!(!triggers(EventKind::Access(access)), "{access:?}");
        }
        for changed in [
            EventKind::Access(AccessKind::Close(AccessMode::Write)),
            EventKind::Modify(ModifyKind::Data(DataChange::Any)),
            EventKind::Create(CreateKind::File),
            EventKind::Any,
        ] {
            assert!(triggers(changed), "{changed:?}");
        }
        assert!(may_be_a_change(&Err(notify::Error::generic(
            "events were lost"
        ))));
    }
}

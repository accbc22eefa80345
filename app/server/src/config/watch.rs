//! Notices edits of the configuration file.

use std::sync::Arc;
use std::time::Duration;

use notify::event::{AccessKind, AccessMode};
use notify::{EventKind, RecursiveMode, Watcher};
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
    let tell = move |event: notify::Result<notify::Event>| {
        if may_be_a_change(&event) {
            announce.notify_one();
        }
    };
    let watcher = notify::recommended_watcher(tell).and_then(|mut watcher| {
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

/// Whether a file may hold something else than before. Looking at the file is told, too, and must not lead to the next look.
fn may_be_a_change(event: &notify::Result<notify::Event>) -> bool {
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
    fn looking_at_the_file_is_no_reason_to_look_again() {
        let told = |kind| may_be_a_change(&Ok(Event::new(kind)));
        for looked in [
            AccessKind::Open(AccessMode::Any),
            AccessKind::Read,
            AccessKind::Close(AccessMode::Read),
        ] {
            assert!(!told(EventKind::Access(looked)), "{looked:?}");
        }
        for changed in [
            EventKind::Access(AccessKind::Close(AccessMode::Write)),
            EventKind::Modify(ModifyKind::Data(DataChange::Any)),
            EventKind::Create(CreateKind::File),
            EventKind::Any,
        ] {
            assert!(told(changed), "{changed:?}");
        }
        assert!(may_be_a_change(&Err(notify::Error::generic(
            "events were lost"
        ))));
    }
}

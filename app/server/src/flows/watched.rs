//! Watches the folder of the system flows.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use deerflow_gateway::flows::{FlowRules, SystemFlows, SystemSnapshot};
use harness::clock::Clock;
use notify::{RecursiveMode, Watcher};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep};
use tokio_util::sync::CancellationToken;

use super::folder::{fingerprint, folder_of, read};
use crate::config::{ConfigHandle, may_be_a_change};

/// Time for an editor to finish writing.
const DEBOUNCE: Duration = Duration::from_millis(200);
/// Poll interval, for file systems without change events and for a folder that is created later.
const POLL: Duration = Duration::from_secs(5);

/// System flows of the configured folder. Clones share the state.
#[derive(Debug, Clone)]
pub(crate) struct WatchedFlows(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    config: ConfigHandle,
    rules: Arc<FlowRules>,
    clock: Arc<dyn Clock>,
    current: Mutex<Arc<SystemSnapshot>>,
    /// Serializes scans. Holds the folder and its fingerprint at the last scan.
    scanned: Mutex<Option<(PathBuf, u64)>>,
}

impl WatchedFlows {
    /// Reads the folder.
    pub(crate) async fn open(
        config: ConfigHandle,
        rules: Arc<FlowRules>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let flows = Self(Arc::new(Shared {
            config,
            rules,
            clock,
            current: Mutex::default(),
            scanned: Mutex::default(),
        }));
        flows.reload().await;
        flows
    }

    /// Scans the folder if it has changed since the last scan.
    async fn refresh(&self) {
        self.scan_off_thread(false).await;
    }

    async fn scan_off_thread(&self, always: bool) {
        let shared = self.0.clone();
        let scanned = tokio::task::spawn_blocking(move || shared.scan(always)).await;
        if let Err(error) = scanned {
            tracing::error!(%error, "cannot read the system flows");
        }
    }
}

#[async_trait]
impl SystemFlows for WatchedFlows {
    fn current(&self) -> Arc<SystemSnapshot> {
        self.0.current.lock().clone()
    }

    async fn reload(&self) -> Arc<SystemSnapshot> {
        self.scan_off_thread(true).await;
        self.current()
    }
}

impl Shared {
    /// Returns the folder of the current configuration.
    fn folder(&self) -> PathBuf {
        folder_of(&self.config.current().flows, self.config.path())
    }

    /// Scans the folder. If it cannot be read, the last state stays.
    fn scan(&self, always: bool) {
        let mut scanned = self.scanned.lock();
        let folder = self.folder();
        // Taken before the files are read, so that a change during the scan causes another one.
        let seen = fingerprint(&folder).map(|print| (folder.clone(), print));
        let seen = match seen {
            Ok(seen) if !always && scanned.as_ref() == Some(&seen) => return,
            Ok(seen) => seen,
            Err(error) => return unreadable(&folder, &error),
        };
        match read(&folder) {
            Ok(files) => {
                let before = self.current.lock().clone();
                let next = before.after_scan(files, &self.rules, self.clock.now());
                report(&before, &next);
                *self.current.lock() = Arc::new(next);
                *scanned = Some(seen);
            }
            Err(error) => unreadable(&folder, &error),
        }
    }
}

fn unreadable(folder: &Path, error: &std::io::Error) {
    tracing::warn!(folder = %folder.display(), %error, "cannot read the folder of the system flows");
}

/// Logs what is new in a state.
fn report(before: &SystemSnapshot, next: &SystemSnapshot) {
    for problem in &next.problems {
        if !before.problems.contains(problem) {
            let first = problem.errors.first().map(|error| error.message.as_str());
            tracing::warn!(
                file = problem.path,
                errors = problem.errors.len(),
                first,
                "a system flow is not valid"
            );
        }
    }
    for (slug, flow) in &next.flows {
        let known = before.flows.get(slug);
        let is_new = known.is_none_or(|known| known.errors != flow.errors);
        if is_new && let Some(first) = flow.errors.first() {
            tracing::warn!(
                slug,
                errors = flow.errors.len(),
                first = first.message,
                "a changed system flow is not valid, its last valid content stays active"
            );
        }
    }
    if before.flows.keys().ne(next.flows.keys()) {
        tracing::info!(flows = next.flows.len(), "system flows loaded");
    }
}

/// Reads the flows again after each change of their folder, until `shutdown`.
pub(crate) async fn watch(flows: WatchedFlows, shutdown: CancellationToken) {
    let changed = Arc::new(Notify::new());
    let mut watcher = None;
    let mut poll = interval_at(Instant::now() + POLL, POLL);
    poll.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let folder = flows.0.folder();
        if watcher
            .as_ref()
            .is_none_or(|(watched, _)| *watched != folder)
        {
            watcher = watcher_of(&folder, &changed).map(|watcher| (folder, watcher));
        }
        tokio::select! {
            () = shutdown.cancelled() => return,
            () = changed.notified() => sleep(DEBOUNCE).await,
            _ = poll.tick() => {}
        }
        flows.refresh().await;
    }
}

/// Returns a watcher of the folder; `None` if it does not exist or has no change events.
fn watcher_of(folder: &Path, changed: &Arc<Notify>) -> Option<notify::RecommendedWatcher> {
    let notifier = Arc::clone(changed);
    let on_event = move |event: notify::Result<notify::Event>| {
        if may_be_a_change(&event) {
            notifier.notify_one();
        }
    };
    let mut watcher = notify::recommended_watcher(on_event).ok()?;
    watcher.watch(folder, RecursiveMode::Recursive).ok()?;
    Some(watcher)
}

#[cfg(test)]
#[path = "watched_tests.rs"]
mod tests;

//! Tasks by key, at most one per key: a lane runs while there is work for its key.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;

/// Wake-up signal of a lane.
#[derive(Debug, Default)]
pub(crate) struct Lane {
    notify: Notify,
}

impl Lane {
    /// Waits for new work since the last call.
    pub(crate) async fn notified(&self) {
        self.notify.notified().await;
    }
}

#[derive(Debug)]
struct Running {
    lane: Arc<Lane>,
    /// `true` if work arrived since the lane last read its work.
    has_work: bool,
}

/// Lanes that run now.
#[derive(Debug)]
pub(crate) struct Lanes<K: Eq + Hash>(Arc<Mutex<HashMap<K, Running>>>);

impl<K: Eq + Hash> Default for Lanes<K> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

/// Membership of a lane. Dropping it, also by a panic, ends the lane.
#[derive(Debug)]
pub(crate) struct LaneTask<K: Eq + Hash + Clone> {
    lanes: Arc<Mutex<HashMap<K, Running>>>,
    /// Key of the lane.
    pub(crate) key: K,
    /// Signal of the lane.
    pub(crate) lane: Arc<Lane>,
}

impl<K: Eq + Hash + Clone> Lanes<K> {
    /// Notifies the lane of a key. If none runs, its registration is returned and the caller starts
    /// it.
    pub(crate) fn wake(&self, key: K) -> Option<LaneTask<K>> {
        let mut running = self.0.lock();
        if let Some(found) = running.get_mut(&key) {
            found.has_work = true;
            found.lane.notify.notify_one();
            return None;
        }
        let lane = Arc::new(Lane::default());
        running.insert(
            key.clone(),
            Running {
                lane: lane.clone(),
                has_work: true,
            },
        );
        Some(LaneTask {
            lanes: self.0.clone(),
            key,
            lane,
        })
    }
}

impl<K: Eq + Hash + Clone> LaneTask<K> {
    /// Marks the work so far as seen. Called before the lane reads its work.
    pub(crate) fn begin_reading(&self) {
        if let Some(running) = self.lanes.lock().get_mut(&self.key) {
            running.has_work = false;
        }
    }

    /// Ends the lane, unless work arrived since [`begin_reading`](Self::begin_reading).
    pub(crate) fn try_end(&self) -> bool {
        let mut running = self.lanes.lock();
        let has_work = running
            .get(&self.key)
            .is_some_and(|running| running.has_work);
        if !has_work {
            running.remove(&self.key);
        }
        !has_work
    }
}

impl<K: Eq + Hash + Clone> Drop for LaneTask<K> {
    fn drop(&mut self) {
        let mut running = self.lanes.lock();
        if running
            .get(&self.key)
            .is_some_and(|found| Arc::ptr_eq(&found.lane, &self.lane))
        {
            running.remove(&self.key);
        }
    }
}

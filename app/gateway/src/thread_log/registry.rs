//! Logs of the threads that have readers.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use chrono::{DateTime, Utc};
use harness::ids::ThreadId;
use harness::runtime::actor_context::effective_user_id;
use harness::runtime::tasks::TaskKind;
use parking_lot::Mutex;

use super::follower::Follower;
use super::log::{LogLimits, ThreadLog};
use super::ports::LogPorts;
use super::reader::LogReader;

/// Time for which a log without readers is held, for a client that reconnects.
const LINGER: Duration = Duration::from_secs(15);

/// Logs by thread and user. A user does not see the runs of others, so a log belongs to one user.
#[derive(Debug)]
pub struct ThreadLogs {
    ports: LogPorts,
    limits: LogLimits,
    open: Mutex<HashMap<LogKey, Arc<ThreadLog>>>,
}

/// Thread and user of a log.
type LogKey = (ThreadId, String);

impl ThreadLogs {
    /// Creates an empty set of logs.
    pub fn new(ports: LogPorts, limits: LogLimits) -> Arc<Self> {
        Arc::new(Self {
            ports,
            limits,
            open: Mutex::default(),
        })
    }

    /// Opens a reader of the events after `since` of a thread, for the bound actor. `created_at` is
    /// the creation time of the thread, if it exists.
    pub(crate) fn open(
        self: &Arc<Self>,
        thread: &ThreadId,
        created_at: Option<DateTime<Utc>>,
        since: u64,
    ) -> LogReader {
        let key = (thread.clone(), effective_user_id());
        let mut open = self.open.lock();
        let existing = open
            .get(&key)
            .filter(|log| !log.is_of_deleted_thread(created_at));
        if let Some(log) = existing {
            return LogReader::new(log.clone(), since);
        }
        let log = Arc::new(ThreadLog::new(self.limits));
        let reader = LogReader::new(log.clone(), since);
        open.insert(key.clone(), log.clone());
        drop(open);
        let follower = Follower::new(thread.clone(), log.clone(), self.ports.clone());
        let logs = Arc::downgrade(self);
        self.ports
            .tasks
            .spawn(TaskKind::Service, "thread log", async move {
                follower.run(|log| abandoned(log, &key, &logs)).await;
                log.close();
                if let Some(logs) = logs.upgrade() {
                    logs.remove(&key, &log, false);
                }
            });
        reader
    }

    /// Removes a log, or only if it has no readers. Returns `true` if it is removed.
    fn remove(&self, key: &LogKey, log: &Arc<ThreadLog>, only_unread: bool) -> bool {
        let mut open = self.open.lock();
        if only_unread && *log.readers().borrow() > 0 {
            return false;
        }
        // The log of a later thread with the same id may have replaced it.
        if open.get(key).is_some_and(|known| Arc::ptr_eq(known, log)) {
            open.remove(key);
        }
        true
    }
}

/// Waits until a log had no readers for a while, and removes it.
async fn abandoned(log: Arc<ThreadLog>, key: &LogKey, logs: &Weak<ThreadLogs>) {
    let mut readers = log.readers().subscribe();
    loop {
        if readers.wait_for(|readers| *readers == 0).await.is_err() {
            return;
        }
        // There is nothing to hold for a thread without runs.
        let linger = if log.is_empty() {
            Duration::ZERO
        } else {
            LINGER
        };
        let returned = readers.wait_for(|readers| *readers > 0);
        if tokio::time::timeout(linger, returned).await.is_ok() {
            continue;
        }
        let is_removed = logs
            .upgrade()
            .is_none_or(|logs| logs.remove(key, &log, true));
        if is_removed {
            return;
        }
    }
}

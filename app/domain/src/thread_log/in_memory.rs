//! Positions of runs in memory, for one process and for tests.

use std::collections::HashMap;

use async_trait::async_trait;
use deerflow_core::ids::{RunId, ThreadId};
use deerflow_runtime::runs::store::StoreError;
use parking_lot::Mutex;

use super::{LoggedEnd, LoggedRun, ThreadLogStore};

/// Positions of one process. Threads need no row.
#[derive(Debug, Default)]
pub struct InMemoryThreadLog(Mutex<HashMap<ThreadId, Vec<LoggedRun>>>);

impl InMemoryThreadLog {
    /// Removes the positions of a deleted thread.
    pub fn remove(&self, thread: &ThreadId) {
        self.0.lock().remove(thread);
    }
}

#[async_trait]
impl ThreadLogStore for InMemoryThreadLog {
    async fn ranges(&self, thread: &ThreadId) -> Result<Vec<LoggedRun>, StoreError> {
        Ok(self.0.lock().get(thread).cloned().unwrap_or_default())
    }

    async fn open(&self, thread: &ThreadId, run: &RunId) -> Result<Option<LoggedRun>, StoreError> {
        let mut threads = self.0.lock();
        let runs = threads.entry(thread.clone()).or_default();
        if let Some(known) = runs.iter().find(|known| known.run_id == *run) {
            return Ok(Some(known.clone()));
        }
        let opened = LoggedRun {
            run_id: run.clone(),
            first: runs.last().map_or(1, LoggedRun::next),
            end: None,
        };
        runs.push(opened.clone());
        Ok(Some(opened))
    }

    async fn close(
        &self,
        thread: &ThreadId,
        run: &RunId,
        end: LoggedEnd,
    ) -> Result<Option<LoggedEnd>, StoreError> {
        let mut threads = self.0.lock();
        let opened = threads
            .get_mut(thread)
            .and_then(|runs| runs.iter_mut().find(|known| known.run_id == *run));
        Ok(opened.map(|opened| opened.end.get_or_insert(end).clone()))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::testkit::thread_log::ThreadLogStores;

    async fn stores() -> ThreadLogStores {
        ThreadLogStores {
            log: Arc::new(InMemoryThreadLog::default()),
            threads: None,
            keep: Arc::new(()),
        }
    }

    crate::thread_log_suite!([#[tokio::test]] stores);
}

//! The journal as files: one per thread, one JSON object per line, flushed to disk before an append
//! returns.
//!
//! A crash during an append leaves an incomplete last line. It is cut off when the thread is next
//! opened, because that append never returned. A batch over several threads is atomic per thread.
//! Only one process may use a directory at a time.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use deerflow_core::actor_context::Owner;
use deerflow_core::ids::{RunId, ThreadId};
use deerflow_domain::readiness::{NotReady, ReadinessProbe, StoredFile};
use deerflow_runtime::runs::store::{
    EventQuery, NewRunEvent, Order, RunEvent, RunEventStore, StoreError, category,
};
use parking_lot::Mutex;

use super::jsonl_file::Journal;
use crate::db::entity::{micros, moment};
use crate::files::data_lock::{DataLock, LOCK_FILE};
use crate::files::trial_file::{reason, write_trial};

/// Event store over files of JSON lines.
#[derive(Debug, Clone)]
pub struct JsonlRunEventStore {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    directory: PathBuf,
    /// One lock per thread: appends are ordered, and reads never see a partial one.
    threads: Mutex<HashMap<ThreadId, Arc<Mutex<Journal>>>>,
    lock: DataLock,
}

impl Shared {
    /// Fails if the lock file was removed or replaced.
    fn check_lock(&self) -> Result<(), NotReady> {
        let id = self
            .lock
            .id()
            .map_err(|error| reason(StoredFile::Lock, &self.directory, &error))?;
        id.check(StoredFile::Lock, &self.directory.join(LOCK_FILE))
    }
}

/// Probe that writes a trial file to the folder and checks its lock.
#[derive(Debug)]
struct JournalReadiness(Arc<Shared>);

#[async_trait]
impl ReadinessProbe for JournalReadiness {
    fn name(&self) -> &'static str {
        "run_events"
    }

    async fn probe(&self) -> Result<(), NotReady> {
        let shared = Arc::clone(&self.0);
        let written = tokio::task::spawn_blocking(move || {
            write_trial(&shared.directory)
                .map_err(|error| reason(StoredFile::JournalFolder, &shared.directory, &error))?;
            shared.check_lock()
        });
        written.await.unwrap_or(Err(NotReady::WriteFailed))
    }
}

impl JsonlRunEventStore {
    /// Opens the store in `directory`, which is created if missing and must contain no other files.
    /// It is locked like the data directory.
    pub fn open(directory: &Path) -> Result<Self, StoreError> {
        let unusable = |error: std::io::Error| {
            StoreError::NotWritable(format!("{}: {error}", directory.display()))
        };
        std::fs::create_dir_all(directory).map_err(unusable)?;
        let lock = DataLock::acquire(directory).map_err(unusable)?;
        let lock = lock.ok_or_else(|| {
            StoreError::Unavailable(format!("another process uses {}", directory.display()))
        })?;
        Ok(Self {
            shared: Arc::new(Shared {
                directory: directory.to_owned(),
                threads: Mutex::default(),
                lock,
            }),
        })
    }

    /// Returns a readiness probe of the folder.
    pub fn readiness(&self) -> Arc<dyn ReadinessProbe> {
        Arc::new(JournalReadiness(Arc::clone(&self.shared)))
    }

    /// Runs `work` on a thread's file, on a blocking thread. It completes even if the caller is
    /// dropped, so that a file is never half written.
    async fn with_journal<T: Send + 'static>(
        &self,
        thread: &ThreadId,
        work: impl FnOnce(&mut Journal) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let journal = {
            let mut threads = self.shared.threads.lock();
            let journal = threads.entry(thread.clone()).or_insert_with(|| {
                Arc::new(Mutex::new(Journal::new(&self.shared.directory, thread)))
            });
            Arc::clone(journal)
        };
        let shared = Arc::clone(&self.shared);
        let result = tokio::task::spawn_blocking(move || {
            let result = work(&mut journal.lock())?;
            // A write to a folder that was removed, or that another process may use, must not be
            // acknowledged.
            shared
                .check_lock()
                .map_err(|reason| StoreError::Unavailable(reason.to_string()))?;
            Ok(result)
        })
        .await;
        result.map_err(|error| {
            StoreError::Failed(format!("the journal of thread {thread}: {error}"))
        })?
    }

    async fn matching(
        &self,
        thread: &ThreadId,
        owner: &Owner,
        matches: impl Fn(&RunEvent) -> bool + Send + 'static,
    ) -> Result<Vec<RunEvent>, StoreError> {
        let owner = owner.resolve()?;
        let rows = self.with_journal(thread, |journal| journal.read()).await?;
        Ok(rows
            .into_iter()
            .filter(|row| (owner.is_none() || row.event.user_id == owner) && matches(row))
            .collect())
    }
}

#[async_trait]
impl RunEventStore for JsonlRunEventStore {
    async fn append(&self, events: Vec<NewRunEvent>) -> Result<Vec<u64>, StoreError> {
        let mut of_thread: BTreeMap<ThreadId, Vec<(usize, NewRunEvent)>> = BTreeMap::new();
        let mut seqs = vec![0; events.len()];
        for (n, mut event) in events.into_iter().enumerate() {
            event.created_at = moment(micros(event.created_at));
            of_thread
                .entry(event.thread_id.clone())
                .or_default()
                .push((n, event));
        }
        for (thread, batch) in of_thread {
            let (indexes, events): (Vec<usize>, Vec<NewRunEvent>) = batch.into_iter().unzip();
            let first = self
                .with_journal(&thread, move |journal| journal.append(events))
                .await?;
            for (index, seq) in indexes.into_iter().zip(first..) {
                seqs[index] = seq;
            }
        }
        Ok(seqs)
    }

    async fn list(
        &self,
        thread: &ThreadId,
        query: &EventQuery,
        owner: &Owner,
    ) -> Result<Vec<RunEvent>, StoreError> {
        let (limit, order, query) = (query.limit, query.order, query.clone());
        let mut rows = self
            .matching(thread, owner, move |row| {
                query
                    .run_id
                    .as_ref()
                    .is_none_or(|run| row.event.run_id == *run)
                    && query
                        .category
                        .as_ref()
                        .is_none_or(|category| row.event.category == *category)
                    && (query.event_types.is_empty()
                        || query.event_types.contains(&row.event.event_type))
                    && query.after_seq.is_none_or(|seq| row.seq > seq)
                    && query.before_seq.is_none_or(|seq| row.seq < seq)
            })
            .await?;
        match order {
            Order::Oldest => rows.truncate(limit),
            Order::Newest => drop(rows.drain(..rows.len().saturating_sub(limit))),
        }
        Ok(rows)
    }

    async fn count_messages(&self, thread: &ThreadId, owner: &Owner) -> Result<u64, StoreError> {
        Ok(self
            .matching(thread, owner, |row| row.event.category == category::MESSAGE)
            .await?
            .len() as u64)
    }

    async fn delete_run(&self, thread: &ThreadId, run: &RunId) -> Result<(), StoreError> {
        let run = run.clone();
        self.with_journal(thread, move |journal| journal.delete_run(&run))
            .await
    }

    async fn delete_thread(&self, thread: &ThreadId) -> Result<(), StoreError> {
        self.with_journal(thread, Journal::delete).await?;
        let mut threads = self.shared.threads.lock();
        // A task that still uses the file holds the thread's lock, and later tasks must wait for
        // the same one; it is removed by the next delete.
        if threads
            .get(thread)
            .is_some_and(|journal| Arc::strong_count(journal) == 1)
        {
            threads.remove(thread);
        }
        Ok(())
    }
}

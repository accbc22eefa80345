//! Thread index derived from runs and checkpoints.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use serde_json::{Map, Value};

use super::tables::{InMemoryStores, Tables, Thread};
use crate::checkpoint::Checkpointer;
use crate::definition::ThreadStatus;
use crate::threads::{ThreadError, ThreadIndex, ThreadView, pending_interrupts};
use deerflow_core::clock::iso;
use deerflow_core::ids::ThreadId;

#[async_trait]
impl ThreadIndex for InMemoryStores {
    async fn list(&self, user: &str, limit: usize) -> Result<Vec<ThreadView>, ThreadError> {
        let tables = self.0.lock();
        let of_user = tables
            .threads
            .iter()
            .filter(|(_, thread)| thread.is_of(user));
        let mut dated: Vec<_> = of_user
            .filter_map(|(id, thread)| Some((tables.age(id, thread)?, id, thread)))
            .collect();
        dated.sort_by(|((_, a), id_a, _), ((_, b), id_b, _)| b.cmp(a).then_with(|| id_a.cmp(id_b)));
        dated.truncate(limit);
        Ok(dated
            .into_iter()
            .map(|(age, id, thread)| view(id, thread, age))
            .collect())
    }

    async fn get(&self, user: &str, thread: &ThreadId) -> Result<Option<ThreadView>, ThreadError> {
        let view = {
            let tables = self.0.lock();
            let row = tables.threads.get(thread).filter(|row| row.is_of(user));
            row.and_then(|row| Some(view(thread, row, tables.age(thread, row)?)))
        };
        let Some(mut view) = view else {
            return Ok(None);
        };
        view.values = Map::new();
        if let Some(snapshot) = Checkpointer::get(self, thread, None).await? {
            if let Ok(Value::Object(values)) = serde_json::to_value(&snapshot.state) {
                view.values = values;
            }
            view.interrupts = pending_interrupts(&snapshot.meta.next);
        }
        Ok(Some(view))
    }

    async fn status(
        &self,
        user: &str,
        thread: &ThreadId,
    ) -> Result<Option<ThreadStatus>, ThreadError> {
        Ok(self
            .0
            .lock()
            .threads
            .get(thread)
            .filter(|row| row.is_of(user))
            .map(|row| row.status))
    }

    async fn find_or_make(
        &self,
        user: &str,
        thread: &ThreadId,
        at: DateTime<Utc>,
    ) -> Result<ThreadStatus, ThreadError> {
        let mut tables = self.0.lock();
        let new_thread = || Thread {
            user_id: Some(user.to_owned()),
            created_at: Some(at),
            ..Thread::default()
        };
        let row = tables
            .threads
            .entry(thread.clone())
            .or_insert_with(new_thread);
        if row.is_of(user) {
            Ok(row.status)
        } else {
            Err(ThreadError::Taken(thread.clone()))
        }
    }
}

impl Thread {
    fn is_of(&self, user: &str) -> bool {
        self.user_id.as_deref() == Some(user)
    }
}

impl Tables {
    /// Returns the times of a thread's creation and last change, derived from its remaining rows.
    fn age(&self, id: &ThreadId, thread: &Thread) -> Option<(DateTime<Utc>, DateTime<Utc>)> {
        let runs = self.runs.of_thread(id).map(|run| &run.record);
        let moments = runs.flat_map(|run| [run.created_at, run.updated_at]);
        let moments = moments
            .chain(
                thread
                    .checkpoints
                    .values()
                    .map(|checkpoint| checkpoint.meta.created_at),
            )
            .chain(thread.created_at);
        moments.fold(None, |age, at| {
            Some(
                age.map_or((at, at), |(first, last): (DateTime<Utc>, DateTime<Utc>)| {
                    (first.min(at), last.max(at))
                }),
            )
        })
    }
}

fn view(
    id: &ThreadId,
    thread: &Thread,
    (created, updated): (DateTime<Utc>, DateTime<Utc>),
) -> ThreadView {
    ThreadView {
        thread_id: id.clone(),
        status: thread.status,
        created_at: iso(created),
        updated_at: iso(updated),
        metadata: Map::new(),
        values: thread
            .title
            .iter()
            .map(|title| ("title".to_owned(), title.as_str().into()))
            .collect(),
        interrupts: Map::new(),
    }
}

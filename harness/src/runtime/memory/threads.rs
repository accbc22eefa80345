//! Threads as far as runs and checkpoints tell of them.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use serde_json::{Map, Value};

use super::{MemoryStores, Tables, Thread};
use crate::clock::iso;
use crate::ids::ThreadId;
use crate::runtime::checkpoint::Checkpointer;
use crate::runtime::runs::ThreadStatus;
use crate::runtime::threads::{ThreadError, ThreadIndex, ThreadView, open_questions};

#[async_trait]
impl ThreadIndex for MemoryStores {
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
        let found = {
            let tables = self.0.lock();
            let held = tables.threads.get(thread).filter(|held| held.is_of(user));
            held.and_then(|held| Some(view(thread, held, tables.age(thread, held)?)))
        };
        let Some(mut found) = found else {
            return Ok(None);
        };
        found.values = Map::new();
        if let Some(snapshot) = Checkpointer::get(self, thread, None).await? {
            if let Ok(Value::Object(values)) = serde_json::to_value(&snapshot.state) {
                found.values = values;
            }
            found.interrupts = open_questions(&snapshot.meta.next);
        }
        Ok(Some(found))
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
            .filter(|held| held.is_of(user))
            .map(|held| held.status))
    }

    async fn find_or_make(
        &self,
        user: &str,
        thread: &ThreadId,
        at: DateTime<Utc>,
    ) -> Result<ThreadStatus, ThreadError> {
        let mut tables = self.0.lock();
        let made = || Thread {
            user_id: Some(user.to_owned()),
            made_at: Some(at),
            ..Thread::default()
        };
        let held = tables.threads.entry(thread.clone()).or_insert_with(made);
        if held.is_of(user) {
            Ok(held.status)
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
    /// When a thread was made and last changed, by what is left of it.
    fn age(&self, id: &ThreadId, thread: &Thread) -> Option<(DateTime<Utc>, DateTime<Utc>)> {
        let runs = self
            .runs
            .values()
            .map(|run| &run.record)
            .filter(|run| run.thread_id == *id);
        let moments = runs.flat_map(|run| [run.created_at, run.updated_at]);
        let moments = moments
            .chain(
                thread
                    .checkpoints
                    .iter()
                    .map(|checkpoint| checkpoint.meta.created_at),
            )
            .chain(thread.made_at);
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

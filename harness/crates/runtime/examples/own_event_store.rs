//! A journal of run events over a map of vectors, and its contract suite. Run it with `cargo test
//! -p deerflow-runtime --features testkit --example own_event_store`.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use deerflow_core::actor_context::Owner;
use deerflow_core::ids::{RunId, ThreadId};
use deerflow_runtime::runs::store::{
    EventQuery, NewRunEvent, Order, RunEvent, RunEventStore, StoreError, category,
};
use parking_lot::Mutex;

/// Last sequence number and events of each thread.
#[derive(Debug, Default)]
struct MapJournal(Mutex<HashMap<ThreadId, (u64, Vec<RunEvent>)>>);

#[async_trait]
impl RunEventStore for MapJournal {
    async fn append(&self, events: Vec<NewRunEvent>) -> Result<Vec<u64>, StoreError> {
        let mut journals = self.0.lock();
        let append = |event: NewRunEvent| {
            let (last, rows) = journals.entry(event.thread_id.clone()).or_default();
            *last += 1;
            rows.push(RunEvent { seq: *last, event });
            *last
        };
        Ok(events.into_iter().map(append).collect())
    }

    async fn list(
        &self,
        thread: &ThreadId,
        query: &EventQuery,
        owner: &Owner,
    ) -> Result<Vec<RunEvent>, StoreError> {
        let (user, journals) = (owner.resolve()?, self.0.lock());
        let rows = journals.get(thread).map_or(&[][..], |(_, rows)| rows);
        let matches = |row: &&RunEvent| {
            let RunEvent { seq, event } = row;
            (user.is_none() || event.user_id == user)
                && query.run_id.as_ref().is_none_or(|run| event.run_id == *run)
                && query.category.as_ref().is_none_or(|c| event.category == *c)
                && (query.event_types.is_empty() || query.event_types.contains(&event.event_type))
                && query.after_seq.is_none_or(|after| *seq > after)
                && query.before_seq.is_none_or(|before| *seq < before)
        };
        let mut found: Vec<RunEvent> = rows.iter().filter(matches).cloned().collect();
        if query.order == Order::Newest {
            found.drain(..found.len().saturating_sub(query.limit));
        }
        found.truncate(query.limit);
        Ok(found)
    }

    async fn count_messages(&self, thread: &ThreadId, owner: &Owner) -> Result<u64, StoreError> {
        let messages = EventQuery {
            category: Some(category::MESSAGE.to_owned()),
            limit: usize::MAX,
            ..EventQuery::default()
        };
        Ok(self.list(thread, &messages, owner).await?.len() as u64)
    }

    async fn delete_run(&self, thread: &ThreadId, run: &RunId) -> Result<(), StoreError> {
        if let Some((_, rows)) = self.0.lock().get_mut(thread) {
            rows.retain(|row| row.event.run_id != *run);
        }
        Ok(())
    }

    async fn delete_thread(&self, thread: &ThreadId) -> Result<(), StoreError> {
        if let Some((_, rows)) = self.0.lock().get_mut(thread) {
            rows.clear();
        }
        Ok(())
    }
}

fn main() {
    let _journal: Arc<dyn RunEventStore> = Arc::new(MapJournal::default());
}

#[cfg(test)]
mod tests {
    use super::*;
    use deerflow_runtime::in_memory::InMemoryStores;
    use deerflow_runtime::testkit::RunStores;

    async fn open() -> RunStores {
        RunStores {
            events: Arc::new(MapJournal::default()),
            ..InMemoryStores::new().into()
        }
    }

    deerflow_runtime::run_events_suite!([#[tokio::test]] open);
}

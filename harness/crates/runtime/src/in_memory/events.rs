//! The journal of run events.

use async_trait::async_trait;

use super::tables::{InMemoryStores, Thread};
use crate::definition::StoreError;
use crate::ports::{EventQuery, NewRunEvent, Order, RunEvent, RunEventStore, category};
use deerflow_core::actor_context::Owner;
use deerflow_core::ids::{RunId, ThreadId};

#[async_trait]
impl RunEventStore for InMemoryStores {
    async fn append(&self, events: Vec<NewRunEvent>) -> Result<Vec<u64>, StoreError> {
        let mut tables = self.0.lock();
        Ok(events
            .into_iter()
            .map(|event| {
                let thread = tables
                    .threads
                    .entry(event.thread_id.clone())
                    .or_insert_with(|| Thread {
                        user_id: event.user_id.clone(),
                        ..Thread::default()
                    });
                thread.append(vec![event]);
                thread.last_seq
            })
            .collect())
    }

    async fn list(
        &self,
        thread: &ThreadId,
        query: &EventQuery,
        owner: &Owner,
    ) -> Result<Vec<RunEvent>, StoreError> {
        let owner = owner.resolve()?;
        let tables = self.0.lock();
        let Some(thread) = tables.threads.get(thread) else {
            return Ok(Vec::new());
        };
        let matching = thread.events.iter().filter(|row| {
            (owner.is_none() || row.event.user_id == owner)
                && query
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
        });
        Ok(match query.order {
            Order::Oldest => matching.take(query.limit).cloned().collect(),
            Order::Newest => {
                let mut rows: Vec<RunEvent> = matching.rev().take(query.limit).cloned().collect();
                rows.reverse();
                rows
            }
        })
    }

    async fn count_messages(&self, thread: &ThreadId, owner: &Owner) -> Result<u64, StoreError> {
        let owner = owner.resolve()?;
        let tables = self.0.lock();
        let count = tables.threads.get(thread).map_or(0, |thread| {
            let rows = thread
                .events
                .iter()
                .filter(|row| owner.is_none() || row.event.user_id == owner);
            rows.filter(|row| row.event.category == category::MESSAGE)
                .count()
        });
        Ok(count as u64)
    }

    async fn delete_run(&self, thread: &ThreadId, run: &RunId) -> Result<(), StoreError> {
        if let Some(thread) = self.0.lock().threads.get_mut(thread) {
            thread.events.retain(|row| row.event.run_id != *run);
        }
        Ok(())
    }

    async fn delete_thread(&self, thread: &ThreadId) -> Result<(), StoreError> {
        if let Some(thread) = self.0.lock().threads.get_mut(thread) {
            thread.events.clear();
        }
        Ok(())
    }
}

impl Thread {
    pub(super) fn append(&mut self, events: Vec<NewRunEvent>) {
        self.events.reserve(events.len());
        for event in events {
            self.last_seq += 1;
            self.events.push(RunEvent {
                seq: self.last_seq,
                event,
            });
        }
    }
}

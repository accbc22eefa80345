//! Durable logs of streams.

use async_trait::async_trait;

use super::tables::InMemoryStores;
use crate::definition::StoreError;
use crate::stream_bridge::{LogBatch, LogOutline, LogPage, LogRange, StreamLog, StreamLogError};
use deerflow_core::ids::RunId;

#[async_trait]
impl StreamLog for InMemoryStores {
    async fn append(&self, batch: LogBatch) -> Result<(), StreamLogError> {
        let mut tables = self.0.lock();
        let Some(run) = tables.runs.get(&batch.run_id) else {
            return Err(StreamLogError::Gone(batch.run_id));
        };
        let current = run.record.attempt;
        if current > batch.attempt {
            return Err(StreamLogError::Fenced {
                run_id: batch.run_id,
                attempt: batch.attempt,
                current,
            });
        }
        let tail = batch.tail();
        let stream = tables.streams.entry(batch.run_id).or_default();
        for event in batch.events {
            let id = event.id;
            if stream
                .events
                .get(&id.seq)
                .is_some_and(|stored| stored.id.attempt < id.attempt)
            {
                stream.events.split_off(&id.seq);
                stream.end = stream.end.filter(|(after, _)| *after < id.seq);
            }
            stream.events.entry(id.seq).or_insert(event);
        }
        stream.end = stream.end.or(batch.end.map(|kind| (tail, kind)));
        Ok(())
    }

    async fn read(&self, run_id: &RunId, next: u64, most: usize) -> Result<LogPage, StoreError> {
        let tables = self.0.lock();
        let Some(stream) = tables.streams.get(run_id) else {
            return Ok(LogPage::default());
        };
        let from_here = stream.events.range(next..).enumerate().take(most);
        let follow = from_here.take_while(|(nth, (seq, _))| **seq - next == *nth as u64);
        let events: Vec<_> = follow.map(|(_, (_, event))| event.clone()).collect();
        let tail = (next + events.len() as u64).checked_sub(1);
        Ok(LogPage {
            end: stream
                .end
                .filter(|(after, _)| Some(*after) == tail)
                .map(|(_, kind)| kind),
            events,
        })
    }

    async fn outline(&self, run_id: &RunId) -> Result<LogOutline, StoreError> {
        let tables = self.0.lock();
        let mut outline = LogOutline::default();
        if let Some(stream) = tables.streams.get(run_id) {
            outline.end = stream.end;
            stream.events.values().for_each(|event| {
                outline.push(LogRange {
                    first: event.id.seq,
                    last: event.id.seq,
                    attempt: event.id.attempt,
                });
            });
        }
        Ok(outline)
    }

    async fn forget(&self, run_id: &RunId) -> Result<(), StoreError> {
        self.0.lock().streams.remove(run_id);
        Ok(())
    }
}

//! Rows of threads over the in-memory stores of the runtime.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use deerflow_domain::containment::contains;
use deerflow_domain::thread_log::InMemoryThreadLog;
use deerflow_domain::threads::{
    Created, Deleted, LastEnd, NewThread, StoredState, SweptThreads, ThreadContent, ThreadPatch,
    ThreadRecord, ThreadSearch, ThreadStorage, ThreadStore,
};
use harness::ids::{RunId, ThreadId};
use harness::runtime::actor_context::Owner;
use harness::runtime::checkpoint::{CheckpointError, Checkpointer, HistoryQuery};
use harness::runtime::in_memory::InMemoryStores;
use harness::runtime::runs::ThreadStatus;
use harness::runtime::runs::store::{
    CreatedResource, NewRunEvent, RequestStore, RunDeleteStore, RunEventStore, RunListQuery,
    RunQueryStore, StoreError,
};
use parking_lot::Mutex;
use serde_json::{Map, Value, json};

/// Rows of threads next to the runtime's stores.
#[derive(Debug, Clone)]
pub(crate) struct Threads {
    pub(crate) rows: Arc<Mutex<BTreeMap<String, ThreadRecord>>>,
    pub(crate) stores: InMemoryStores,
    pub(crate) positions: Arc<InMemoryThreadLog>,
}

impl Threads {
    fn current(&self, mut row: ThreadRecord) -> ThreadRecord {
        if let Some((status, title)) = self.stores.thread(&row.thread_id) {
            // An external update is newer than the end of the last run.
            row.status = if row.status == ThreadStatus::Idle {
                status
            } else {
                row.status
            };
            row.title = row.title.or(title);
        }
        row
    }

    fn matching(&self, search: &ThreadSearch) -> Vec<ThreadRecord> {
        let rows: Vec<ThreadRecord> = self.rows.lock().values().cloned().collect();
        let mut rows: Vec<ThreadRecord> = rows.into_iter().map(|row| self.current(row)).collect();
        rows.retain(|row| {
            (search.ids.is_empty() || search.ids.contains(&row.thread_id))
                && contains(&row.metadata, &search.metadata)
                && search
                    .assistant
                    .as_ref()
                    .is_none_or(|wanted| row.assistant_id.as_ref() == Some(&wanted.id))
                && search
                    .graph
                    .as_ref()
                    .is_none_or(|graph| row.assistant.as_ref() == Some(graph))
                && search.status.is_none_or(|status| row.status == status)
        });
        rows.sort_by_key(|row| std::cmp::Reverse(row.updated_at));
        if search.pinned_first {
            rows.sort_by_key(|row| row.metadata.get("deerflow_pinned") != Some(&Value::Bool(true)));
        }
        rows
    }
}

fn is_of(row: &ThreadRecord, owner: &Owner) -> bool {
    owner
        .resolve()
        .is_ok_and(|user| user.is_none() || row.user_id == user)
}

#[async_trait]
impl ThreadStore for Threads {
    async fn create(&self, thread: NewThread) -> Result<Created, StoreError> {
        if let Some(key) = &thread.request {
            let made = CreatedResource::Thread(thread.thread_id.clone());
            if let Some(known) = self.stores.keep(key, made, thread.at).await? {
                return Ok(Created::Known(known));
            }
        }
        let known = self.rows.lock().get(thread.thread_id.as_str()).cloned();
        if let Some(row) = known {
            let mine = row.user_id == thread.user_id;
            return Ok(if mine {
                Created::Existing(self.current(row))
            } else {
                Created::Taken
            });
        }
        let row = ThreadRecord {
            thread_id: thread.thread_id.clone(),
            user_id: thread.user_id.clone(),
            assistant: thread.assistant,
            assistant_id: thread.assistant_id,
            title: None,
            status: ThreadStatus::Idle,
            metadata: thread.metadata,
            created_at: thread.at,
            updated_at: thread.at,
            state_updated_at: thread.at,
            ttl: thread.ttl,
        };
        self.rows
            .lock()
            .insert(thread.thread_id.to_string(), row.clone());
        // Adds the thread to the runtime's tables.
        let made = NewRunEvent {
            thread_id: thread.thread_id,
            run_id: RunId::parse("made").expect("an id"),
            user_id: thread.user_id,
            event_type: "thread.made".to_owned(),
            category: "trace".to_owned(),
            content: Value::Null.into(),
            metadata: Map::new(),
            created_at: thread.at,
        };
        self.stores.append(vec![made]).await?;
        Ok(Created::New(row))
    }

    async fn get(
        &self,
        thread: &ThreadId,
        owner: &Owner,
    ) -> Result<Option<ThreadRecord>, StoreError> {
        let row = self
            .rows
            .lock()
            .get(thread.as_str())
            .cloned()
            .filter(|row| is_of(row, owner));
        Ok(row.map(|row| self.current(row)))
    }

    async fn search(
        &self,
        search: &ThreadSearch,
        owner: &Owner,
    ) -> Result<Vec<ThreadRecord>, StoreError> {
        Ok(self
            .matching(search)
            .into_iter()
            .filter(|row| is_of(row, owner))
            .skip(search.offset)
            .take(search.limit)
            .collect())
    }

    async fn count(&self, search: &ThreadSearch, owner: &Owner) -> Result<u64, StoreError> {
        Ok(self
            .matching(search)
            .iter()
            .filter(|row| is_of(row, owner))
            .count() as u64)
    }

    async fn contents(
        &self,
        threads: &[ThreadId],
    ) -> Result<HashMap<ThreadId, ThreadContent>, StoreError> {
        let mut found = HashMap::new();
        for thread in threads {
            let snapshot = Checkpointer::get(&self.stores, thread, None)
                .await
                .map_err(|error| StoreError::Failed(error.to_string()))?;
            let state = snapshot.map(|snapshot| StoredState {
                channels: snapshot
                    .state
                    .channels()
                    .iter()
                    .map(|(name, value)| (name.clone(), value.clone()))
                    .collect(),
                messages: serde_json::value::to_raw_value(snapshot.state.messages()).expect("json"),
                meta: snapshot.meta,
            });
            let runs = RunQueryStore::list(
                &self.stores,
                thread,
                &RunListQuery {
                    limit: 9,
                    ..RunListQuery::default()
                },
                &Owner::None,
            )
            .await?;
            let ended = runs.into_iter().find(|run| run.status.is_terminal());
            let last_end = ended.map(|run| LastEnd {
                status: run.status,
                stop_reason: run.stop_reason(),
                error: run.error,
                error_name: run.error_name,
            });
            found.insert(
                thread.clone(),
                ThreadContent {
                    state,
                    damage: None,
                    last_end,
                },
            );
        }
        Ok(found)
    }

    async fn storage(&self, thread: &ThreadId) -> Result<ThreadStorage, StoreError> {
        let failed = |error: CheckpointError| StoreError::Failed(error.to_string());
        let all = HistoryQuery::default();
        let stored = Checkpointer::list(&self.stores, thread, &all)
            .await
            .map_err(failed)?;
        let mut storage = ThreadStorage::default();
        for snapshot in &stored {
            let metadata = json!(snapshot.meta.metadata).to_string();
            storage.checkpoints.add(metadata.len());
            for (name, value) in snapshot.state.channels().iter() {
                let channel = storage.channels.entry(name.clone()).or_default();
                channel.add(value.to_string().len());
            }
            for task in &snapshot.meta.next {
                storage.pending_tasks.add(json!(task).to_string().len());
            }
        }
        let messages = stored.iter().flat_map(|snapshot| {
            let positions = snapshot.state.log_places().iter();
            positions.zip(snapshot.state.messages())
        });
        for message in messages.collect::<BTreeMap<_, _>>().into_values() {
            let channel = storage.channels.entry("messages".to_owned()).or_default();
            channel.add(message.json().get().len());
        }
        Ok(storage)
    }

    async fn patch(
        &self,
        thread: &ThreadId,
        patch: ThreadPatch,
        owner: &Owner,
        at: DateTime<Utc>,
    ) -> Result<Option<ThreadRecord>, StoreError> {
        let mut rows = self.rows.lock();
        let Some(row) = rows
            .get_mut(thread.as_str())
            .filter(|row| is_of(row, owner))
        else {
            return Ok(None);
        };
        row.metadata = patch.merged(row.metadata.clone())?;
        row.title = patch.title.unwrap_or(row.title.clone());
        row.status = patch.status.unwrap_or(row.status);
        row.ttl = patch.ttl.or(row.ttl);
        if patch.touch {
            row.updated_at = at;
        }
        let row = row.clone();
        drop(rows);
        Ok(Some(self.current(row)))
    }

    async fn delete(&self, thread: &ThreadId, owner: &Owner) -> Result<Deleted, StoreError> {
        match self.get(thread, owner).await? {
            None => Ok(Deleted::NotFound),
            Some(row) if row.status == ThreadStatus::Busy => Ok(Deleted::Busy),
            Some(_) => {
                self.rows.lock().remove(thread.as_str());
                self.positions.remove(thread);
                RunDeleteStore::delete_thread(&self.stores, thread).await?;
                Checkpointer::delete_thread(&self.stores, thread)
                    .await
                    .map_err(|error| StoreError::Failed(error.to_string()))?;
                Ok(Deleted::Removed)
            }
        }
    }

    async fn delete_past_checkpoints(
        &self,
        thread: &ThreadId,
        owner: &Owner,
    ) -> Result<Deleted, StoreError> {
        Ok(if self.get(thread, owner).await?.is_some() {
            Deleted::Removed
        } else {
            Deleted::NotFound
        })
    }

    async fn sweep(&self, at: DateTime<Utc>, most: usize) -> Result<SweptThreads, StoreError> {
        let over: Vec<_> = self
            .rows
            .lock()
            .values()
            .filter(|row| row.expires_at().is_some_and(|end| end <= at))
            .cloned()
            .collect();
        let mut swept = SweptThreads::default();
        let all = RunListQuery {
            limit: usize::MAX,
            ..RunListQuery::default()
        };
        for row in over.into_iter().take(most) {
            let runs =
                RunQueryStore::list(&self.stores, &row.thread_id, &all, &Owner::None).await?;
            if self.delete(&row.thread_id, &Owner::None).await? == Deleted::Removed {
                swept.runs.extend(runs.into_iter().map(|run| run.run_id));
                swept.deleted.push(row);
            }
        }
        Ok(swept)
    }
}

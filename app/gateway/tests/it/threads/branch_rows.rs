//! Branches over the in-memory stores of the runtime.

use async_trait::async_trait;
use deerflow_domain::branches::{BranchStore, CHANNELS_OF_ORIGINAL, NewBranch};
use deerflow_domain::threads::{ThreadPatch, ThreadRecord, ThreadStore};
use harness::runtime::actor_context::Owner;
use harness::runtime::checkpoint::{CheckpointWrite, Checkpointer};
use harness::runtime::runs::store::{RunEventStore, StoreError};
use harness::state::ThreadState;
use serde_json::Value;

use crate::thread_rows::Threads;

#[async_trait]
impl BranchStore for Threads {
    async fn branch(&self, branch: NewBranch) -> Result<Option<ThreadRecord>, StoreError> {
        let (to, at) = (branch.thread.thread_id.clone(), branch.thread.at);
        let mut line = Vec::new();
        let mut next = Some(branch.checkpoint.clone());
        while let Some(id) = next.take() {
            let found = Checkpointer::get(&self.stores, &branch.original, Some(&id)).await;
            let Some(snapshot) = found.expect("readable") else {
                break;
            };
            next = snapshot.meta.parent_id.clone();
            line.push(snapshot);
        }
        if line.is_empty() {
            return Ok(None);
        }
        self.create(branch.thread).await?;
        let mut tail = 0;
        for mut snapshot in line.into_iter().rev() {
            snapshot.meta.thread_id = to.clone();
            let mut channels = snapshot.state.channels().clone();
            if snapshot.meta.checkpoint_id == branch.checkpoint {
                snapshot.meta.next.clear();
                snapshot.meta.machine = None;
                snapshot.meta.metadata.extend(branch.metadata.clone());
                channels.retain(|name, _| !CHANNELS_OF_ORIGINAL.contains(&name.as_str()));
                channels.extend(
                    branch
                        .title
                        .clone()
                        .map(|title| ("title".to_owned(), Value::from(title))),
                );
            }
            // The log of the copy repeats the messages of each checkpoint.
            let messages = (1..).zip(snapshot.state.messages().iter().cloned());
            let mut state = ThreadState::restored(messages, channels);
            state.forget_log_places();
            let write = CheckpointWrite::plan(snapshot.meta, &mut state, &mut tail);
            self.stores.put(write).await.expect("written");
        }
        self.stores.append(branch.events).await?;
        let patch = ThreadPatch {
            title: Some(branch.title),
            ..ThreadPatch::default()
        };
        self.patch(&to, patch, &Owner::None, at).await
    }
}

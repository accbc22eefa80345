//! Tests of what the commits of a run contain.

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::FutureExt;
use parking_lot::Mutex;
use serde_json::{Map, Value};

use crate::agent::{
    Agent, AgentEvent, AgentInput, AgentOutcome, AgentResolver, AgentStream, AssistantInfo,
    EventReceiver, RunContext, StopKind, UnknownAssistant,
};
use crate::definition::{RunStatus, StoreError};
use crate::in_memory::runtime_in_memory;
use crate::ports::{CommitError, RunCommit, RunCommitStore, RuntimePorts};
use crate::runs::RunWaits;
use crate::test_support::*;
use crate::testkit::memory_update;

/// Store that retains the commits that it stored.
#[derive(Debug)]
struct RecordingStore {
    store: Arc<dyn RunCommitStore>,
    rejects_memory_updates: bool,
    commits: Mutex<Vec<Arc<RunCommit>>>,
}

#[async_trait]
impl RunCommitStore for RecordingStore {
    async fn commit(&self, commit: Arc<RunCommit>) -> Result<(), CommitError> {
        if self.rejects_memory_updates && commit.memory_update.is_some() {
            return Err(StoreError::Failed("the table is damaged".to_owned()).into());
        }
        self.store.commit(commit.clone()).await?;
        self.commits.lock().push(commit);
        Ok(())
    }
}

/// Agent that registers an update of the user's memory and ends.
#[derive(Debug)]
struct Remembering;

impl Agent for Remembering {
    fn stream(&self, _input: AgentInput, ctx: RunContext, events: EventReceiver) -> AgentStream {
        let driver = async move {
            ctx.sink.emit(AgentEvent::MemoryUpdate(memory_update(1)));
            Ok(AgentOutcome {
                kind: StopKind::Completed,
                stop_reason: None,
            })
        };
        AgentStream::new(events, driver.boxed())
    }

    fn nodes(&self) -> Vec<String> {
        vec!["model".to_owned()]
    }
}

#[async_trait]
impl AgentResolver for Remembering {
    async fn resolve(
        &self,
        _assistant: &str,
        _options: &Map<String, Value>,
    ) -> Result<Arc<dyn Agent>, UnknownAssistant> {
        Ok(Arc::new(Self))
    }

    async fn list(&self) -> Vec<AssistantInfo> {
        vec![]
    }
}

/// Runs the agent, and returns the commits that were stored.
async fn stored_commits(rejects_memory_updates: bool) -> Vec<Arc<RunCommit>> {
    let ports = runtime_in_memory(Arc::new(Remembering)).unwrap();
    let recorder = Arc::new(RecordingStore {
        store: ports.commit.clone(),
        rejects_memory_updates,
        commits: Mutex::default(),
    });
    let commit: Arc<dyn RunCommitStore> = recorder.clone();
    let process = over(RuntimePorts { commit, ..ports });
    let waits = RunWaits::new(process.runtime());
    let (_run, outcome) = as_user(waits.create(spec("any"))).await.unwrap();
    outcome.await;
    std::mem::take(&mut *recorder.commits.lock())
}

#[tokio::test(start_paused = true)]
async fn memory_update_is_committed_with_the_end_of_the_run() {
    let commits = stored_commits(false).await;
    let updates: Vec<_> = commits
        .iter()
        .filter_map(|commit| commit.memory_update.clone().zip(commit.end.as_ref()))
        .map(|(update, _)| update)
        .collect();
    assert_eq!(updates, [memory_update(1)], "{commits:?}");
}

#[tokio::test(start_paused = true)]
async fn end_is_stored_if_its_memory_update_is_rejected() {
    let commits = stored_commits(true).await;
    let ends: Vec<_> = commits
        .iter()
        .filter_map(|commit| commit.end.as_ref())
        .map(|end| end.status)
        .collect();
    assert_eq!(ends, [RunStatus::Success], "{commits:?}");
}

//! Tests of what the commits of a run contain.

use std::sync::Arc;

use async_trait::async_trait;
use chrono::DateTime;
use futures_util::FutureExt;
use parking_lot::Mutex;
use serde_json::{Map, Value};

use crate::agent::{
    Agent, AgentEvent, AgentInput, AgentOutcome, AgentResolver, AgentStream, AssistantInfo,
    EventReceiver, RunContext, StopKind, UnknownAssistant,
};
use crate::in_memory::runtime_in_memory;
use crate::ports::{CommitError, RunCommit, RunCommitStore, RuntimePorts};
use crate::runs::RunWaits;
use crate::test_support::*;
use crate::user_memory::{MemoryScope, MemoryUpdate};

/// Store that retains the commits that were sent to it.
#[derive(Debug)]
struct RecordingStore {
    store: Arc<dyn RunCommitStore>,
    commits: Mutex<Vec<Arc<RunCommit>>>,
}

#[async_trait]
impl RunCommitStore for RecordingStore {
    async fn commit(&self, commit: Arc<RunCommit>) -> Result<(), CommitError> {
        self.commits.lock().push(commit.clone());
        self.store.commit(commit).await
    }
}

/// Agent that registers an update of the user's memory and ends.
#[derive(Debug)]
struct Remembering;

fn memory_update() -> Box<MemoryUpdate> {
    Box::new(MemoryUpdate {
        scope: MemoryScope::of_user("ann"),
        due: DateTime::UNIX_EPOCH,
    })
}

impl Agent for Remembering {
    fn stream(&self, _input: AgentInput, ctx: RunContext, events: EventReceiver) -> AgentStream {
        let driver = async move {
            ctx.sink.emit(AgentEvent::MemoryUpdate(memory_update()));
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

#[tokio::test(start_paused = true)]
async fn memory_update_is_committed_with_the_end_of_the_run() {
    let ports = runtime_in_memory(Arc::new(Remembering)).unwrap();
    let recorder = Arc::new(RecordingStore {
        store: ports.commit.clone(),
        commits: Mutex::default(),
    });
    let commit: Arc<dyn RunCommitStore> = recorder.clone();
    let process = over(RuntimePorts { commit, ..ports });
    let waits = RunWaits::new(process.runtime());
    as_user(waits.create(spec("any"))).await.unwrap();
    let commits = recorder.commits.lock();
    let updates: Vec<_> = commits
        .iter()
        .filter_map(|commit| commit.memory_update.clone().zip(commit.end.as_ref()))
        .map(|(update, _)| update)
        .collect();
    assert_eq!(updates, [memory_update()], "{commits:?}");
}

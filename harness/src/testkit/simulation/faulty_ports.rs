//! Ports of the stores over the faulty connection of one node.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use chrono::{DateTime, Utc};

use super::faulty_stores::FaultyStores;
use super::world::World;
use crate::ids::{NodeId, RunId, ThreadId};
use crate::runtime::actor_context::Owner;
use crate::runtime::in_memory::InMemoryStores;
use crate::runtime::runs::store::{
    AdmitError, Admitted, CallProgress, Claimed, CommitError, EventQuery, Lease, NewRun,
    NewRunEvent, NodeRecord, NodeStore, OwnedRun, RunCommit, RunCommitStore, RunCreateStore,
    RunDeleteStore, RunEvent, RunEventStore, RunListQuery, RunQueryStore, StoreError,
    StoreLockStatus, StoredRunRequest, ToolLedger, UnfinishedRun,
};
use crate::runtime::runs::{CancelAction, RunRecord, UserRunLimits};

/// Commits, and checks that the store was right to accept the commit: a superseded attempt must not
/// write, and a run ends once.
async fn checked_commit(
    stores: Arc<InMemoryStores>,
    world: Arc<World>,
    commit: Arc<RunCommit>,
) -> Result<(), CommitError> {
    let before = RunQueryStore::get(&*stores, &commit.run_id, &Owner::None).await?;
    let (run_id, attempt, end) = (
        commit.run_id.clone(),
        commit.attempt,
        commit.end.as_ref().map(|end| end.status),
    );
    stores.commit(commit).await?;
    if let Some(before) = before {
        if before.attempt != attempt {
            world.violation(format_args!(
                "attempt {attempt} wrote run {run_id}, which was at {}",
                before.attempt
            ));
        }
        if let Some(end) = end.filter(|_| !before.status.is_terminal()) {
            world
                .observations
                .lock()
                .ends
                .entry(run_id)
                .or_default()
                .push(end);
        }
    }
    Ok(())
}

fn describe(commit: &RunCommit) -> String {
    let RunCommit {
        run_id,
        attempt,
        batch,
        advance,
        events,
        checkpoints,
        calls,
        end,
        ..
    } = commit;
    let (events, checkpoints, calls) = (events.len(), checkpoints.len(), calls.len());
    let advance = advance.map_or("-", |status| status.as_str());
    let end = end.as_ref().map_or("-", |end| end.status.as_str());
    format!(
        "{run_id}/{attempt}#{batch} to {advance}, {events} events, {checkpoints} checkpoints, {calls} calls, end {end}"
    )
}

#[async_trait]
impl RunCommitStore for FaultyStores {
    async fn commit(&self, commit: Arc<RunCommit>) -> Result<(), CommitError> {
        let details = describe(&commit);
        self.write(
            "commit",
            details,
            checked_commit(self.stores.clone(), self.world.clone(), commit),
        )
        .await
    }
}

#[async_trait]
impl RunCreateStore for FaultyStores {
    async fn admit(&self, run: NewRun) -> Result<Admitted, AdmitError> {
        let stores = self.stores.clone();
        let details = format!("{} {}", run.run_id, run.request().multitask.as_str());
        self.write("admit", details, async move { stores.admit(run).await })
            .await
    }

    async fn claim(
        &self,
        node: &NodeId,
        now: DateTime<Utc>,
        limits: UserRunLimits,
    ) -> Result<Option<Claimed>, StoreError> {
        if self.stores.standing(None, &Owner::None).await?.is_empty() {
            return self.read("claim", async { Ok(None) }).await;
        }
        let (stores, world, name, node) = (
            self.stores.clone(),
            self.world.clone(),
            self.name.clone(),
            node.clone(),
        );
        let work = async move {
            let claimed = stores.claim(&node, now, limits).await?;
            if let Some(claimed) = &claimed {
                world.log_event(
                    name,
                    format_args!("claims {}/{}", claimed.run.run_id, claimed.run.attempt),
                );
            }
            Ok(claimed)
        };
        self.write("claim", String::new(), work).await
    }

    async fn take_over(
        &self,
        node: &NodeId,
        now: DateTime<Utc>,
    ) -> Result<Option<Claimed>, StoreError> {
        let (stores, world, name, node) = (
            self.stores.clone(),
            self.world.clone(),
            self.name.clone(),
            node.clone(),
        );
        let work = async move {
            let taken = stores.take_over(&node, now).await?;
            if let Some(taken) = &taken {
                world.observations.lock().counts.attempts += 1;
                world.log_event(
                    name,
                    format_args!("takes {}/{} over", taken.run.run_id, taken.run.attempt),
                );
            }
            Ok(taken)
        };
        self.write("take over", String::new(), work).await
    }

    async fn next_due(&self, now: DateTime<Utc>) -> Result<Option<DateTime<Utc>>, StoreError> {
        self.read("next due", self.stores.next_due(now)).await
    }

    async fn request_cancel(
        &self,
        run: &RunId,
        action: CancelAction,
        at: DateTime<Utc>,
    ) -> Result<Option<RunRecord>, StoreError> {
        let (stores, run) = (self.stores.clone(), run.clone());
        let details = format!("{run} {action:?}");
        self.write("request cancel", details, async move {
            stores.request_cancel(&run, action, at).await
        })
        .await
    }
}

#[async_trait]
impl RunQueryStore for FaultyStores {
    async fn get(&self, run: &RunId, owner: &Owner) -> Result<Option<RunRecord>, StoreError> {
        self.read("get", RunQueryStore::get(&*self.stores, run, owner))
            .await
    }

    async fn list(
        &self,
        thread: &ThreadId,
        query: &RunListQuery,
        owner: &Owner,
    ) -> Result<Vec<RunRecord>, StoreError> {
        self.read(
            "list",
            RunQueryStore::list(&*self.stores, thread, query, owner),
        )
        .await
    }

    async fn active(&self, thread: &ThreadId) -> Result<Option<RunRecord>, StoreError> {
        self.read("active", self.stores.active(thread)).await
    }

    async fn kept_values(&self, run: &RunId) -> Result<Option<Bytes>, StoreError> {
        self.read("kept values", self.stores.kept_values(run)).await
    }

    async fn stored_request(&self, run: &RunId) -> Result<Option<StoredRunRequest>, StoreError> {
        let request = self.stores.stored_request(run);
        self.read("stored request", request).await
    }

    async fn standing(
        &self,
        thread: Option<&ThreadId>,
        owner: &Owner,
    ) -> Result<Vec<UnfinishedRun>, StoreError> {
        self.read("standing", self.stores.standing(thread, owner))
            .await
    }
}

#[async_trait]
impl RunDeleteStore for FaultyStores {
    async fn delete(&self, run: &RunId) -> Result<bool, StoreError> {
        self.read("delete", self.stores.delete(run)).await
    }

    async fn delete_thread(&self, thread: &ThreadId) -> Result<(), StoreError> {
        self.read(
            "delete thread",
            RunDeleteStore::delete_thread(&*self.stores, thread),
        )
        .await
    }
}

#[async_trait]
impl ToolLedger for FaultyStores {
    async fn progress(&self, run: &RunId, key: &str) -> Result<Option<CallProgress>, StoreError> {
        self.read("progress", self.stores.progress(run, key)).await
    }
}

#[async_trait]
impl NodeStore for FaultyStores {
    async fn register(&self, node: &NodeId, ttl: Duration) -> Result<Lease, StoreError> {
        let (stores, node) = (self.stores.clone(), node.clone());
        self.write("register", format!("{node}"), async move {
            stores.register(&node, ttl).await
        })
        .await
    }

    async fn renew(&self, node: &NodeId, ttl: Duration) -> Result<bool, StoreError> {
        let (stores, node) = (self.stores.clone(), node.clone());
        self.write("renew", String::new(), async move {
            stores.renew(&node, ttl).await
        })
        .await
    }

    async fn leave(&self, node: &NodeId) -> Result<(), StoreError> {
        let (stores, node) = (self.stores.clone(), node.clone());
        self.write("leave", format!("{node}"), async move {
            stores.leave(&node).await
        })
        .await
    }

    async fn hold(&self) -> Result<StoreLockStatus, StoreError> {
        self.read("hold", self.stores.hold()).await
    }

    async fn owned(&self, node: &NodeId) -> Result<Vec<OwnedRun>, StoreError> {
        self.read("owned", self.stores.owned(node)).await
    }

    async fn list(&self) -> Result<Vec<NodeRecord>, StoreError> {
        self.read("nodes", NodeStore::list(&*self.stores)).await
    }
}

#[async_trait]
impl RunEventStore for FaultyStores {
    async fn append(&self, events: Vec<NewRunEvent>) -> Result<Vec<u64>, StoreError> {
        self.read("append", self.stores.append(events)).await
    }

    async fn list(
        &self,
        thread: &ThreadId,
        query: &EventQuery,
        owner: &Owner,
    ) -> Result<Vec<RunEvent>, StoreError> {
        self.read(
            "events",
            RunEventStore::list(&*self.stores, thread, query, owner),
        )
        .await
    }

    async fn count_messages(&self, thread: &ThreadId, owner: &Owner) -> Result<u64, StoreError> {
        self.read("count messages", self.stores.count_messages(thread, owner))
            .await
    }

    async fn delete_run(&self, thread: &ThreadId, run: &RunId) -> Result<(), StoreError> {
        self.read(
            "delete events",
            RunEventStore::delete_run(&*self.stores, thread, run),
        )
        .await
    }

    async fn delete_thread(&self, thread: &ThreadId) -> Result<(), StoreError> {
        self.read(
            "delete a thread's events",
            RunEventStore::delete_thread(&*self.stores, thread),
        )
        .await
    }
}

//! Tests of changes that other processes make to the runs and the lease of this process.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::definition::StoreError;
use crate::in_memory::InMemoryStores;
use crate::ports::{Lease, NodeRecord, NodeStore, OwnedRun, StoreLockStatus};
use crate::runs::*;
use crate::test_support::*;
use crate::testkit::node;
use deerflow_core::actor_context::Owner;
use deerflow_core::ids::NodeId;

/// Another process over the same stores. It never registers, so it owns and claims no runs.
fn unregistered_process(process: &RunsFacade) -> RunsFacade {
    over(process.runtime().ports().clone())
}

#[tokio::test(start_paused = true)]
async fn remote_cancel_is_applied_at_once() {
    as_user(async {
        let process = facade();
        lifecycle(&process).recover().await.unwrap();
        let run = process.create_background(spec("hang")).await.unwrap();
        wait_for_tokens(&process, &run.run_id).await;
        let started = Instant::now();
        let ended = unregistered_process(&process)
            .cancel(None, &run.run_id, CancelAction::Interrupt, true)
            .await
            .unwrap();
        assert_eq!(ended.status, RunStatus::Interrupted);
        assert!(
            started.elapsed() < Duration::from_millis(200),
            "{:?}",
            started.elapsed()
        );
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn released_run_starts_at_once_elsewhere() {
    as_user(async {
        let leaving = facade();
        let run = leaving.create_background(spec("finish")).await.unwrap();
        lifecycle(&leaving).release_all();
        let staying = unregistered_process(&leaving);
        lifecycle(&staying).recover().await.unwrap();
        let started = Instant::now();
        staying.join_wait(None, &run.run_id).await.unwrap();
        assert!(
            started.elapsed() < Duration::from_millis(500),
            "{:?}",
            started.elapsed()
        );
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn taken_over_run_stops_here_at_next_sync() {
    as_user(async {
        let process = facade();
        lifecycle(&process).recover().await.unwrap();
        let run = process.create_background(spec("hang")).await.unwrap();
        wait_for_tokens(&process, &run.run_id).await;
        let ports = process.runtime().ports();
        // Taken over by a process to which this one appears dead.
        ports
            .nodes
            .register(&node("other"), Duration::from_secs(600))
            .await
            .unwrap();
        let taken = ports
            .create
            .take_over(&node("other"), ports.clock.now())
            .await
            .unwrap()
            .unwrap();
        assert_eq!(taken.run.run_id, run.run_id);
        let lost = Instant::now();
        while lifecycle(&process).live_runs() > 0 {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        assert!(
            lost.elapsed() < Duration::from_secs(12),
            "{:?}",
            lost.elapsed()
        );
        let stored = ports
            .query
            .get(&run.run_id, &Owner::None)
            .await
            .unwrap()
            .unwrap();
        assert_eq!(
            (stored.status, stored.attempt),
            (RunStatus::Starting, 2),
            "no more writes"
        );
    })
    .await;
}

/// In-memory stores whose lock another process can take, and that can fail or not respond.
#[derive(Debug, Default)]
struct ContestedStores {
    stores: InMemoryStores,
    /// Results of lock checks, from the last to the first.
    holds: Mutex<Vec<StoreLockStatus>>,
    /// Number of registrations and renewals that fail.
    refusals: AtomicU32,
    /// If set, reads of the owned runs do not respond.
    silent: AtomicBool,
}

impl ContestedStores {
    fn over(stores: InMemoryStores) -> (Arc<Self>, RunsFacade) {
        let ports = Arc::new(stores.clone());
        let nodes = Arc::new(Self {
            stores,
            ..Self::default()
        });
        let process = over(RuntimePorts {
            checkpointer: ports.clone(),
            create: ports.clone(),
            commit: ports.clone(),
            query: ports.clone(),
            delete: ports.clone(),
            ledger: ports.clone(),
            nodes: nodes.clone(),
            events: ports,
            ..facade().runtime().ports().clone()
        });
        (nodes, process)
    }

    fn answer(&self) -> Result<(), StoreError> {
        let refuses = self
            .refusals
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |remaining| {
                remaining.checked_sub(1)
            })
            .is_ok();
        if refuses {
            Err(StoreError::Unavailable("away".to_owned()))
        } else {
            Ok(())
        }
    }
}

#[async_trait]
impl NodeStore for ContestedStores {
    async fn register(&self, node: &NodeId, ttl: Duration) -> Result<Lease, StoreError> {
        self.answer()?;
        self.stores.register(node, ttl).await
    }
    async fn renew(&self, node: &NodeId, ttl: Duration) -> Result<bool, StoreError> {
        self.answer()?;
        self.stores.renew(node, ttl).await
    }
    async fn leave(&self, node: &NodeId) -> Result<(), StoreError> {
        self.stores.leave(node).await
    }
    async fn owned(&self, node: &NodeId) -> Result<Vec<OwnedRun>, StoreError> {
        if self.silent.load(Ordering::Relaxed) {
            std::future::pending::<()>().await;
        }
        self.stores.owned(node).await
    }
    async fn hold(&self) -> Result<StoreLockStatus, StoreError> {
        Ok(self.holds.lock().pop().unwrap_or(StoreLockStatus::Kept))
    }
    async fn list(&self) -> Result<Vec<NodeRecord>, StoreError> {
        self.stores.list().await
    }
}

async fn hanging(process: &RunsFacade) -> RunRecord {
    lifecycle(process).recover().await.unwrap();
    let run = process.create_background(spec("hang")).await.unwrap();
    wait_for_tokens(process, &run.run_id).await;
    run
}

async fn until(process: &RunsFacade, is_so: impl Fn(&RunsFacade) -> bool) {
    while !is_so(process) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn lost_store_lock_stops_runs_and_admission() {
    as_user(async {
        let (nodes, process) = ContestedStores::over(InMemoryStores::new());
        let run = hanging(&process).await;
        *nodes.holds.lock() = vec![
            StoreLockStatus::Retaken,
            StoreLockStatus::Retaken,
            StoreLockStatus::Lost,
            StoreLockStatus::Lost,
        ];
        until(&process, |process| lifecycle(process).live_runs() == 0).await;
        assert!(lifecycle(&process).is_displaced());
        let refused = process.create_background(spec("finish")).await;
        assert!(
            matches!(refused, Err(RunError::Store(StoreError::Unavailable(_)))),
            "{refused:?}"
        );
        let again = process
            .runtime()
            .ports()
            .query
            .get(&run.run_id, &Owner::None);
        assert_eq!(again.await.unwrap().unwrap().attempt, 1, "no more writes");
        // The former node id is no longer registered, so the run resumes here under the next
        // attempt.
        until(&process, |process| lifecycle(process).live_runs() > 0).await;
        assert!(!lifecycle(&process).is_displaced());
        assert_eq!(
            process
                .runtime()
                .ports()
                .query
                .get(&run.run_id, &Owner::None)
                .await
                .unwrap()
                .unwrap()
                .attempt,
            2
        );
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn regained_store_lock_retries_registration() {
    as_user(async {
        let (nodes, process) = ContestedStores::over(InMemoryStores::new());
        let run = hanging(&process).await;
        // The lock check reports once that the lock was taken again; the store is unavailable at
        // that time.
        *nodes.holds.lock() = vec![StoreLockStatus::Retaken, StoreLockStatus::Lost];
        nodes.refusals.store(5, Ordering::Relaxed);
        until(&process, |process| lifecycle(process).is_displaced()).await;
        until(&process, |process| lifecycle(process).live_runs() > 0).await;
        assert_eq!(
            process
                .runtime()
                .ports()
                .query
                .get(&run.run_id, &Owner::None)
                .await
                .unwrap()
                .unwrap()
                .attempt,
            2
        );
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn retaken_store_lock_renews_lease_until_confirmed() {
    as_user(async {
        let (nodes, process) = ContestedStores::over(InMemoryStores::new());
        let run = hanging(&process).await;
        // Another process held the lock in the meantime and excluded all others.
        nodes
            .stores
            .register(&node("other"), Duration::from_secs(60))
            .await
            .unwrap();
        nodes.stores.leave(&node("other")).await.unwrap();
        nodes.refusals.store(3, Ordering::Relaxed);
        *nodes.holds.lock() = vec![StoreLockStatus::Retaken];
        let again = async {
            while process
                .runtime()
                .ports()
                .query
                .get(&run.run_id, &Owner::None)
                .await
                .unwrap()
                .unwrap()
                .attempt
                < 2
            {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), again)
            .await
            .expect("the lock is taken again");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn sync_timeout_stops_no_run_while_lease_is_valid() {
    as_user(async {
        let (nodes, process) = ContestedStores::over(InMemoryStores::shared());
        let run = hanging(&process).await;
        nodes.silent.store(true, Ordering::Relaxed);
        tokio::time::sleep(Duration::from_secs(120)).await;
        assert!(lifecycle(&process).lease().unwrap().holds());
        assert_eq!(
            process
                .runtime()
                .ports()
                .query
                .get(&run.run_id, &Owner::None)
                .await
                .unwrap()
                .unwrap()
                .attempt,
            1
        );
        assert_eq!(lifecycle(&process).live_runs(), 1);
    })
    .await;
}

//! What becomes of runs here when something was written down for them elsewhere.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::super::tests::{as_user, facade, over, spec, wait_for_tokens};
use super::super::*;
use crate::ids::NodeId;
use crate::runtime::actor_context::Owner;
use crate::runtime::memory::MemoryStores;
use crate::runtime::runs::store::{Hold, Lease, NodeRecord, NodeStore, OwnedRun, StoreError};
use crate::testkit::node;

/// Another process over the same stores that never joined: it owns nothing and takes nothing.
fn beside(process: &RunsFacade) -> RunsFacade {
    over(process.parts().clone())
}

#[tokio::test(start_paused = true)]
async fn a_cancel_that_another_process_wrote_down_is_heard_at_once() {
    as_user(async {
        let process = facade();
        process.recover().await.unwrap();
        let run = process.create_background(spec("hang")).await.unwrap();
        wait_for_tokens(&process, &run.run_id).await;
        let asked = Instant::now();
        let ended = beside(&process).cancel(None, &run.run_id, CancelAction::Interrupt, true).await.unwrap();
        assert_eq!(ended.status, RunStatus::Interrupted);
        assert!(asked.elapsed() < Duration::from_millis(200), "{:?}", asked.elapsed());
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_run_that_another_process_gave_back_begins_at_once() {
    as_user(async {
        let leaving = facade();
        let run = leaving.create_background(spec("finish")).await.unwrap();
        leaving.hand_over_all();
        let staying = beside(&leaving);
        staying.recover().await.unwrap();
        let asked = Instant::now();
        staying.join_wait(None, &run.run_id).await.unwrap();
        assert!(asked.elapsed() < Duration::from_millis(500), "{:?}", asked.elapsed());
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_run_that_another_process_took_stops_here_at_the_next_look() {
    as_user(async {
        let process = facade();
        process.recover().await.unwrap();
        let run = process.create_background(spec("hang")).await.unwrap();
        wait_for_tokens(&process, &run.run_id).await;
        let parts = process.parts();
        // Taken by a process that was told that this one is gone.
        parts.nodes.register(&node("other"), Duration::from_secs(600)).await.unwrap();
        let taken = parts.create.take_over(&node("other"), parts.clock.now()).await.unwrap().unwrap();
        assert_eq!(taken.run.run_id, run.run_id);
        let lost = Instant::now();
        while process.live_runs() > 0 {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        assert!(lost.elapsed() < Duration::from_secs(12), "{:?}", lost.elapsed());
        let stored = parts.query.get(&run.run_id, &Owner::None).await.unwrap().unwrap();
        assert_eq!((stored.status, stored.attempt), (RunStatus::Starting, 2), "nothing more was written");
    })
    .await;
}

/// Memory stores whose place somebody else can take.
#[derive(Debug)]
struct Contested {
    stores: MemoryStores,
    holds: Mutex<Vec<Hold>>,
}

#[async_trait]
impl NodeStore for Contested {
    async fn register(&self, node: &NodeId, ttl: Duration) -> Result<Lease, StoreError> {
        self.stores.register(node, ttl).await
    }
    async fn renew(&self, node: &NodeId, ttl: Duration) -> Result<bool, StoreError> {
        self.stores.renew(node, ttl).await
    }
    async fn leave(&self, node: &NodeId) -> Result<(), StoreError> {
        self.stores.leave(node).await
    }
    async fn owned(&self, node: &NodeId) -> Result<Vec<OwnedRun>, StoreError> {
        self.stores.owned(node).await
    }
    async fn hold(&self) -> Result<Hold, StoreError> {
        Ok(self.holds.lock().pop().unwrap_or(Hold::Kept))
    }
    async fn list(&self) -> Result<Vec<NodeRecord>, StoreError> {
        self.stores.list().await
    }
}

#[tokio::test(start_paused = true)]
async fn a_process_whose_store_is_taken_stops_its_runs_and_admits_none_until_it_has_it_back() {
    as_user(async {
        let stores = MemoryStores::new();
        let ports = Arc::new(stores.clone());
        let nodes = Arc::new(Contested { stores, holds: Mutex::default() });
        let process = over(RuntimeParts {
            checkpointer: ports.clone(),
            create: ports.clone(),
            commit: ports.clone(),
            query: ports.clone(),
            delete: ports.clone(),
            ledger: ports.clone(),
            nodes: nodes.clone(),
            events: ports,
            ..facade().parts().clone()
        });
        process.recover().await.unwrap();
        let run = process.create_background(spec("hang")).await.unwrap();
        wait_for_tokens(&process, &run.run_id).await;
        // From the last to the first.
        *nodes.holds.lock() = vec![Hold::Retaken, Hold::Retaken, Hold::Lost, Hold::Lost];
        while process.live_runs() > 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let refused = process.create_background(spec("finish")).await;
        assert!(matches!(refused, Err(RunError::Store(StoreError::Unavailable(_)))), "{refused:?}");
        let again = process.parts().query.get(&run.run_id, &Owner::None);
        assert_eq!(again.await.unwrap().unwrap().attempt, 1, "nothing more was written");
        // Its former self is gone, so the run goes on here under the next attempt.
        while process.live_runs() == 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert_eq!(process.parts().query.get(&run.run_id, &Owner::None).await.unwrap().unwrap().attempt, 2);
    })
    .await;
}

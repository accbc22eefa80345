//! What becomes of runs here when something was written down for them elsewhere.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
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
        let ended = beside(&process)
            .cancel(None, &run.run_id, CancelAction::Interrupt, true)
            .await
            .unwrap();
        assert_eq!(ended.status, RunStatus::Interrupted);
        assert!(
            asked.elapsed() < Duration::from_millis(200),
            "{:?}",
            asked.elapsed()
        );
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
        assert!(
            asked.elapsed() < Duration::from_millis(500),
            "{:?}",
            asked.elapsed()
        );
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
        parts
            .nodes
            .register(&node("other"), Duration::from_secs(600))
            .await
            .unwrap();
        let taken = parts
            .create
            .take_over(&node("other"), parts.clock.now())
            .await
            .unwrap()
            .unwrap();
        assert_eq!(taken.run.run_id, run.run_id);
        let lost = Instant::now();
        while process.live_runs() > 0 {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        assert!(
            lost.elapsed() < Duration::from_secs(12),
            "{:?}",
            lost.elapsed()
        );
        let stored = parts
            .query
            .get(&run.run_id, &Owner::None)
            .await
            .unwrap()
            .unwrap();
        assert_eq!(
            (stored.status, stored.attempt),
            (RunStatus::Starting, 2),
            "nothing more was written"
        );
    })
    .await;
}

/// Memory stores whose place somebody else can take, and that refuse or keep silent.
#[derive(Debug, Default)]
struct Contested {
    stores: MemoryStores,
    /// What is said of the place, from the last to the first.
    holds: Mutex<Vec<Hold>>,
    /// How many registrations and renewals fail.
    refusals: AtomicU32,
    /// Whether what it owns is told to nobody.
    silent: AtomicBool,
}

impl Contested {
    fn over(stores: MemoryStores) -> (Arc<Self>, RunsFacade) {
        let ports = Arc::new(stores.clone());
        let nodes = Arc::new(Self {
            stores,
            ..Self::default()
        });
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
        (nodes, process)
    }

    fn answer(&self) -> Result<(), StoreError> {
        let refuses = self
            .refusals
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                left.checked_sub(1)
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
impl NodeStore for Contested {
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
    async fn hold(&self) -> Result<Hold, StoreError> {
        Ok(self.holds.lock().pop().unwrap_or(Hold::Kept))
    }
    async fn list(&self) -> Result<Vec<NodeRecord>, StoreError> {
        self.stores.list().await
    }
}

async fn hanging(process: &RunsFacade) -> RunRecord {
    process.recover().await.unwrap();
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
async fn a_process_whose_store_is_taken_stops_its_runs_and_admits_none_until_it_has_it_back() {
    as_user(async {
        let (nodes, process) = Contested::over(MemoryStores::new());
        let run = hanging(&process).await;
        *nodes.holds.lock() = vec![Hold::Retaken, Hold::Retaken, Hold::Lost, Hold::Lost];
        until(&process, |process| process.live_runs() == 0).await;
        assert!(process.is_displaced());
        let refused = process.create_background(spec("finish")).await;
        assert!(
            matches!(refused, Err(RunError::Store(StoreError::Unavailable(_)))),
            "{refused:?}"
        );
        let again = process.parts().query.get(&run.run_id, &Owner::None);
        assert_eq!(
            again.await.unwrap().unwrap().attempt,
            1,
            "nothing more was written"
        );
        // Its former self is gone, so the run goes on here under the next attempt.
        until(&process, |process| process.live_runs() > 0).await;
        assert!(!process.is_displaced());
        assert_eq!(
            process
                .parts()
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
async fn a_process_that_has_its_store_back_enters_it_again_however_often_that_fails() {
    as_user(async {
        let (nodes, process) = Contested::over(MemoryStores::new());
        let run = hanging(&process).await;
        // That it was taken again is said once, and the store is away then.
        *nodes.holds.lock() = vec![Hold::Retaken, Hold::Lost];
        nodes.refusals.store(5, Ordering::Relaxed);
        until(&process, RunsFacade::is_displaced).await;
        until(&process, |process| process.live_runs() > 0).await;
        assert_eq!(
            process
                .parts()
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
async fn a_process_alone_whose_place_broke_asks_for_its_lease_until_it_knows() {
    as_user(async {
        let (nodes, process) = Contested::over(MemoryStores::new());
        let run = hanging(&process).await;
        // Another process came and went meanwhile: it let nobody else in.
        nodes
            .stores
            .register(&node("other"), Duration::from_secs(60))
            .await
            .unwrap();
        nodes.stores.leave(&node("other")).await.unwrap();
        nodes.refusals.store(3, Ordering::Relaxed);
        *nodes.holds.lock() = vec![Hold::Retaken];
        let again = async {
            while process
                .parts()
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
            .expect("it is taken again");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_look_without_an_answer_stops_no_run_while_the_lease_is_renewed() {
    as_user(async {
        let (nodes, process) = Contested::over(MemoryStores::shared());
        let run = hanging(&process).await;
        nodes.silent.store(true, Ordering::Relaxed);
        tokio::time::sleep(Duration::from_secs(120)).await;
        assert!(process.lease().unwrap().holds());
        assert_eq!(
            process
                .parts()
                .query
                .get(&run.run_id, &Owner::None)
                .await
                .unwrap()
                .unwrap()
                .attempt,
            1
        );
        assert_eq!(process.live_runs(), 1);
    })
    .await;
}

use crate::runs::*;
use crate::test_support::*;
use deerflow_core::fair_permits::FairPermit;

/// Takes all permits on behalf of another user.
async fn take_all(facade: &RunsFacade) -> Vec<FairPermit> {
    let starts = &facade.runtime().registry.starts;
    let mut permits = Vec::new();
    while !starts.is_exhausted() {
        permits.push(starts.acquire("another").await);
    }
    permits
}

/// Creates a run and waits until it waits for a permit.
async fn create_waiting(facade: &RunsFacade) -> RunRecord {
    let run = facade.create_background(spec("finish")).await.unwrap();
    let active = facade.runtime().registry.active(&run.run_id).unwrap();
    while active.wait.current() != Some("run_starts") {
        tokio::task::yield_now().await;
    }
    run
}

async fn end_of(facade: &RunsFacade, run: &RunRecord) -> RunStatus {
    facade.join_wait(None, &run.run_id).await.unwrap();
    let stored = facade.get_run(None, &run.run_id).await.unwrap();
    stored.unwrap().status
}

#[tokio::test]
async fn run_waits_for_a_start_permit() {
    as_user(async {
        let facade = facade();
        let permits = take_all(&facade).await;
        let run = create_waiting(&facade).await;
        drop(permits);
        assert_eq!(end_of(&facade, &run).await, RunStatus::Success);
        assert!(!facade.runtime().registry.starts.is_exhausted());
    })
    .await;
}

#[tokio::test]
async fn run_that_waits_for_a_start_permit_can_be_cancelled() {
    as_user(async {
        let facade = facade();
        let _permits = take_all(&facade).await;
        let run = create_waiting(&facade).await;
        facade
            .cancel(None, &run.run_id, CancelAction::Interrupt, true)
            .await
            .unwrap();
        assert_eq!(end_of(&facade, &run).await, RunStatus::Interrupted);
    })
    .await;
}

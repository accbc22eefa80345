//! How runs end while the store does not take what they write.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::runtime::actor_context::Owner;
use crate::runtime::runs::store::{CommitError, RunCommit, RunCommitStore, StoreError};
use crate::runtime::runs::tests::{as_user, facade, over, spec, texts, thread};
use crate::runtime::runs::{Durability, RunSpec, RunStatus, RunsFacade, RuntimeParts, WaitOutcome};

/// A store that answers some commits with an error.
#[derive(Debug)]
struct Refusing {
    store: Arc<dyn RunCommitStore>,
    refuses: Mutex<fn(&RunCommit) -> Option<StoreError>>,
}

#[async_trait]
impl RunCommitStore for Refusing {
    async fn commit(&self, commit: RunCommit) -> Result<(), CommitError> {
        let refused = (*self.refuses.lock())(&commit);
        match refused {
            Some(error) => Err(error.into()),
            None => self.store.commit(commit).await,
        }
    }
}

fn away(_: &RunCommit) -> Option<StoreError> {
    Some(StoreError::Unavailable("away".to_owned()))
}

fn refusing(refuses: fn(&RunCommit) -> Option<StoreError>) -> (RunsFacade, Arc<Refusing>) {
    let parts = facade().parts().clone();
    let commit = Arc::new(Refusing { store: parts.commit.clone(), refuses: Mutex::new(refuses) });
    (over(RuntimeParts { commit: commit.clone(), ..parts }), commit)
}

async fn saved(facade: &RunsFacade) -> Vec<String> {
    let head = facade.parts().checkpointer.get(&thread(), None).await.unwrap();
    head.iter().flat_map(|head| head.state.messages()).map(|message| message.content.text()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_run_that_waits_for_the_store_stops_when_it_is_told_to() {
    as_user(async {
        let (facade, _) = refusing(away);
        let run = facade.create_background(RunSpec { durability: Durability::Sync, ..spec("finish") }).await.unwrap();
        tokio::time::sleep(Duration::from_secs(3)).await;
        assert_eq!(facade.live_runs(), 1);
        let told = Instant::now();
        facade.hand_over_all();
        while facade.live_runs() > 0 {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        assert!(told.elapsed() < Duration::from_secs(5), "{:?}", told.elapsed());
        let stored = facade.parts().query.get(&run.run_id, &Owner::None).await.unwrap().unwrap();
        assert_eq!((stored.status, stored.attempt), (RunStatus::Starting, 1), "it is taken over by who finds it");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_run_keeps_its_steps_however_long_the_store_is_away_at_its_end() {
    as_user(async {
        let (facade, commit) = refusing(away);
        let (run, outcome) = facade.create_for_waiting(spec("finish")).await.unwrap();
        let mut outcome = Box::pin(outcome);
        assert!(tokio::time::timeout(Duration::from_secs(600), &mut outcome).await.is_err(), "it may not be over");
        *commit.refuses.lock() = |_| None;
        assert_eq!(texts(&outcome.await), ["hello", "one two"]);
        assert_eq!(saved(&facade).await, ["hello", "one two"]);
        assert_eq!(facade.get_run(None, &run.run_id).await.unwrap().unwrap().status, RunStatus::Success);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_run_whose_steps_the_store_refuses_fails_and_its_input_stays() {
    as_user(async {
        let (facade, _) = refusing(|commit| (commit.checkpoints.len() > 1).then(|| StoreError::NotWritable("too much".to_owned())));
        let (run, outcome) = facade.create_and_wait(spec("finish")).await.unwrap();
        assert!(matches!(&outcome, WaitOutcome::Failed { name, .. } if name == "StorageError"), "{outcome:?}");
        let ended = facade.get_run(None, &run.run_id).await.unwrap().unwrap();
        assert_eq!((ended.status, ended.stop_reason.as_deref()), (RunStatus::Error, Some("storage_full")));
        assert!(ended.error.unwrap().contains("steps of the run could not be stored"));
        assert_eq!(saved(&facade).await, ["hello"]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_run_ends_though_the_store_takes_nothing_but_its_end() {
    as_user(async {
        let (facade, _) = refusing(|commit| (!commit.checkpoints.is_empty()).then(|| StoreError::Failed("no".to_owned())));
        let (run, outcome) = facade.create_and_wait(spec("finish")).await.unwrap();
        assert!(matches!(outcome, WaitOutcome::Failed { .. }), "{outcome:?}");
        assert_eq!(facade.get_run(None, &run.run_id).await.unwrap().unwrap().status, RunStatus::Error);
    })
    .await;
}

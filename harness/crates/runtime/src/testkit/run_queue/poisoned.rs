//! Contract of the stored requests of poisoned runs.

use super::{RunStores, admit, commit_of, end, end_in, get, new_run, on_temporary_thread, run};
use crate::runs::store::{RunCommit, RunEnd, StoredRunRequest, WebhookCall};
use crate::runs::{RunStatus, StopReason};
use crate::testkit::{at, stored_request};

/// Returns the end of a run that exhausted its attempts.
fn exhausted() -> RunEnd {
    RunEnd {
        stop_reason: Some(StopReason::AttemptsExhausted.into()),
        forget_calls: true,
        ..end_in(RunStatus::Error)
    }
}

async fn end_as(stores: &RunStores, id: &str, last: RunEnd) {
    let commit = RunCommit {
        end: Some(last),
        ..commit_of(&get(stores, id).await)
    };
    stores.commit.commit(commit.into()).await.expect("ended");
}

async fn stored(stores: &RunStores, id: &str) -> Option<StoredRunRequest> {
    let stored = stores.query.stored_request(&run(id)).await;
    stored.expect("read")
}

/// The request of a poisoned run is available until the run is deleted, with and without a webhook.
pub async fn poisoned_run_retains_its_request(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    let webhook = WebhookCall {
        url: "https://example.com/ended".to_owned(),
        started_at: at(1),
        values: None,
        error: None,
    };
    for (id, on, webhook) in [("r1", "t1", None), ("r2", "t2", Some(webhook))] {
        admit(&stores, new_run(id, on)).await;
        let last = RunEnd {
            webhook,
            ..exhausted()
        };
        end_as(&stores, id, last).await;
        let (request, expected) = (stored(&stores, id).await, stored_request(id, on));
        let request = request.expect("retained");
        assert_eq!(
            (request.spec.input, request.actor),
            (expected.spec.input, expected.actor),
            "{id}"
        );
    }
    assert_eq!(stores.delete.delete(&run("r1")).await, Ok(true));
    assert!(stored(&stores, "r1").await.is_none());
}

/// Other ends, also other failures, remove the request.
pub async fn other_ended_runs_have_no_request(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    admit(&stores, new_run("r1", "t1")).await;
    assert!(stored(&stores, "r1").await.is_some(), "unfinished");
    end(&stores, "r1", RunStatus::Interrupted).await;
    assert!(stored(&stores, "r1").await.is_none());
    admit(&stores, new_run("r2", "t1")).await;
    let last = RunEnd {
        stop_reason: Some(StopReason::NodeLost.into()),
        ..exhausted()
    };
    end_as(&stores, "r2", last).await;
    assert!(stored(&stores, "r2").await.is_none());
    assert!(stored(&stores, "unknown").await.is_none());
}

/// The request is content, so it is deleted with a temporary thread.
pub async fn request_is_deleted_with_temporary_thread(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    admit(&stores, on_temporary_thread(new_run("r1", "t1"))).await;
    end_as(&stores, "r1", exhausted()).await;
    assert!(stored(&stores, "r1").await.is_none());
}

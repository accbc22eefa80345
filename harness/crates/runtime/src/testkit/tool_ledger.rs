//! Contract of the ledger of tool calls.

use serde_json::json;

use super::{RunStores, commit_of, end_in, new_run, node, on_temporary_thread, run, thread};
use crate::runs::store::{CallEntry, CallProgress, CommitError, RunCommit, RunEnd};
use crate::runs::{RunRecord, RunStatus};

/// Generates one test per guarantee.
#[macro_export]
macro_rules! tool_ledger_suite {
    ($attrs:tt $open:expr) => {
        $crate::promises! { $attrs $open, [$crate::testkit::tool_ledger]
            call_is_readable_from_start_until_run_end
            calls_of_other_runs_and_keys_are_not_returned
            next_attempt_reads_and_continues_calls
            lost_attempt_cannot_write_calls
            call_of_finished_run_is_rejected
            any_result_is_stored_unchanged
            calls_are_deleted_with_temporary_thread
            calls_are_deleted_with_thread
        }
    };
}

fn entry(key: &str, progress: CallProgress) -> CallEntry {
    CallEntry {
        key: key.to_owned(),
        progress,
    }
}

fn succeeded(text: &str) -> CallProgress {
    CallProgress::Done(json!({ "text": text }))
}

async fn admitted(stores: &RunStores, id: &str) -> RunRecord {
    stores
        .create
        .admit(new_run(id, &format!("thread-{id}")))
        .await
        .expect("admitted")
        .run
}

async fn write(
    stores: &RunStores,
    run: &RunRecord,
    batch: u64,
    calls: impl Into<Vec<CallEntry>>,
) -> Result<(), CommitError> {
    stores
        .commit
        .commit(
            RunCommit {
                batch,
                calls: calls.into(),
                ..commit_of(run)
            }
            .into(),
        )
        .await
}

async fn recorded(stores: &RunStores, id: &str, key: &str) -> Option<CallProgress> {
    stores.ledger.progress(&run(id), key).await.expect("read")
}

/// A later entry of a call replaces the earlier one, also within one commit; a repeated commit has
/// no effect.
pub async fn call_is_readable_from_start_until_run_end(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    let record = admitted(&stores, "r1").await;
    let begun = [
        entry("a", CallProgress::Started),
        entry("b", CallProgress::Started),
    ];
    assert_eq!(write(&stores, &record, 1, begun.clone()).await, Ok(()));
    assert_eq!(
        recorded(&stores, "r1", "a").await,
        Some(CallProgress::Started)
    );
    assert_eq!(
        write(&stores, &record, 2, [entry("a", succeeded("one"))]).await,
        Ok(())
    );
    assert_eq!(write(&stores, &record, 1, begun).await, Ok(()));
    assert_eq!(
        (
            recorded(&stores, "r1", "a").await,
            recorded(&stores, "r1", "b").await
        ),
        (Some(succeeded("one")), Some(CallProgress::Started))
    );
    assert_eq!(
        write(
            &stores,
            &record,
            3,
            [
                entry("c", CallProgress::Started),
                entry("c", succeeded("two"))
            ]
        )
        .await,
        Ok(())
    );
    assert_eq!(recorded(&stores, "r1", "c").await, Some(succeeded("two")));
    let end = RunEnd {
        forget_calls: true,
        ..end_in(RunStatus::Success)
    };
    let commit = RunCommit {
        batch: 4,
        advance: Some(RunStatus::Running),
        end: Some(end),
        ..commit_of(&record)
    };
    stores.commit.commit(commit.into()).await.expect("ended");
    for key in ["a", "b", "c"] {
        assert_eq!(recorded(&stores, "r1", key).await, None);
    }
}

/// Keys are scoped to a run.
pub async fn calls_of_other_runs_and_keys_are_not_returned(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    let (first, second) = (admitted(&stores, "r1").await, admitted(&stores, "r2").await);
    assert_eq!(
        write(&stores, &first, 1, [entry("a", succeeded("one"))]).await,
        Ok(())
    );
    assert_eq!(
        write(&stores, &second, 1, [entry("a", CallProgress::Started)]).await,
        Ok(())
    );
    assert_eq!(
        (
            recorded(&stores, "r1", "a").await,
            recorded(&stores, "r2", "a").await
        ),
        (Some(succeeded("one")), Some(CallProgress::Started))
    );
    assert_eq!(
        (
            recorded(&stores, "r1", "b").await,
            recorded(&stores, "r3", "a").await
        ),
        (None, None)
    );
    let end = RunEnd {
        forget_calls: true,
        ..end_in(RunStatus::Error)
    };
    stores
        .commit
        .commit(
            RunCommit {
                batch: 2,
                end: Some(end),
                ..commit_of(&first)
            }
            .into(),
        )
        .await
        .expect("ended");
    assert_eq!(
        recorded(&stores, "r2", "a").await,
        Some(CallProgress::Started)
    );
}

/// The attempt after a takeover reads the entries of the previous one, and adds its own.
pub async fn next_attempt_reads_and_continues_calls(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    let first = admitted(&stores, "r1").await;
    let begun = [
        entry("a", succeeded("one")),
        entry("b", CallProgress::Started),
    ];
    assert_eq!(write(&stores, &first, 1, begun).await, Ok(()));
    let second = stores
        .create
        .take_over(&node("n2"), super::at(7))
        .await
        .expect("no store error")
        .expect("claimed")
        .run;
    assert_eq!(
        (
            recorded(&stores, "r1", "a").await,
            recorded(&stores, "r1", "b").await
        ),
        (Some(succeeded("one")), Some(CallProgress::Started))
    );
    assert_eq!(
        write(&stores, &second, 1, [entry("b", succeeded("two"))]).await,
        Ok(())
    );
    assert_eq!(recorded(&stores, "r1", "b").await, Some(succeeded("two")));
}

/// A lost attempt can write neither the start nor the result of a call.
pub async fn lost_attempt_cannot_write_calls(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    let record = admitted(&stores, "r1").await;
    assert_eq!(
        write(&stores, &record, 1, [entry("a", CallProgress::Started)]).await,
        Ok(())
    );
    stores
        .create
        .take_over(&node("n2"), super::at(7))
        .await
        .expect("no store error")
        .expect("claimed");
    let lost = Err(CommitError::OwnershipLost {
        run_id: run("r1"),
        attempt: 1,
    });
    assert_eq!(
        write(&stores, &record, 2, [entry("a", succeeded("late"))]).await,
        lost
    );
    assert_eq!(
        write(&stores, &record, 2, [entry("b", CallProgress::Started)]).await,
        lost
    );
    assert_eq!(
        (
            recorded(&stores, "r1", "a").await,
            recorded(&stores, "r1", "b").await
        ),
        (Some(CallProgress::Started), None)
    );
}

/// No call is written after the end.
pub async fn call_of_finished_run_is_rejected(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    let record = admitted(&stores, "r1").await;
    let end = Some(end_in(RunStatus::Error));
    let commit = RunCommit {
        batch: 1,
        end,
        ..commit_of(&record)
    };
    stores.commit.commit(commit.into()).await.expect("ended");
    let over = Err(CommitError::AlreadyTerminal(run("r1")));
    assert_eq!(
        write(&stores, &record, 2, [entry("a", CallProgress::Started)]).await,
        over
    );
    assert_eq!(recorded(&stores, "r1", "a").await, None);
}

/// Results may be null, and may contain characters that some databases reject.
pub async fn any_result_is_stored_unchanged(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    let record = admitted(&stores, "r1").await;
    let results = [
        json!(null),
        json!(""),
        json!({ "text": "a\0b \u{1f980} '; --", "deep": [[{ "n": 1.5 }]] }),
        json!("x".repeat(100_000)),
    ];
    for (batch, result) in (1..).zip(results) {
        let progress = CallProgress::Done(result);
        assert_eq!(
            write(&stores, &record, batch, [entry("a", progress.clone())]).await,
            Ok(())
        );
        assert_eq!(recorded(&stores, "r1", "a").await, Some(progress));
    }
}

/// The calls are deleted although the run remains.
pub async fn calls_are_deleted_with_temporary_thread(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    let record = stores
        .create
        .admit(on_temporary_thread(new_run("r1", "t1")))
        .await
        .expect("admitted")
        .run;
    assert_eq!(
        write(&stores, &record, 1, [entry("a", succeeded("one"))]).await,
        Ok(())
    );
    let end = Some(RunEnd {
        forget_calls: true,
        ..end_in(RunStatus::Error)
    });
    let commit = RunCommit {
        batch: 2,
        end,
        ..commit_of(&record)
    };
    stores.commit.commit(commit.into()).await.expect("ended");
    assert_eq!(recorded(&stores, "r1", "a").await, None);
}

/// The calls are deleted even if the run never ended.
pub async fn calls_are_deleted_with_thread(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    let record = admitted(&stores, "r1").await;
    assert_eq!(
        write(&stores, &record, 1, [entry("a", CallProgress::Started)]).await,
        Ok(())
    );
    stores
        .delete
        .delete_thread(&thread("thread-r1"))
        .await
        .expect("deleted");
    assert_eq!(recorded(&stores, "r1", "a").await, None);
}

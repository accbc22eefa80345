//! What stores promise about the calls that runs write down.

use serde_json::json;

use super::{RunStores, commit_of, end_in, new_run, node, run, thread};
use crate::runtime::runs::store::{
    CallEntry, CallProgress, CommitError, NewRun, RunCommit, RunEnd,
};
use crate::runtime::runs::{RunRecord, RunStatus};

/// One test per promise.
#[macro_export]
macro_rules! tool_ledger_suite {
    ($attrs:tt $open:expr) => {
        $crate::promises! { $attrs $open, [$crate::testkit::tool_ledger]
            a_call_is_known_from_its_beginning_to_the_end_of_its_run
            calls_of_other_runs_and_other_keys_are_not_known
            the_next_attempt_reads_what_the_last_one_wrote_and_goes_on_with_it
            who_lost_a_run_writes_no_call_of_it
            a_call_of_a_run_that_is_over_is_not_written
            any_result_is_kept_as_it_is
            calls_go_with_a_temporary_thread
            calls_of_a_deleted_thread_do_not_stay
        }
    };
}

fn entry(key: &str, progress: CallProgress) -> CallEntry {
    CallEntry {
        key: key.to_owned(),
        progress,
    }
}

fn done(text: &str) -> CallProgress {
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
        .commit(RunCommit {
            batch,
            calls: calls.into(),
            ..commit_of(run)
        })
        .await
}

async fn known(stores: &RunStores, id: &str, key: &str) -> Option<CallProgress> {
    stores.ledger.progress(&run(id), key).await.expect("read")
}

/// The last that was written of it counts, also in one commit; a commit that comes again changes nothing.
pub async fn a_call_is_known_from_its_beginning_to_the_end_of_its_run(
    open: impl AsyncFn() -> RunStores,
) {
    let stores = open().await;
    let record = admitted(&stores, "r1").await;
    let begun = [
        entry("a", CallProgress::Started),
        entry("b", CallProgress::Started),
    ];
    assert_eq!(write(&stores, &record, 1, begun.clone()).await, Ok(()));
    assert_eq!(known(&stores, "r1", "a").await, Some(CallProgress::Started));
    assert_eq!(
        write(&stores, &record, 2, [entry("a", done("one"))]).await,
        Ok(())
    );
    assert_eq!(write(&stores, &record, 1, begun).await, Ok(()));
    assert_eq!(
        (
            known(&stores, "r1", "a").await,
            known(&stores, "r1", "b").await
        ),
        (Some(done("one")), Some(CallProgress::Started))
    );
    assert_eq!(
        write(
            &stores,
            &record,
            3,
            [entry("c", CallProgress::Started), entry("c", done("two"))]
        )
        .await,
        Ok(())
    );
    assert_eq!(known(&stores, "r1", "c").await, Some(done("two")));
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
    stores.commit.commit(commit).await.expect("ended");
    for key in ["a", "b", "c"] {
        assert_eq!(known(&stores, "r1", key).await, None);
    }
}

/// Keys are a run's own.
pub async fn calls_of_other_runs_and_other_keys_are_not_known(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    let (first, second) = (admitted(&stores, "r1").await, admitted(&stores, "r2").await);
    assert_eq!(
        write(&stores, &first, 1, [entry("a", done("one"))]).await,
        Ok(())
    );
    assert_eq!(
        write(&stores, &second, 1, [entry("a", CallProgress::Started)]).await,
        Ok(())
    );
    assert_eq!(
        (
            known(&stores, "r1", "a").await,
            known(&stores, "r2", "a").await
        ),
        (Some(done("one")), Some(CallProgress::Started))
    );
    assert_eq!(
        (
            known(&stores, "r1", "b").await,
            known(&stores, "r3", "a").await
        ),
        (None, None)
    );
    let end = RunEnd {
        forget_calls: true,
        ..end_in(RunStatus::Error)
    };
    stores
        .commit
        .commit(RunCommit {
            batch: 2,
            end: Some(end),
            ..commit_of(&first)
        })
        .await
        .expect("ended");
    assert_eq!(known(&stores, "r2", "a").await, Some(CallProgress::Started));
}

/// However the run came to it.
pub async fn the_next_attempt_reads_what_the_last_one_wrote_and_goes_on_with_it(
    open: impl AsyncFn() -> RunStores,
) {
    let stores = open().await;
    let first = admitted(&stores, "r1").await;
    let begun = [entry("a", done("one")), entry("b", CallProgress::Started)];
    assert_eq!(write(&stores, &first, 1, begun).await, Ok(()));
    let second = stores
        .create
        .take_over(&node("n2"), super::at(7))
        .await
        .expect("looked")
        .expect("taken")
        .run;
    assert_eq!(
        (
            known(&stores, "r1", "a").await,
            known(&stores, "r1", "b").await
        ),
        (Some(done("one")), Some(CallProgress::Started))
    );
    assert_eq!(
        write(&stores, &second, 1, [entry("b", done("two"))]).await,
        Ok(())
    );
    assert_eq!(known(&stores, "r1", "b").await, Some(done("two")));
}

/// Neither a beginning nor a result.
pub async fn who_lost_a_run_writes_no_call_of_it(open: impl AsyncFn() -> RunStores) {
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
        .expect("looked")
        .expect("taken");
    let lost = Err(CommitError::OwnershipLost {
        run_id: run("r1"),
        attempt: 1,
    });
    assert_eq!(
        write(&stores, &record, 2, [entry("a", done("late"))]).await,
        lost
    );
    assert_eq!(
        write(&stores, &record, 2, [entry("b", CallProgress::Started)]).await,
        lost
    );
    assert_eq!(
        (
            known(&stores, "r1", "a").await,
            known(&stores, "r1", "b").await
        ),
        (Some(CallProgress::Started), None)
    );
}

/// Its end was the last word.
pub async fn a_call_of_a_run_that_is_over_is_not_written(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    let record = admitted(&stores, "r1").await;
    let end = Some(end_in(RunStatus::Error));
    stores
        .commit
        .commit(RunCommit {
            batch: 1,
            end,
            ..commit_of(&record)
        })
        .await
        .expect("ended");
    let over = Err(CommitError::AlreadyTerminal(run("r1")));
    assert_eq!(
        write(&stores, &record, 2, [entry("a", CallProgress::Started)]).await,
        over
    );
    assert_eq!(known(&stores, "r1", "a").await, None);
}

/// Also what is nothing, and characters that some databases do not take.
pub async fn any_result_is_kept_as_it_is(open: impl AsyncFn() -> RunStores) {
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
        assert_eq!(known(&stores, "r1", "a").await, Some(progress));
    }
}

/// Although the run stays.
pub async fn calls_go_with_a_temporary_thread(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    let record = stores
        .create
        .admit(NewRun {
            temporary_thread: true,
            ..new_run("r1", "t1")
        })
        .await
        .expect("admitted")
        .run;
    assert_eq!(
        write(&stores, &record, 1, [entry("a", done("one"))]).await,
        Ok(())
    );
    let end = Some(RunEnd {
        forget_calls: true,
        ..end_in(RunStatus::Error)
    });
    stores
        .commit
        .commit(RunCommit {
            batch: 2,
            end,
            ..commit_of(&record)
        })
        .await
        .expect("ended");
    assert_eq!(known(&stores, "r1", "a").await, None);
}

/// Even if the run never ended.
pub async fn calls_of_a_deleted_thread_do_not_stay(open: impl AsyncFn() -> RunStores) {
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
    assert_eq!(known(&stores, "r1", "a").await, None);
}

//! Contract of thread updates from outside a run.

use serde_json::{Map, Value, json};

use super::{ThreadScript, all, ids, text_update};
use crate::checkpoint::{ExternalWrite, PutError};
use crate::runs::store::RunCommit;
use crate::runs::{RunStatus, ThreadStatus};
use crate::testkit::{
    RunStores, at_once, checkpoint, checkpoint_write, commit_of, end_in, new_run, object, run,
    thread,
};
use deerflow_core::ids::SeededIds;
use deerflow_core::state::ThreadState;

/// Plans an update with the text `text` on the state after checkpoint `newest`, whose log ends at
/// `log_tail`.
fn external_write(n: u64, newest: Option<u64>, log_tail: u64, text: &str) -> ExternalWrite {
    let (mut state, mut tail) = (ThreadState::default(), log_tail);
    state
        .apply(text_update(text), &SeededIds::new(n))
        .expect("applied");
    let write = checkpoint_write("t1", None, n, &mut state, &mut tail);
    ExternalWrite {
        write,
        newest: newest.map(checkpoint),
        log_tail,
        title: None,
        status: ThreadStatus::Idle,
    }
}

/// Creates a thread that has no active run.
async fn idle_thread(stores: &RunStores) {
    let record = stores
        .create
        .admit(new_run("r0", "t1"))
        .await
        .expect("admitted")
        .run;
    let end = Some(end_in(RunStatus::Interrupted));
    let commit = RunCommit {
        end,
        ..commit_of(&record)
    };
    stores.commit.commit(commit.into()).await.expect("ended");
}

/// The run can still commit. After its end, the same update is accepted.
pub async fn external_update_is_rejected_while_run_is_active(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    let put = async || {
        stores
            .checkpoints
            .put_outside_run(external_write(1, None, 0, "m1"))
            .await
    };
    assert!(matches!(put().await, Err(PutError::NoThread(_))));
    let record = stores
        .create
        .admit(new_run("r1", "t1"))
        .await
        .expect("admitted")
        .run;
    assert!(matches!(put().await, Err(PutError::Busy { run_id, .. }) if run_id == run("r1")));
    assert!(
        stores
            .checkpoints
            .get(&thread("t1"), None)
            .await
            .expect("read")
            .is_none()
    );
    let end = Some(end_in(RunStatus::Interrupted));
    let commit = RunCommit {
        end,
        ..commit_of(&record)
    };
    stores.commit.commit(commit.into()).await.expect("ended");
    put().await.expect("written");
    let read = stores
        .checkpoints
        .get(&thread("t1"), None)
        .await
        .expect("read")
        .expect("there");
    assert_eq!((ids(&read.state), read.log_tail), (vec!["m1"], 1));
}

/// The thread may have changed by a checkpoint, or by messages of a rolled-back run.
pub async fn external_update_is_rejected_after_thread_changed(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    idle_thread(&stores).await;
    stores
        .checkpoints
        .put_outside_run(external_write(1, None, 0, "m1"))
        .await
        .expect("written");
    for (newest, tail) in [(None, 0), (None, 1), (Some(1), 0), (Some(9), 1)] {
        let put = stores
            .checkpoints
            .put_outside_run(external_write(2, newest, tail, "m2"))
            .await;
        assert!(
            matches!(put, Err(PutError::Moved(_))),
            "planned on {newest:?} and {tail}"
        );
    }
    stores
        .checkpoints
        .put_outside_run(external_write(2, Some(1), 1, "m2"))
        .await
        .expect("written");
    let read = stores
        .checkpoints
        .get(&thread("t1"), None)
        .await
        .expect("read")
        .expect("there");
    assert_eq!((ids(&read.state), read.log_tail), (vec!["m2"], 2));
}

/// All others fail with [`PutError::Moved`].
pub async fn concurrent_external_updates_write_exactly_one(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    idle_thread(&stores).await;
    let results = at_once((1..=20).map(|n| {
        let stores = stores.clone();
        async move {
            stores
                .checkpoints
                .put_outside_run(external_write(n, None, 0, &format!("m{n}")))
                .await
        }
    }))
    .await;
    assert_eq!(
        results.iter().filter(|result| result.is_ok()).count(),
        1,
        "{results:?}"
    );
    assert_eq!(
        results
            .iter()
            .filter(|result| matches!(result, Err(PutError::Moved(_))))
            .count(),
        19,
        "{results:?}"
    );
}

/// Metadata is merged one level deep; the rest of the checkpoint is unchanged.
pub async fn metadata_patch_merges_into_newest_checkpoint(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    let patch = async |entries: Value| {
        stores
            .checkpoints
            .patch_metadata(&thread("t1"), object(entries), None)
            .await
    };
    assert!(matches!(
        patch(json!({ "a": 1 })).await,
        Err(PutError::NoThread(_))
    ));
    idle_thread(&stores).await;
    assert!(!patch(json!({ "a": 1 })).await.expect("nothing to change"));
    let mut script = ThreadScript::new(&stores, "t1");
    script.step(None, text_update("m1")).await;
    script.step(None, text_update("m2")).await;
    let before = stores
        .checkpoints
        .list(&thread("t1"), &all())
        .await
        .expect("read");
    assert!(
        patch(json!({ "a": { "b": 1 }, "c": 1 }))
            .await
            .expect("changed")
    );
    assert!(patch(json!({ "a": { "d": null } })).await.expect("changed"));
    let after = stores
        .checkpoints
        .list(&thread("t1"), &all())
        .await
        .expect("read");
    let mut expected = before[0].meta.clone();
    expected
        .metadata
        .extend(object(json!({ "a": { "d": null }, "c": 1 })));
    assert_eq!(
        (&after[0].meta, &after[0].state),
        (&expected, &before[0].state)
    );
    assert_eq!(after[1].meta, before[1].meta);
    let record = stores
        .create
        .admit(new_run("r1", "t1"))
        .await
        .expect("admitted")
        .run;
    assert!(
        matches!(patch(json!({ "c": 2 })).await, Err(PutError::Busy { run_id, .. }) if run_id == record.run_id)
    );
}

/// A result that is larger than the limit is refused, also of concurrent patches, and changes
/// nothing.
pub async fn metadata_patch_beyond_limit_changes_nothing(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    idle_thread(&stores).await;
    let mut script = ThreadScript::new(&stores, "t1");
    script.step(None, text_update("m1")).await;
    let newest = async || {
        let listed = stores.checkpoints.list(&thread("t1"), &all()).await;
        listed.expect("read")[0].meta.metadata.clone()
    };
    let size = |metadata: &Map<String, Value>| json!(metadata).to_string().len();
    let before = newest().await;
    let entry = |n: usize| object(json!({ format!("k{n}"): "0123456789" }));
    let limit = size(&before) + 4 * size(&entry(0));
    let results = at_once((0..8).map(|n| {
        let checkpoints = stores.checkpoints.clone();
        async move {
            checkpoints
                .patch_metadata(&thread("t1"), entry(n), Some(limit))
                .await
        }
    }))
    .await;
    let refused = |result: &Result<bool, PutError>| matches!(result, Err(PutError::TooLarge(refused)) if refused.limit == limit && refused.size > limit);
    let accepted = results.iter().filter(|result| result.is_ok()).count();
    assert!((3..=4).contains(&accepted), "{results:?}");
    assert!(
        results
            .iter()
            .all(|result| result.is_ok() || refused(result)),
        "{results:?}"
    );
    let after = newest().await;
    assert_eq!(after.len(), before.len() + accepted);
    assert!(size(&after) <= limit);
}

//! Contract of the checkpoint history.

use serde_json::{Value, json};

use super::checkpointer::{ThreadScript, numbers, text_update};
use super::{
    RunStores, at, checkpoint, checkpoint_write, commit_of, end_in, new_run, object, thread,
};
use crate::checkpoint::{HistoryQuery, HistoryRetention};
use crate::runs::RunStatus;
use crate::runs::store::RunCommit;
use deerflow_core::ids::SeededIds;
use deerflow_core::state::{StateUpdate, ThreadState};

/// Lists start before the cursor, newest first, and respect the limit.
pub async fn history_is_newest_first_and_starts_before_cursor(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    let mut script = ThreadScript::new(&stores, "t1");
    for n in 1..=6 {
        script.step(None, text_update(&format!("m{n}"))).await;
    }
    let history = async |limit, before: Option<u64>| {
        let query = HistoryQuery {
            limit,
            before: before.map(checkpoint),
            ..HistoryQuery::default()
        };
        let full = stores
            .checkpoints
            .list(&thread("t1"), &query)
            .await
            .expect("read");
        let metas = stores
            .checkpoints
            .list_meta(&thread("t1"), &query)
            .await
            .expect("read");
        assert_eq!(
            full.iter()
                .map(|read| read.meta.clone())
                .collect::<Vec<_>>(),
            metas
        );
        assert!(
            full.iter()
                .all(|read| read.state.messages().len() as i64 == read.meta.step)
        );
        numbers(&metas)
    };
    assert_eq!(history(100, None).await, [6, 5, 4, 3, 2, 1]);
    assert_eq!(history(2, None).await, [6, 5]);
    assert_eq!(history(2, Some(5)).await, [4, 3]);
    assert_eq!(history(9, Some(1)).await, [0; 0]);
    assert_eq!(history(0, None).await, [0; 0]);
}

/// All entries of the filter must match, and the limit counts matches.
pub async fn history_filters_by_metadata(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    let mut script = ThreadScript::new(&stores, "t1");
    for _ in 1..=450 {
        script.step(None, StateUpdate::default()).await;
    }
    let find = async |metadata, limit| {
        let query = HistoryQuery {
            limit,
            before: None,
            metadata: object(metadata),
        };
        numbers(
            &stores
                .checkpoints
                .list_meta(&thread("t1"), &query)
                .await
                .expect("read"),
        )
    };
    assert_eq!(find(json!({"even": true}), 3).await, [450, 448, 446]);
    assert_eq!(find(json!({"even": true, "n": 4}), 3).await, [4]);
    assert_eq!(find(json!({"n": "4"}), 3).await, [0; 0]);
    assert_eq!(find(json!({"absent": null}), 3).await, [0; 0]);
    assert_eq!(find(json!({"source": "loop", "step": 7}), 3).await, [7]);
    for none in [
        json!({"source": "input"}),
        json!({"source": "\u{0}"}),
        json!({"step": 7.0}),
        json!({"run_id": "r1"}),
        json!({"n": {}}),
    ] {
        assert_eq!(find(none.clone(), 3).await, [0; 0], "{none}");
    }
    assert_eq!(
        find(json!({"thread_id": "t1", "parents": {}}), 2).await,
        [450, 449]
    );
}

/// Any JSON value matches, also if it is written in an equivalent form. An additional entry takes
/// precedence over a standard entry of the same name.
pub async fn history_filters_by_any_json_metadata(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    let (mut state, mut tail) = (ThreadState::default(), 0);
    for (n, metadata) in [
        (
            1,
            json!({"source": "else\"where", "step": "last", "run_id": null}),
        ),
        (
            2,
            json!({"of": {"a": 1, "b": -0.0}, "text": "\u{0} \u{2028} ü\"%_", "k\"%": [1, "x"]}),
        ),
    ] {
        let mut write = checkpoint_write("t1", Some("r1"), n, &mut state, &mut tail);
        write.meta.metadata = object(metadata);
        stores.checkpoints.put(write).await.expect("written");
    }
    for (filter, expected) in [
        (json!({"source": "else\"where"}), vec![1]),
        (json!({"source": "loop"}), vec![2]),
        (json!({"step": "last"}), vec![1]),
        (json!({"step": 1}), vec![]),
        (json!({"run_id": null}), vec![1]),
        (json!({"run_id": "r1"}), vec![2]),
        (json!({"of": {"b": 0.0, "a": 1}}), vec![2]),
        (json!({"text": "\u{0} \u{2028} ü\"%_"}), vec![2]),
        (json!({"text": "\u{0} \u{2028} Ü\"%_"}), vec![]),
        (json!({"k\"%": [1, "x"]}), vec![2]),
        (
            Value::Object(
                (0..500)
                    .map(|n| (format!("k{n}"), json!("\u{0}".repeat(100))))
                    .collect(),
            ),
            vec![],
        ),
    ] {
        let query = HistoryQuery {
            limit: 5,
            before: None,
            metadata: object(filter.clone()),
        };
        assert_eq!(
            numbers(
                &stores
                    .checkpoints
                    .list_meta(&thread("t1"), &query)
                    .await
                    .expect("read")
            ),
            expected,
            "{filter}"
        );
    }
}

/// The parents of retained checkpoints are retained, so that the base of a fork exists.
pub async fn pruning_retains_newest_and_their_parents(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    let busy = stores
        .create
        .admit(new_run("r1", "t1"))
        .await
        .expect("admitted")
        .run;
    let (mut state, mut tail) = (ThreadState::default(), 0);
    // Checkpoint 7 follows 3, as a fork does, and 5 was created long after 4.
    for (n, parent, created) in [
        (1, 0, 1),
        (2, 1, 1),
        (3, 2, 1),
        (4, 3, 1),
        (5, 4, 9),
        (6, 5, 1),
        (7, 3, 1),
        (8, 7, 1),
    ] {
        state
            .apply(text_update(&format!("m{n}")), &SeededIds::new(n))
            .expect("applied");
        let mut write = checkpoint_write("t1", Some("r1"), n, &mut state, &mut tail);
        (write.meta.parent_id, write.meta.created_at) =
            ((parent > 0).then(|| checkpoint(parent)), at(created));
        stores.checkpoints.put(write).await.expect("written");
    }
    let keep = |newest, since: Option<i64>| HistoryRetention {
        newest,
        since: since.map(at),
    };
    let forget = async |keep, most| {
        stores
            .checkpoints
            .forget_history(&thread("t1"), &keep, most)
            .await
            .expect("forgotten")
    };
    let remaining = async || {
        numbers(
            &stores
                .checkpoints
                .list_meta(
                    &thread("t1"),
                    &HistoryQuery {
                        limit: 9,
                        ..HistoryQuery::default()
                    },
                )
                .await
                .expect("read"),
        )
    };
    assert_eq!(
        forget(keep(1, None), 9).await,
        0,
        "an unfinished run may need any of them"
    );
    let commit = RunCommit {
        end: Some(end_in(RunStatus::Error)),
        ..commit_of(&busy)
    };
    stores.commit.commit(commit.into()).await.expect("ended");
    assert_eq!(
        (
            forget(keep(9, None), 9).await,
            forget(keep(1, Some(0)), 9).await
        ),
        (0, 0)
    );
    // The oldest are removed first.
    assert_eq!(
        (forget(keep(2, Some(9)), 1).await, remaining().await),
        (1, vec![8, 7, 6, 5, 4, 3, 2])
    );
    assert_eq!(
        (forget(keep(2, Some(9)), 9).await, remaining().await),
        (2, vec![8, 7, 5, 4, 3])
    );
    assert_eq!(
        (forget(keep(2, None), 9).await, remaining().await),
        (2, vec![8, 7, 3])
    );
    assert_eq!(
        (
            forget(keep(2, None), 9).await,
            forget(keep(0, None), 9).await,
            remaining().await
        ),
        (0, 1, vec![8, 7])
    );
    let head = stores
        .checkpoints
        .get(&thread("t1"), None)
        .await
        .expect("read")
        .expect("there");
    assert_eq!((head.state.messages().len(), head.log_tail), (8, 8));
    assert_eq!(
        stores
            .checkpoints
            .forget_history(&thread("t2"), &keep(1, None), 9)
            .await
            .expect("forgotten"),
        0
    );
}

//! Runs with unreadable rows end, and do not block others.

use std::time::Duration;

use deerflow_core::actor_context::Owner;
use deerflow_core::tasks::Tasks;
use deerflow_runtime::runs::store::{
    AdmitError, NewRun, NodeStore, RunCreateStore, RunListQuery, RunQueryStore, WebhookOutbox,
};
use deerflow_runtime::runs::{
    CancelAction, MultitaskStrategy, RunStatus, StopReason, UserRunLimits,
};
use deerflow_runtime::testkit::{
    self, at, new_run, node, on_temporary_thread, run, with_request, with_strategy,
};
use sea_orm::{ConnectionTrait, EntityTrait};

use crate::db::entity::thread;
use crate::{Database, DatabaseConfig, SqlNodeStore, SqlRunStore, SqlWebhookOutbox};

async fn open(tasks: &Tasks) -> (Database, SqlRunStore) {
    let db = Database::open(&DatabaseConfig::Memory, tasks)
        .await
        .unwrap();
    (db.clone(), SqlRunStore::new(db))
}

async fn damage(db: &Database, run: &str, column: &str) {
    db.reads()
        .execute_unprepared(&format!("UPDATE runs SET {column} WHERE run_id = '{run}'"))
        .await
        .unwrap();
}

/// Asserts how clients see the run that was ended.
async fn expect_ended(runs: &SqlRunStore, id: &str, reason: &str) {
    let ended = runs.get(&run(id), &Owner::None).await.unwrap().unwrap();
    assert_eq!(
        (ended.status, ended.stop_reason()),
        (RunStatus::Error, Some(StopReason::Unreadable))
    );
    assert!(
        ended.error.as_deref().unwrap().contains(reason),
        "{:?}",
        ended.error
    );
    let listed = runs
        .list(
            &ended.thread_id,
            &RunListQuery {
                limit: 9,
                ..RunListQuery::default()
            },
            &Owner::None,
        )
        .await
        .unwrap();
    assert!(listed.iter().any(|run| run.run_id == ended.run_id));
}

const DAMAGES: [(&str, &str); 4] = [
    ("kwargs_json = '{\"input\": '", "EOF"),
    ("metadata_json = '[]'", "sequence"),
    ("multitask_strategy = 'queue-jump'", "queue-jump"),
    ("attempt = 99999999999", "out of range"),
];

#[tokio::test]
async fn unreadable_pending_run_ends_and_next_one_starts() {
    for (column, reason) in DAMAGES {
        let tasks = Tasks::new();
        let (db, runs) = open(&tasks).await;
        for id in ["bad", "good"] {
            let late = NewRun {
                created_at: at(5),
                ..with_strategy(
                    new_run(id, &format!("thread-{id}")),
                    MultitaskStrategy::Enqueue,
                )
            };
            runs.admit(late).await.unwrap();
        }
        damage(&db, "bad", column).await;
        let claimed = runs
            .claim(&node("n1"), at(9), UserRunLimits::default())
            .await
            .unwrap()
            .unwrap();
        assert_eq!(claimed.run.run_id, run("good"), "{column}");
        assert!(
            runs.claim(&node("n1"), at(9), UserRunLimits::default())
                .await
                .unwrap()
                .is_none()
        );
        expect_ended(&runs, "bad", reason).await;
        // The thread is free.
        runs.admit(new_run("next", "thread-bad")).await.unwrap();
    }
}

#[tokio::test]
async fn run_delayed_by_older_version_starts_at_creation() {
    let tasks = Tasks::new();
    let (db, runs) = open(&tasks).await;
    runs.admit(NewRun {
        created_at: at(50),
        ..with_strategy(new_run("r1", "t1"), MultitaskStrategy::Enqueue)
    })
    .await
    .unwrap();
    damage(&db, "r1", "due_at = NULL").await;
    assert!(
        runs.claim(&node("n1"), at(49), UserRunLimits::default())
            .await
            .unwrap()
            .is_none()
    );
    assert_eq!(runs.next_due(at(49)).await.unwrap(), Some(at(50)));
    assert_eq!(
        runs.claim(&node("n1"), at(50), UserRunLimits::default())
            .await
            .unwrap()
            .unwrap()
            .run
            .run_id,
        run("r1")
    );
}

#[tokio::test]
async fn unreadable_orphaned_run_ends_and_others_are_taken_over() {
    for (column, reason) in DAMAGES {
        let tasks = Tasks::new();
        let (db, runs) = open(&tasks).await;
        for id in ["bad", "good"] {
            runs.admit(new_run(id, &format!("thread-{id}")))
                .await
                .unwrap();
        }
        damage(&db, "bad", column).await;
        SqlNodeStore::new(db.clone())
            .register(&node("n2"), Duration::from_secs(60))
            .await
            .unwrap();
        let claimed = runs.take_over(&node("n2"), at(9)).await.unwrap().unwrap();
        assert_eq!(claimed.run.run_id, run("good"), "{column}");
        assert!(runs.take_over(&node("n2"), at(9)).await.unwrap().is_none());
        expect_ended(&runs, "bad", reason).await;
        runs.admit(new_run("next", "thread-bad")).await.unwrap();
    }
}

#[tokio::test]
async fn unknown_status_blocks_neither_lists_nor_other_runs() {
    let tasks = Tasks::new();
    let (db, runs) = open(&tasks).await;
    runs.admit(new_run("odd", "t1")).await.unwrap();
    damage(&db, "odd", "status = 'suspended'").await;
    runs.admit(new_run("next", "t1")).await.unwrap();
    let listed = runs
        .list(
            &testkit::thread("t1"),
            &RunListQuery {
                limit: 9,
                ..RunListQuery::default()
            },
            &Owner::None,
        )
        .await
        .unwrap();
    assert_eq!(
        listed.into_iter().map(|run| run.run_id).collect::<Vec<_>>(),
        [run("next")]
    );
    assert_eq!(
        RunQueryStore::standing(&runs, None, &Owner::None)
            .await
            .unwrap()
            .len(),
        1
    );
}

#[tokio::test]
async fn unreadable_run_calls_webhook_and_deletes_temporary_thread() {
    let tasks = Tasks::new();
    let (db, runs) = open(&tasks).await;
    let bad = with_request(new_run("bad", "t1"), |request| {
        request.webhook = Some("https://example.com/hook".to_owned());
    });
    runs.admit(NewRun {
        created_at: at(5),
        ..on_temporary_thread(bad)
    })
    .await
    .unwrap();
    damage(&db, "bad", "metadata_json = '[]'").await;
    assert!(
        runs.claim(&node("n1"), at(9), UserRunLimits::default())
            .await
            .unwrap()
            .is_none()
    );
    let due = SqlWebhookOutbox::new(&db)
        .due(at(9), at(60), 9)
        .await
        .unwrap();
    assert_eq!(
        due.iter().map(|call| &call.run.run_id).collect::<Vec<_>>(),
        [&run("bad")]
    );
    assert!(due[0].call.error.as_ref().unwrap().1.contains("sequence"));
    assert!(
        thread::Entity::find_by_id("t1")
            .one(db.reads())
            .await
            .unwrap()
            .is_none()
    );
}

#[tokio::test]
async fn unreadable_pending_run_does_not_block_admission() {
    for (column, reason) in DAMAGES {
        let tasks = Tasks::new();
        let (db, runs) = open(&tasks).await;
        runs.admit(NewRun {
            created_at: at(5),
            ..new_run("bad", "t1")
        })
        .await
        .unwrap();
        damage(&db, "bad", column).await;
        let next = runs.admit(new_run("next", "t1")).await.unwrap();
        assert_eq!(
            (next.run.status, next.displaced.len()),
            (RunStatus::Starting, 0),
            "{column}"
        );
        expect_ended(&runs, "bad", reason).await;
        let row = thread::Entity::find_by_id("t1")
            .one(db.reads())
            .await
            .unwrap();
        assert_eq!(row.unwrap().status, "busy");
    }
}

#[tokio::test]
async fn unreadable_owned_run_retains_its_thread() {
    for (column, _) in DAMAGES {
        let tasks = Tasks::new();
        let (db, runs) = open(&tasks).await;
        runs.admit(new_run("bad", "t1")).await.unwrap();
        damage(&db, "bad", column).await;
        let refused = runs.admit(new_run("next", "t1")).await;
        assert!(
            matches!(refused, Err(AdmitError::ThreadBusy { .. })),
            "{column}: {refused:?}"
        );
        let cancelled = runs
            .request_cancel(&run("bad"), CancelAction::Interrupt, at(9))
            .await
            .unwrap()
            .unwrap();
        assert_eq!(
            (cancelled.status, cancelled.cancel),
            (RunStatus::Starting, Some(CancelAction::Interrupt))
        );
    }
}

#[tokio::test]
async fn unreadable_cancelled_run_ends_on_second_cancel() {
    let tasks = Tasks::new();
    let (db, runs) = open(&tasks).await;
    runs.admit(NewRun {
        created_at: at(5),
        ..new_run("bad", "t1")
    })
    .await
    .unwrap();
    runs.request_cancel(&run("bad"), CancelAction::Interrupt, at(6))
        .await
        .unwrap();
    damage(&db, "bad", "kwargs_json = '{'").await;
    let ended = runs
        .request_cancel(&run("bad"), CancelAction::Interrupt, at(9))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(ended.status, RunStatus::Error);
    expect_ended(&runs, "bad", "EOF").await;
}

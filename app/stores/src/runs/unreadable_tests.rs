//! Rows that make no sense end, and keep nobody waiting.

use std::time::Duration;

use harness::runtime::actor_context::Owner;
use harness::runtime::runs::store::{
    AdmitError, NewRun, NodeStore, RunCreateStore, RunListQuery, RunQueryStore, WebhookOutbox,
};
use harness::runtime::runs::{CancelAction, MultitaskStrategy, RunStatus};
use harness::runtime::tasks::Tasks;
use harness::testkit::{self, at, new_run, node, run};
use sea_orm::{ConnectionTrait, EntityTrait};

use super::UNREADABLE;
use crate::entity::thread;
use crate::{Database, DatabaseConfig, SqlNodeStore, SqlRunStore, SqlWebhookOutbox};

async fn open(tasks: &Tasks) -> (Database, SqlRunStore) {
    let db = Database::open(&DatabaseConfig::Memory, tasks)
        .await
        .unwrap();
    (db.clone(), SqlRunStore::new(db))
}

async fn spoil(db: &Database, run: &str, column: &str) {
    db.reads()
        .execute_unprepared(&format!("UPDATE runs SET {column} WHERE run_id = '{run}'"))
        .await
        .unwrap();
}

/// What somebody sees of the run that was ended.
async fn expect_ended(runs: &SqlRunStore, id: &str, why: &str) {
    let ended = runs.get(&run(id), &Owner::None).await.unwrap().unwrap();
    assert_eq!(
        (ended.status, ended.stop_reason.as_deref()),
        (RunStatus::Error, Some(UNREADABLE))
    );
    assert!(
        ended.error.as_deref().unwrap().contains(why),
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

const SPOILS: [(&str, &str); 4] = [
    ("kwargs_json = '{\"input\": '", "EOF"),
    ("metadata_json = '[]'", "sequence"),
    ("multitask_strategy = 'queue-jump'", "queue-jump"),
    ("attempt = 99999999999", "out of range"),
];

#[tokio::test]
async fn a_waiting_run_that_cannot_be_read_ends_and_the_next_one_begins() {
    for (column, why) in SPOILS {
        let tasks = Tasks::new();
        let (db, runs) = open(&tasks).await;
        for id in ["bad", "good"] {
            let late = NewRun {
                created_at: at(5),
                multitask: MultitaskStrategy::Enqueue,
                ..new_run(id, &format!("thread-{id}"))
            };
            runs.admit(late).await.unwrap();
        }
        spoil(&db, "bad", column).await;
        let claimed = runs.claim(&node("n1"), at(9)).await.unwrap().unwrap();
        assert_eq!(claimed.run.run_id, run("good"), "{column}");
        assert!(runs.claim(&node("n1"), at(9)).await.unwrap().is_none());
        expect_ended(&runs, "bad", why).await;
        // Its thread is free.
        runs.admit(new_run("next", "thread-bad")).await.unwrap();
    }
}

#[tokio::test]
async fn a_run_that_a_node_of_before_delayed_begins_when_it_is_made() {
    let tasks = Tasks::new();
    let (db, runs) = open(&tasks).await;
    runs.admit(NewRun {
        created_at: at(50),
        multitask: MultitaskStrategy::Enqueue,
        ..new_run("r1", "t1")
    })
    .await
    .unwrap();
    spoil(&db, "r1", "due_at = NULL").await;
    assert!(runs.claim(&node("n1"), at(49)).await.unwrap().is_none());
    assert_eq!(runs.next_due(at(49)).await.unwrap(), Some(at(50)));
    assert_eq!(
        runs.claim(&node("n1"), at(50))
            .await
            .unwrap()
            .unwrap()
            .run
            .run_id,
        run("r1")
    );
}

#[tokio::test]
async fn a_lost_run_that_cannot_be_read_ends_and_the_others_are_taken_over() {
    for (column, why) in SPOILS {
        let tasks = Tasks::new();
        let (db, runs) = open(&tasks).await;
        for id in ["bad", "good"] {
            runs.admit(new_run(id, &format!("thread-{id}")))
                .await
                .unwrap();
        }
        spoil(&db, "bad", column).await;
        SqlNodeStore::new(db.clone())
            .register(&node("n2"), Duration::from_secs(60))
            .await
            .unwrap();
        let taken = runs.take_over(&node("n2"), at(9)).await.unwrap().unwrap();
        assert_eq!(taken.run.run_id, run("good"), "{column}");
        assert!(runs.take_over(&node("n2"), at(9)).await.unwrap().is_none());
        expect_ended(&runs, "bad", why).await;
        runs.admit(new_run("next", "thread-bad")).await.unwrap();
    }
}

#[tokio::test]
async fn a_status_of_the_future_stops_neither_lists_nor_others() {
    let tasks = Tasks::new();
    let (db, runs) = open(&tasks).await;
    runs.admit(new_run("odd", "t1")).await.unwrap();
    spoil(&db, "odd", "status = 'suspended'").await;
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
async fn a_run_that_cannot_be_read_still_calls_its_webhook_and_takes_its_temporary_thread_with_it()
{
    let tasks = Tasks::new();
    let (db, runs) = open(&tasks).await;
    let webhook = Some("https://example.com/hook".to_owned());
    runs.admit(NewRun {
        created_at: at(5),
        webhook,
        temporary_thread: true,
        ..new_run("bad", "t1")
    })
    .await
    .unwrap();
    spoil(&db, "bad", "metadata_json = '[]'").await;
    assert!(runs.claim(&node("n1"), at(9)).await.unwrap().is_none());
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
async fn a_waiting_run_that_cannot_be_read_stands_in_nobodys_way() {
    for (column, why) in SPOILS {
        let tasks = Tasks::new();
        let (db, runs) = open(&tasks).await;
        runs.admit(NewRun {
            created_at: at(5),
            ..new_run("bad", "t1")
        })
        .await
        .unwrap();
        spoil(&db, "bad", column).await;
        let next = runs.admit(new_run("next", "t1")).await.unwrap();
        assert_eq!(
            (next.run.status, next.displaced.len()),
            (RunStatus::Starting, 0),
            "{column}"
        );
        expect_ended(&runs, "bad", why).await;
        let row = thread::Entity::find_by_id("t1")
            .one(db.reads())
            .await
            .unwrap();
        assert_eq!(row.unwrap().status, "busy");
    }
}

#[tokio::test]
async fn a_run_at_work_that_cannot_be_read_here_keeps_its_thread() {
    for (column, _) in SPOILS {
        let tasks = Tasks::new();
        let (db, runs) = open(&tasks).await;
        runs.admit(new_run("bad", "t1")).await.unwrap();
        spoil(&db, "bad", column).await;
        let refused = runs.admit(new_run("next", "t1")).await;
        assert!(
            matches!(refused, Err(AdmitError::ThreadBusy { .. })),
            "{column}: {refused:?}"
        );
        let told = runs
            .request_cancel(&run("bad"), CancelAction::Interrupt, at(9))
            .await
            .unwrap()
            .unwrap();
        assert_eq!(
            (told.status, told.cancel),
            (RunStatus::Starting, Some(CancelAction::Interrupt))
        );
    }
}

#[tokio::test]
async fn a_waiting_run_that_was_told_to_stop_and_cannot_be_read_ends_when_it_is_told_again() {
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
    spoil(&db, "bad", "kwargs_json = '{'").await;
    let ended = runs
        .request_cancel(&run("bad"), CancelAction::Interrupt, at(9))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(ended.status, RunStatus::Error);
    expect_ended(&runs, "bad", "EOF").await;
}

//! Large texts are stored once, outside of the rows of runs, and deleted with what they belong to.

use deerflow_core::actor_context::Owner;
use deerflow_core::tasks::Tasks;
use deerflow_runtime::runs::RunStatus;
use deerflow_runtime::runs::store::{
    NewRun, RunCommit, RunCommitStore, RunCreateStore, RunDeleteStore, RunEnd, RunQueryStore,
    WebhookCall,
};
use deerflow_runtime::testkit::{
    at, commit_of, end_in, new_run, on_temporary_thread, run, with_request,
};
use sea_orm::{ConnectionTrait, DbBackend};
use serde_json::json;

use super::{KWARGS, PART_BYTES, RECIPE, parts_of};
use crate::{Database, DatabaseConfig, SqlRunStore};

struct Rig {
    db: Database,
    runs: SqlRunStore,
    _tasks: Tasks,
}

impl Rig {
    async fn new() -> Self {
        let tasks = Tasks::new();
        let db = Database::open(&DatabaseConfig::Memory, &tasks);
        let db = db.await.unwrap();
        Self {
            runs: SqlRunStore::new(db.clone()),
            db,
            _tasks: tasks,
        }
    }

    /// Returns the first column of the rows of a query.
    async fn texts(&self, sql: &str) -> Vec<String> {
        let statement = sea_orm::Statement::from_string(DbBackend::Sqlite, sql);
        let rows = self.db.reads().query_all_raw(statement).await.unwrap();
        let text = |row: &sea_orm::QueryResult| row.try_get_by_index(0).unwrap();
        rows.iter().map(text).collect()
    }

    /// Returns the names of the columns whose texts are stored apart.
    async fn apart(&self) -> Vec<String> {
        self.texts(
            "SELECT column_name FROM run_text_parts WHERE part = 0 ORDER BY run_id, column_name",
        )
        .await
    }

    async fn end(&self, new: NewRun, end: RunEnd) {
        let admitted = self.runs.admit(new).await.unwrap().run;
        let commit = RunCommit {
            end: Some(end),
            ..commit_of(&admitted)
        };
        self.runs.commit(commit.into()).await.unwrap();
    }
}

/// Adds a large echo and a large configuration, which the stored request has too.
fn large(new: NewRun) -> NewRun {
    with_request(new, |request| {
        let options: Vec<_> = (0..9_000)
            .map(|number| format!("option {number}"))
            .collect();
        let options = json!(options);
        request.presentation.request_echo = json!({"config": options}).into();
        request.config.options.insert("list".to_owned(), options);
    })
}

#[tokio::test]
async fn row_of_a_run_is_small_and_loses_its_large_texts_with_it() {
    let rig = Rig::new().await;
    for (id, thread) in [("r1", "t1"), ("r2", "t2"), ("r3", "t2")] {
        let multitask = deerflow_runtime::runs::MultitaskStrategy::Enqueue;
        let new = with_request(large(new_run(id, thread)), |request| {
            request.multitask = multitask;
        });
        rig.runs.admit(new).await.unwrap();
    }
    let sizes = "SELECT CAST(LENGTH(kwargs_json) + LENGTH(recipe_json) AS TEXT) FROM runs";
    assert_eq!(rig.texts(sizes).await, ["6", "6", "6"]);
    assert_eq!(rig.apart().await, [KWARGS, RECIPE].repeat(3));
    rig.db
        .reads()
        .execute_unprepared("DELETE FROM runs WHERE run_id <> 'r1'")
        .await
        .unwrap();
    assert_eq!(rig.apart().await, [KWARGS, RECIPE]);
}

#[test]
fn parts_end_between_characters() {
    let lens = |text: &str| {
        let parts: Vec<_> = parts_of(text).collect();
        let whole: String = parts.iter().map(|(_, part)| *part).collect();
        assert_eq!(whole, text);
        assert!(
            parts
                .iter()
                .map(|(number, _)| *number)
                .eq(0..parts.len() as i32)
        );
        parts.iter().map(|(_, part)| part.len()).collect::<Vec<_>>()
    };
    assert_eq!(lens(""), [0; 0]);
    assert_eq!(lens("ü"), [2]);
    assert_eq!(lens(&"x".repeat(PART_BYTES)), [PART_BYTES]);
    let odd = format!("x{}", "ü".repeat(PART_BYTES));
    assert_eq!(lens(&odd), [PART_BYTES - 1, PART_BYTES, 2]);
}

#[tokio::test]
async fn text_of_several_parts_is_read_whole() {
    let rig = Rig::new().await;
    let long = "ü".repeat(PART_BYTES);
    let new = with_request(new_run("r1", "t1"), |request| {
        request.presentation.request_echo = json!({ "config": long }).into();
    });
    rig.runs.admit(new).await.unwrap();
    let parts = "SELECT CAST(COUNT(*) AS TEXT) FROM run_text_parts";
    assert_eq!(rig.texts(parts).await, ["3"]);
    let read = rig
        .runs
        .get(&run("r1"), &Owner::None)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(read.kwargs.to_value()["config"], *long);
}

#[tokio::test]
async fn end_of_a_run_deletes_its_stored_request() {
    let rig = Rig::new().await;
    rig.end(large(new_run("r1", "t1")), end_in(RunStatus::Error))
        .await;
    assert_eq!(rig.apart().await, [KWARGS]);
    assert_eq!(rig.runs.delete(&run("r1")).await, Ok(true));
    assert_eq!(rig.apart().await, [""; 0]);
}

#[tokio::test]
async fn webhook_reports_the_whole_echo_and_temporary_threads_lose_it() {
    let rig = Rig::new().await;
    let webhook = WebhookCall {
        url: "http://h.test/".to_owned(),
        started_at: at(2),
        values: None,
        error: None,
    };
    let end = RunEnd {
        webhook: Some(webhook),
        ..end_in(RunStatus::Error)
    };
    rig.end(large(on_temporary_thread(new_run("r1", "t1"))), end)
        .await;
    let reported = rig.texts("SELECT run_json FROM webhook_outbox").await;
    assert!(reported[0].contains("option 8999"));
    assert_eq!(rig.apart().await, [""; 0]);
    assert_eq!(rig.texts("SELECT kwargs_json FROM runs").await, ["{}"]);
}

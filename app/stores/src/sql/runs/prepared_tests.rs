//! Usual runs need prepared statements only; other cases change nothing.

use deerflow_core::clock::{Clock, SystemClock};
use deerflow_core::tasks::Tasks;
use deerflow_runtime::runs::store::{NewRun, RunCommit, RunEnd};
use deerflow_runtime::runs::{RunStatus, ThreadStatus};
use deerflow_runtime::testkit::{memory_update, new_run};
use rusqlite::Connection;
use sea_orm::DbBackend;

use super::commit_guard::{END_THREAD, END_THREAD_WITH_ITS_TITLE};
use super::serialized_run::SerializedRun;
use super::user_runs::COUNT_ACTIVE;
use super::{prepared_admission, prepared_commit};
use crate::db::entity::run;
use crate::db::quotas::QuotaCheck;
use crate::db::tx::Prepared;
use crate::files::database_files::DATABASE_FILE;
use crate::{Database, DatabaseConfig};

/// A connection to a new database file.
struct Rig {
    connection: Connection,
    _held: (tempfile::TempDir, Database, Tasks),
}

impl Rig {
    async fn new() -> Self {
        let (directory, tasks) = (tempfile::tempdir().unwrap(), Tasks::new());
        let config = DatabaseConfig::Sqlite(directory.path().to_owned());
        let database = Database::open(&config, &tasks).await.unwrap();
        Self {
            connection: Connection::open(directory.path().join(DATABASE_FILE)).unwrap(),
            _held: (directory, database, tasks),
        }
    }

    fn is_admitted(&self, run: &NewRun) -> bool {
        let run = SerializedRun::new(run.clone(), DbBackend::Sqlite);
        let work = (run, QuotaCheck::unlimited());
        let admitted = prepared_admission::admit(&self.connection, &work).unwrap();
        matches!(admitted, Prepared::Done(Ok(_)))
    }

    fn is_committed(&self, commit: &RunCommit) -> bool {
        let committed = prepared_commit::commit(&self.connection, commit).unwrap();
        matches!(committed, Prepared::Done(Ok(_)))
    }

    /// Returns the status of a run and that of its thread.
    fn statuses(&self, run: &str) -> (String, String) {
        let sql = "SELECT runs.status, threads_meta.status FROM runs JOIN threads_meta USING (thread_id) WHERE run_id = ?1";
        let row = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
        self.connection.query_row(sql, [run], row).unwrap()
    }

    /// Returns how SQLite finds runs for this statement.
    fn search_of_runs(&self, sql: &str) -> Vec<String> {
        let explain = format!("EXPLAIN QUERY PLAN {sql}");
        let mut statement = self.connection.prepare(&explain).unwrap();
        let steps = statement.raw_query().mapped(|row| row.get("detail"));
        let steps: Vec<String> = steps.map(Result::unwrap).collect();
        let searches = steps.into_iter();
        searches.filter(|step| step.contains(" runs ")).collect()
    }

    fn runs(&self) -> i64 {
        let count = "SELECT COUNT(*) FROM runs";
        self.connection
            .query_row(count, [], |row| row.get(0))
            .unwrap()
    }
}

fn commit_of(run: &NewRun, batch: u64) -> RunCommit {
    let ids = (run.run_id.clone(), run.thread_id.clone());
    RunCommit {
        batch,
        ..RunCommit::new(ids.0, ids.1, 1, SystemClock.now())
    }
}

fn end() -> RunEnd {
    RunEnd {
        status: RunStatus::Success,
        error: None,
        error_name: None,
        stop_reason: None,
        completion: Default::default(),
        thread_status: ThreadStatus::Idle,
        title: None,
        webhook: None,
        kept_values: None,
        discard_checkpoints: false,
        forget_calls: false,
    }
}

#[tokio::test]
async fn usual_runs_of_a_thread_need_prepared_statements_only() {
    let rig = Rig::new().await;
    for id in ["r1", "r2"] {
        let run = new_run(id, "t1");
        assert!(rig.is_admitted(&run));
        let running = RunCommit {
            advance: Some(RunStatus::Running),
            ..commit_of(&run, 1)
        };
        assert!(rig.is_committed(&running));
        assert_eq!(rig.statuses(id), ("running".to_owned(), "busy".to_owned()));
        let ended = RunCommit {
            end: Some(end()),
            memory_update: Some(memory_update(2)),
            ..commit_of(&run, 2)
        };
        assert!(rig.is_committed(&ended));
        assert_eq!(rig.statuses(id), ("success".to_owned(), "idle".to_owned()));
    }
    let updates =
        "SELECT concat_ws(' ', thread_id, user_id, agent, number, due_at) FROM memory_news";
    let update = |row: &rusqlite::Row<'_>| row.get::<_, String>(0);
    let updates = rig.connection.query_row(updates, [], update);
    assert_eq!(updates.unwrap(), "t1 ann  2 1700000002000002");
}

#[tokio::test]
async fn active_runs_are_found_without_reading_others() {
    let rig = Rig::new().await;
    for of_thread in [run::HAS_ACTIVE, END_THREAD, END_THREAD_WITH_ITS_TITLE] {
        assert_eq!(
            rig.search_of_runs(of_thread),
            ["SEARCH runs USING INDEX runs_unfinished_by_thread (thread_id=?)"]
        );
    }
    assert_eq!(
        rig.search_of_runs(COUNT_ACTIVE),
        ["SEARCH runs USING INDEX runs_owned_by_user (user_id=?)"]
    );
}

#[tokio::test]
async fn admission_to_busy_thread_changes_nothing() {
    let rig = Rig::new().await;
    assert!(rig.is_admitted(&new_run("r1", "t1")));
    assert!(!rig.is_admitted(&new_run("r2", "t1")));
    assert!(!rig.is_admitted(&new_run("r1", "t2")));
    assert_eq!(rig.runs(), 1);
}

#[tokio::test]
async fn repeated_and_refused_commits_change_nothing() {
    let rig = Rig::new().await;
    let run = new_run("r1", "t1");
    assert!(rig.is_admitted(&run));
    assert!(rig.is_committed(&commit_of(&run, 1)));
    let repeated = RunCommit {
        end: Some(end()),
        ..commit_of(&run, 1)
    };
    assert!(!rig.is_committed(&repeated));
    let foreign = RunCommit {
        attempt: 2,
        end: Some(end()),
        ..commit_of(&run, 2)
    };
    assert!(!rig.is_committed(&foreign));
    assert_eq!(
        rig.statuses("r1"),
        ("starting".to_owned(), "busy".to_owned())
    );
}

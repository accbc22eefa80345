//! Usual threads and runs need one function each on Postgres; other cases change nothing.

use deerflow_core::ids::SeededIds;
use deerflow_core::state::{StateUpdate, ThreadState};
use deerflow_runtime::runs::store::{CallEntry, CallProgress, NewRun, RunCommit, RunEnd};
use deerflow_runtime::runs::{RunRecord, RunStatus, UserRunLimits};
use deerflow_runtime::testkit::{
    self, checkpoint_write, end_in, event, memory_update, message, new_run, on_temporary_thread,
};
use sea_orm::DbBackend;
use serde_json::json;
use sqlx::PgPool;

use super::serialized_run::SerializedRun;
use super::{admission_function, commit_function};
use crate::db::quotas::QuotaCheck;
use crate::db::scratch_schema;
use crate::db::tx::Prepared;
use crate::{Database, SessionLockTimeouts};

/// A connection to a new schema.
struct Rig {
    database: Database,
}

impl Rig {
    async fn new(schema: &str) -> Self {
        scratch_schema::delete(schema).await;
        let config = scratch_schema::settings(schema);
        let timeouts = SessionLockTimeouts::default();
        let database = Database::open_postgres(&config, timeouts).await.unwrap();
        Self { database }
    }

    fn pool(&self) -> &PgPool {
        self.database.reads().get_postgres_connection_pool()
    }

    async fn admit(&self, run: &NewRun) -> Option<RunRecord> {
        let run = SerializedRun::new(run.clone(), DbBackend::Postgres);
        let work = (run, QuotaCheck::unlimited());
        match admission_function::admit(self.pool(), &work).await.unwrap() {
            Prepared::Done(Ok(admitted)) => Some(admitted.run),
            _ => None,
        }
    }

    async fn is_committed(&self, commit: &RunCommit) -> bool {
        let committed = commit_function::commit(self.pool(), commit).await.unwrap();
        matches!(committed, Prepared::Done(Ok(_)))
    }

    /// Returns the text of one value.
    async fn text(&self, sql: &'static str) -> String {
        sqlx::query_scalar(sql)
            .fetch_one(self.pool())
            .await
            .unwrap()
    }

    /// Returns the statuses of runs and threads, in the order of their ids.
    async fn statuses(&self) -> String {
        let sql = "\
            SELECT (SELECT COALESCE(string_agg(status, ' ' ORDER BY run_id), '') FROM runs) || ' / ' || \
                (SELECT COALESCE(string_agg(status, ' ' ORDER BY thread_id), '') FROM threads_meta)";
        self.text(sql).await
    }
}

fn commit_of(run: &RunRecord, batch: u64) -> RunCommit {
    RunCommit {
        batch,
        ..testkit::commit_of(run)
    }
}

#[tokio::test]
#[ignore = "needs DEERFLOW_TEST_POSTGRES_URL; make test-external runs it"]
async fn usual_run_needs_functions_only_and_all_its_rows_are_written() {
    let rig = Rig::new("deerflow_functions_usual").await;
    let run = rig.admit(&new_run("r1", "t1")).await.unwrap();
    let call = |progress| CallEntry {
        key: "call-1".to_owned(),
        progress,
    };
    let (mut state, mut log_tail) = (ThreadState::default(), 0);
    let question = [message("m1", "a question\u{1f98c}")];
    state
        .apply(StateUpdate::messages(question), &SeededIds::new(0))
        .unwrap();
    let running = RunCommit {
        advance: Some(RunStatus::Running),
        events: vec![event("t1", "r1", "first"), event("t1", "r1", "second")],
        checkpoints: vec![checkpoint_write(
            "t1",
            Some("r1"),
            0,
            &mut state,
            &mut log_tail,
        )],
        // Both entries of a short call are in one commit.
        calls: vec![
            call(CallProgress::Started),
            call(CallProgress::Done(json!("result"))),
        ],
        ..commit_of(&run, 1)
    };
    assert!(rig.is_committed(&running).await);
    assert_eq!(rig.statuses().await, "running / busy");
    let rows = "\
        SELECT (SELECT string_agg(seq || content, ' ' ORDER BY seq) FROM run_events) || \
            (SELECT string_agg(place || message_json, ' ') FROM checkpoint_messages) || \
            (SELECT string_agg(checkpoint_id || machine_json, ' ') FROM checkpoints) || \
            (SELECT string_agg(call_key || result_json, ' ') FROM tool_calls)";
    let rows = rig.text(rows).await;
    for part in [
        r#"1{"text":"first"} 2{"text":"second"}"#,
        "1{",
        "\u{1f98c}",
        r#"{"at":0}"#,
        r#"call-1"result""#,
    ] {
        assert!(rows.contains(part), "{part} in {rows}");
    }
    let ended = RunCommit {
        end: Some(RunEnd {
            title: Some("a title".to_owned()),
            forget_calls: true,
            ..end_in(RunStatus::Success)
        }),
        events: vec![event("t1", "r1", "third")],
        memory_update: Some(memory_update(2)),
        ..commit_of(&run, 2)
    };
    assert!(rig.is_committed(&ended).await);
    assert_eq!(rig.statuses().await, "success / idle");
    let rest = "\
        SELECT (SELECT MAX(seq) FROM run_events) || ' ' || (SELECT COUNT(*) FROM tool_calls) || ' ' || \
            (SELECT COUNT(recipe_json) FROM runs) || ' ' || (SELECT display_name FROM threads_meta) || ' ' || \
            (SELECT concat_ws(' ', thread_id, user_id, agent, number, due_at) FROM memory_news)";
    assert_eq!(
        rig.text(rest).await,
        "3 0 0 a title t1 ann  1 1700000002000002"
    );
    assert!(rig.admit(&new_run("r2", "t1")).await.is_some());
    assert_eq!(rig.statuses().await, "success starting / busy");
}

#[tokio::test]
#[ignore = "needs DEERFLOW_TEST_POSTGRES_URL; make test-external runs it"]
async fn unusual_admissions_change_nothing() {
    let rig = Rig::new("deerflow_functions_admission").await;
    assert!(rig.admit(&new_run("r1", "t1")).await.is_some());
    let before = rig.statuses().await;
    assert!(rig.admit(&new_run("r2", "t1")).await.is_none());
    let foreign = NewRun {
        user_id: Some("another".to_owned()),
        ..new_run("r3", "t1")
    };
    assert!(rig.admit(&foreign).await.is_none());
    let at_limit = NewRun {
        per_user: UserRunLimits {
            max_active: Some(1),
            ..UserRunLimits::default()
        },
        ..new_run("r4", "t2")
    };
    assert!(rig.admit(&at_limit).await.is_none());
    // The thread is inserted before it is known that the run's id is in use.
    let run = SerializedRun::new(new_run("r1", "t3"), DbBackend::Postgres);
    let work = (run, QuotaCheck::unlimited());
    let refused = admission_function::admit(rig.pool(), &work).await;
    assert!(
        matches!(refused, Err(sqlx::Error::Database(error)) if error.code().as_deref() == Some("DF001"))
    );
    assert_eq!(rig.statuses().await, before);
}

#[tokio::test]
#[ignore = "needs DEERFLOW_TEST_POSTGRES_URL; make test-external runs it"]
async fn repeated_and_refused_commits_change_nothing() {
    let rig = Rig::new("deerflow_functions_commit").await;
    let run = rig.admit(&new_run("r1", "t1")).await.unwrap();
    assert!(rig.is_committed(&commit_of(&run, 1)).await);
    let ended = |batch, attempt| RunCommit {
        attempt,
        end: Some(end_in(RunStatus::Success)),
        ..commit_of(&run, batch)
    };
    assert!(!rig.is_committed(&ended(1, 1)).await);
    assert!(!rig.is_committed(&ended(2, 2)).await);
    assert_eq!(rig.statuses().await, "starting / busy");
    let temporary = rig
        .admit(&on_temporary_thread(new_run("r2", "t2")))
        .await
        .unwrap();
    let end = RunCommit {
        end: Some(end_in(RunStatus::Success)),
        ..commit_of(&temporary, 1)
    };
    assert!(!rig.is_committed(&end).await);
    assert_eq!(rig.statuses().await, "starting starting / busy busy");
}

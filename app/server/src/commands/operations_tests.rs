//! Tests of operator commands, with and without a server that uses the database.

use chrono::TimeDelta;
use deerflow_stores::{
    Database, DatabaseConfig, SqlCheckpointer, SqlNodeStore, SqlOperationsStore, SqlRunStore,
    SqlWebhookOutbox,
};
use harness::clock::ManualClock;
use harness::ids::SeededIds;
use harness::runtime::actor_context::Owner;
use harness::runtime::runs::store::{
    NewRun, RunCommit, RunCommitStore, RunEnd, RunQueryStore, WebhookCall,
};
use harness::runtime::runs::{RETRIED_FROM, StopReason};
use harness::runtime::tasks::Tasks;
use harness::testkit::{at, commit_of, end_in, new_run, node, run};

use super::*;
use crate::cli::FileArgs;

/// Database of a server, and an operator's access to it.
struct Installation {
    directory: tempfile::TempDir,
    tasks: Tasks,
    server: Database,
    shared: Database,
}

impl Installation {
    async fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let config = DatabaseConfig::Sqlite(directory.path().to_owned());
        assert!(
            Database::open_shared(&config).await.is_err(),
            "there is nothing yet"
        );
        let tasks = Tasks::new();
        let server = Database::open(&config, &tasks).await.unwrap();
        let shared = Database::open_shared(&config).await.unwrap();
        Self {
            directory,
            tasks,
            server,
            shared,
        }
    }

    async fn run_command(
        &self,
        what: impl AsyncFnOnce(&Operations<'_>, &mut Vec<u8>) -> anyhow::Result<()>,
    ) -> anyhow::Result<String> {
        let db = &self.shared;
        let (nodes, runs) = (
            SqlNodeStore::new(db.clone()),
            SqlOperationsStore::new(db.clone()),
        );
        let (cancels, outbox) = (SqlRunStore::new(db.clone()), SqlWebhookOutbox::new(db));
        let (checkpoints, ids) = (SqlCheckpointer::new(db.clone()), SeededIds::new(1));
        let in_use = Database::probe(&DatabaseConfig::Sqlite(self.directory.path().to_owned()))
            .await
            .unwrap()
            .in_use;
        let operations = Operations {
            nodes: &nodes,
            runs: &runs,
            cancels: &cancels,
            retries: RetryPorts {
                query: &cancels,
                create: &cancels,
                checkpointer: &checkpoints,
                ids: &ids,
                clock: &ManualClock::starting_at(at(100)),
            },
            outbox: &outbox,
            in_use,
            now: at(0) + TimeDelta::hours(1),
        };
        let mut out = Vec::new();
        what(&operations, &mut out).await?;
        Ok(String::from_utf8(out).unwrap())
    }

    async fn runs(&self, args: RunsArgs) -> anyhow::Result<String> {
        self.run_command(async |operations, out| operations.runs(&args, out).await)
            .await
    }

    async fn json(&self, args: RunsArgs) -> Value {
        serde_json::from_str(&self.runs(RunsArgs { json: true, ..args }).await.unwrap()).unwrap()
    }

    async fn webhooks(&self, command: WebhooksCommand) -> anyhow::Result<String> {
        self.run_command(async |operations, out| operations.webhooks(&command, out).await)
            .await
    }
}

fn all() -> RunsArgs {
    RunsArgs {
        limit: 50,
        idle: 600,
        ..RunsArgs::default()
    }
}

#[tokio::test]
async fn nodes_and_runs_are_listed_with_running_server() {
    let installation = Installation::new().await;
    let nodes =
        SqlNodeStore::new(installation.server.clone()).with_address("here 127.0.0.1:1".to_owned());
    nodes
        .register(&node("n1"), std::time::Duration::from_secs(10))
        .await
        .unwrap();
    let runs = SqlRunStore::new(installation.server.clone());
    runs.admit(new_run("r1", "t1")).await.unwrap();
    runs.admit(NewRun {
        owner: node("gone"),
        created_at: at(1),
        at: at(1),
        ..new_run("r2", "t2")
    })
    .await
    .unwrap();
    let listed = installation
        .run_command(async |operations, out| operations.nodes(&NodesArgs::default(), out).await)
        .await
        .unwrap();
    assert!(
        listed.starts_with("NODE")
            && listed.contains("n1    here 127.0.0.1:1")
            && listed.lines().count() == 2,
        "{listed}"
    );
    let text = installation.runs(all()).await.unwrap();
    assert!(
        text.contains("r1") && text.contains("r2") && text.contains("no live process executes it"),
        "{text}"
    );
    let found = installation.json(all()).await;
    let ids: Vec<_> = found
        .as_array()
        .unwrap()
        .iter()
        .map(|run| {
            (
                run["run_id"].as_str().unwrap(),
                run["state"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(ids, [("r2", "starting"), ("r1", "starting")]);
    let stuck = installation
        .json(RunsArgs {
            stuck: true,
            idle: 99_999,
            ..all()
        })
        .await;
    assert_eq!(
        (stuck.as_array().unwrap().len(), &stuck[0]["run_id"]),
        (1, &json!("r2"))
    );
    // A stopped server executes no runs, whatever its row claims.
    installation.tasks.shut_down().await;
    let Installation {
        directory,
        tasks,
        server,
        shared,
    } = installation;
    drop((nodes, runs, server));
    let server = shared.clone();
    let installation = Installation {
        directory,
        tasks,
        server,
        shared,
    };
    assert_eq!(
        installation
            .json(RunsArgs {
                stuck: true,
                idle: 99_999,
                ..all()
            })
            .await
            .as_array()
            .unwrap()
            .len(),
        2
    );
    assert_eq!(
        installation
            .run_command(async |operations, out| operations.nodes(&NodesArgs::default(), out).await)
            .await
            .unwrap()
            .lines()
            .count(),
        1
    );
}

#[tokio::test]
async fn run_cancel_is_requested() {
    let installation = Installation::new().await;
    let runs = SqlRunStore::new(installation.server.clone());
    let admitted = runs.admit(new_run("r1", "t1")).await.unwrap().run;
    let cancel = |id: &str| RunsArgs {
        command: Some(RunsCommand::Cancel {
            run_id: id.to_owned(),
            rollback: false,
            file: FileArgs::default(),
        }),
        ..all()
    };
    assert!(
        installation
            .runs(cancel("r1"))
            .await
            .unwrap()
            .contains("requested cancellation")
    );
    assert_eq!(installation.json(all()).await[0]["cancel_requested"], true);
    for unknown in ["r9", "not a run id", ""] {
        assert!(
            installation.runs(cancel(unknown)).await.is_err(),
            "{unknown}"
        );
    }
    let commit = RunCommit {
        end: Some(end_in(RunStatus::Error)),
        ..commit_of(&admitted)
    };
    runs.commit(commit.into()).await.unwrap();
    assert!(
        installation
            .runs(cancel("r1"))
            .await
            .unwrap_err()
            .to_string()
            .contains("already ended")
    );
    let failed = installation
        .json(RunsArgs {
            state: Some(crate::cli::RunState::Error),
            ..all()
        })
        .await;
    assert_eq!(failed[0]["run_id"], "r1");
}

#[tokio::test]
async fn poisoned_run_is_listed_and_retried() {
    let installation = Installation::new().await;
    let runs = SqlRunStore::new(installation.server.clone());
    for (id, reason) in [
        ("r1", StopReason::AttemptsExhausted),
        ("r2", StopReason::NodeLost),
    ] {
        let admitted = runs.admit(new_run(id, &format!("t-{id}"))).await;
        let end = RunEnd {
            stop_reason: Some(reason.into()),
            ..end_in(RunStatus::Error)
        };
        let commit = RunCommit {
            end: Some(end),
            ..commit_of(&admitted.unwrap().run)
        };
        runs.commit(commit.into()).await.unwrap();
    }
    let poisoned = || RunsArgs {
        state: Some(RunState::Poisoned),
        ..all()
    };
    let found = installation.json(poisoned()).await;
    assert_eq!(
        (
            found.as_array().unwrap().len(),
            &found[0]["run_id"],
            &found[0]["stop_reason"],
            &found[0]["losses"]
        ),
        (1, &json!("r1"), &json!("attempts_exhausted"), &json!(0))
    );
    let text = installation.runs(poisoned()).await.unwrap();
    assert!(text.contains("attempts_exhausted"), "{text}");
    let text = installation.runs(retry("r1")).await.unwrap();
    assert!(text.contains("as a retry of run r1"), "{text}");
    let queued = installation.json(all()).await;
    assert_eq!(
        (
            &queued[0]["state"],
            &queued[0]["thread_id"],
            &queued[0]["owner"]
        ),
        (&json!("pending"), &json!("t-r1"), &Value::Null)
    );
    let new = RunId::parse(queued[0]["run_id"].as_str().unwrap()).unwrap();
    let new = runs.get(&new, &Owner::None).await.unwrap().unwrap();
    assert_eq!(new.metadata[RETRIED_FROM], "r1");
}

#[tokio::test]
async fn refused_retry_names_its_cause() {
    let installation = Installation::new().await;
    let runs = SqlRunStore::new(installation.server.clone());
    runs.admit(new_run("r1", "t1")).await.unwrap();
    for (id, cause) in [
        ("r 1", "is not a run id"),
        (
            "r2",
            "deleted with its thread; `deerflow runs --state poisoned`",
        ),
        ("r1", "run r1 is not poisoned: its status is starting"),
    ] {
        let refused = installation.runs(retry(id)).await.unwrap_err().to_string();
        assert!(refused.contains(cause), "{refused}");
    }
}

fn retry(id: &str) -> RunsArgs {
    RunsArgs {
        command: Some(RunsCommand::Retry {
            run_id: id.to_owned(),
            file: FileArgs::default(),
        }),
        ..all()
    }
}

#[tokio::test]
async fn dead_letters_are_listed_and_resent() {
    let installation = Installation::new().await;
    let (runs, outbox) = (
        SqlRunStore::new(installation.server.clone()),
        SqlWebhookOutbox::new(&installation.server),
    );
    for id in ["r1", "r2"] {
        let admitted = runs
            .admit(new_run(id, &format!("t-{id}")))
            .await
            .unwrap()
            .run;
        let call = WebhookCall {
            url: "http://h.test/x?token=canary".to_owned(),
            started_at: at(0),
            values: None,
            error: None,
        };
        let end = RunEnd {
            webhook: Some(call),
            ..end_in(RunStatus::Error)
        };
        let commit = RunCommit {
            end: Some(end),
            ..commit_of(&admitted)
        };
        runs.commit(commit.into()).await.unwrap();
    }
    outbox
        .failed(&[run("r1")], "the receiver\nanswered 500", None, at(9))
        .await
        .unwrap();
    let list = |dead, json| WebhooksCommand::List {
        dead,
        limit: 50,
        json,
        file: FileArgs::default(),
    };
    let dead = installation.webhooks(list(true, false)).await.unwrap();
    assert!(
        dead.contains("http://h.test/x ")
            && dead.contains("the receiver answered 500")
            && dead.lines().count() == 2,
        "{dead}"
    );
    let every: Value =
        serde_json::from_str(&installation.webhooks(list(false, true)).await.unwrap()).unwrap();
    assert_eq!(every.as_array().unwrap().len(), 2);
    assert!(!every.to_string().contains("canary") && !dead.contains("canary"));
    let resend = |id: &str| WebhooksCommand::Resend {
        run_ids: vec![id.to_owned()],
        file: FileArgs::default(),
    };
    assert!(installation.webhooks(resend("r9")).await.is_err());
    assert!(
        installation
            .webhooks(resend("r1"))
            .await
            .unwrap()
            .contains("resent immediately")
    );
    let now = at(0) + TimeDelta::hours(1);
    assert_eq!(outbox.due(now, now, 9).await.unwrap().len(), 2);
}

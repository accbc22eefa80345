//! All stores meet the contracts of their ports.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests too")]

#[path = "support/postgres.rs"]
mod postgres_schema;

use std::sync::Arc;

use deerflow_core::tasks::Tasks;
use deerflow_domain::testkit::ThreadStores;
use deerflow_runtime::testkit::Keep;
use deerflow_stores::{
    Database, DatabaseConfig, JsonlRunEventStore, SplitCommitStore, SqlApiKeyStore,
    SqlAssistantStore, SqlCheckpointer, SqlFeedbackStore, SqlNodeStore, SqlRequestStore,
    SqlRunEventStore, SqlRunStore, SqlStreamLog, SqlThreadStore, SqlUserRows, SqlWebhookOutbox,
};

/// Builds all ports over one database.
fn ports_over(db: &Database, keep: Arc<dyn Keep>) -> ThreadStores {
    let runs = Arc::new(SqlRunStore::new(db.clone()));
    ThreadStores {
        threads: Arc::new(SqlThreadStore::new(db.clone())),
        branches: Arc::new(SqlThreadStore::new(db.clone())),
        feedback: Arc::new(SqlFeedbackStore::new(db.clone())),
        assistants: Arc::new(SqlAssistantStore::new(db.clone())),
        runs: deerflow_runtime::testkit::RunStores {
            create: runs.clone(),
            commit: runs.clone(),
            query: runs.clone(),
            delete: runs.clone(),
            ledger: runs,
            nodes: Arc::new(SqlNodeStore::new(db.clone())),
            events: Arc::new(SqlRunEventStore::new(db.clone())),
            webhooks: Arc::new(SqlWebhookOutbox::new(db)),
            requests: Arc::new(SqlRequestStore::new(db.clone())),
            streams: Arc::new(SqlStreamLog::new(db.clone())),
            checkpoints: Arc::new(SqlCheckpointer::new(db.clone())),
            keep,
        },
    }
}

/// A database, and the resources that live as long as it.
type Opened = (Database, Arc<dyn Keep>);

async fn sqlite() -> Opened {
    let directory = tempfile::tempdir().unwrap();
    let tasks = Tasks::new();
    let db = Database::open(&DatabaseConfig::Sqlite(directory.path().to_owned()), &tasks)
        .await
        .unwrap();
    (db, Arc::new((directory, tasks)))
}

async fn memory() -> Opened {
    let tasks = Tasks::new();
    (
        Database::open(&DatabaseConfig::Memory, &tasks)
            .await
            .unwrap(),
        Arc::new(tasks),
    )
}

/// Builds the ports with runs and threads in SQLite, and the journal as JSON lines.
async fn split() -> ThreadStores {
    let directory = tempfile::tempdir().unwrap();
    let tasks = Tasks::new();
    let db = Database::open(&DatabaseConfig::Sqlite(directory.path().to_owned()), &tasks)
        .await
        .unwrap();
    let journal = Arc::new(JsonlRunEventStore::open(&directory.path().join("run_events")).unwrap());
    let split = Arc::new(SplitCommitStore::new(
        SqlRunStore::new(db.clone()),
        journal.clone(),
    ));
    let mut stores = ports_over(&db, Arc::new((directory, tasks)));
    let threads = Arc::new(SqlThreadStore::new(db).with_journal(journal.clone()));
    stores.threads = threads.clone();
    stores.branches = threads;
    stores.runs.commit = split.clone();
    stores.runs.delete = split;
    stores.runs.events = journal;
    stores
}

/// Opens a schema for this test, emptied before use.
async fn postgres() -> Opened {
    (postgres_schema::open_empty().await, Arc::new(()))
}

/// Opens the schema of this test on a second node.
async fn postgres_again(_first: &Database) -> Database {
    postgres_schema::open().await
}

/// Returns the only node of a SQLite database.
async fn only_node(first: &Database) -> Database {
    first.clone()
}

/// The statements of all kinds are valid, and other users lose nothing.
async fn rows_of_a_user_are_deleted(open: impl AsyncFn() -> Opened) {
    use deerflow_domain::api_keys::{ApiKeyStore, Rights, issue};

    let (db, _keep) = open().await;
    let keys = SqlApiKeyStore::new(&db);
    let now = deerflow_runtime::testkit::at(0);
    for user in ["ann", "bob"] {
        issue(&keys, user, Rights::User, None, None, now)
            .await
            .unwrap();
    }
    let mut data = vec![SqlUserRows::abandoned_runs(&db)];
    data.extend(SqlUserRows::sources(&db));
    data.extend(SqlUserRows::rest(&db));
    let mut deleted = Vec::new();
    for data in data {
        let found = data.delete_all("ann").await.unwrap();
        deleted.extend((found.count > 0).then_some((found.kind, found.count)));
    }
    assert_eq!(deleted, [("api_keys".to_owned(), 1)]);
    let left = keys.list(None).await.unwrap();
    assert_eq!(left.len(), 1);
    assert_eq!(left[0].user_id, "bob");
}

macro_rules! suites_of_threads {
    ($attrs:tt $open:path) => {
        async fn runs() -> deerflow_runtime::testkit::RunStores {
            $open().await.runs
        }
        async fn assistants() -> deerflow_domain::testkit::assistants::AssistantStores {
            let stores = $open().await;
            deerflow_domain::testkit::assistants::AssistantStores { assistants: stores.assistants, keep: stores.runs.keep }
        }
        deerflow_runtime::run_store_suite!($attrs runs);
        deerflow_runtime::node_store_suite!($attrs runs);
        deerflow_runtime::tool_ledger_suite!($attrs runs);
        deerflow_runtime::run_events_suite!($attrs runs);
        deerflow_runtime::checkpointer_suite!($attrs runs);
        deerflow_runtime::webhook_outbox_suite!($attrs runs);
        deerflow_runtime::request_store_suite!($attrs runs);
        deerflow_runtime::stream_log_suite!($attrs runs);
        deerflow_domain::thread_store_suite!($attrs $open);
        deerflow_domain::thread_search_suite!($attrs $open);
        deerflow_domain::branch_store_suite!($attrs $open);
        deerflow_domain::feedback_store_suite!($attrs $open);
        deerflow_domain::assistant_store_suite!($attrs assistants);
    };
}

macro_rules! all_suites {
    ($attrs:tt $open:path, $second:path) => {
        async fn threads() -> deerflow_domain::testkit::ThreadStores {
            let (db, keep) = $open().await;
            super::ports_over(&db, keep)
        }
        async fn items() -> deerflow_domain::testkit::items::ItemStores {
            let (db, keep) = $open().await;
            deerflow_domain::testkit::items::ItemStores { items: std::sync::Arc::new(deerflow_stores::SqlItemStore::new(db)), keep }
        }
        async fn crons() -> deerflow_domain::testkit::crons::CronStores {
            let (db, keep) = $open().await;
            deerflow_domain::testkit::crons::CronStores {
                crons: std::sync::Arc::new(deerflow_stores::SqlCronStore::new(db.clone())),
                threads: Some(std::sync::Arc::new(deerflow_stores::SqlThreadStore::new(db.clone()))),
                accounts: Some(deerflow_stores::SqlAccountStore::new(db).stores().accounts),
                keep,
            }
        }
        async fn thread_logs() -> deerflow_domain::testkit::thread_log::ThreadLogStores {
            let (db, keep) = $open().await;
            deerflow_domain::testkit::thread_log::ThreadLogStores {
                log: std::sync::Arc::new(deerflow_stores::SqlThreadLog::new(db.clone())),
                threads: Some(std::sync::Arc::new(deerflow_stores::SqlThreadStore::new(db))),
                keep,
            }
        }
        async fn tasks() -> deerflow_domain::testkit::scheduled_tasks::TaskStores {
            let (db, keep) = $open().await;
            deerflow_domain::testkit::scheduled_tasks::TaskStores {
                tasks: std::sync::Arc::new(deerflow_stores::SqlTaskStore::new(db.clone())),
                threads: Some(std::sync::Arc::new(deerflow_stores::SqlThreadStore::new(db.clone()))),
                accounts: Some(deerflow_stores::SqlAccountStore::new(db).stores().accounts),
                keep,
            }
        }
        async fn channels() -> deerflow_domain::testkit::channels::ChannelSuite {
            let (db, keep) = $open().await;
            let stores = deerflow_stores::SqlChannelStore::new(db.clone()).stores();
            let accounts = Some(deerflow_stores::SqlAccountStore::new(db).stores().accounts);
            deerflow_domain::testkit::channels::ChannelSuite { stores, accounts, keep }
        }
        async fn flows() -> deerflow_domain::testkit::flows::FlowStores {
            let (db, keep) = $open().await;
            deerflow_domain::testkit::flows::FlowStores {
                flows: std::sync::Arc::new(deerflow_stores::SqlFlowStore::new(db.clone())),
                threads: Some(super::ports_over(&db, keep.clone())),
                keep,
            }
        }
        async fn keys() -> deerflow_domain::testkit::api_keys::KeyStores {
            let (db, keep) = $open().await;
            deerflow_domain::testkit::api_keys::KeyStores { keys: std::sync::Arc::new(deerflow_stores::SqlApiKeyStore::new(&db)), keep }
        }
        async fn accounts() -> deerflow_domain::testkit::accounts::AccountSuite {
            let (db, keep) = $open().await;
            let keys = std::sync::Arc::new(deerflow_stores::SqlApiKeyStore::new(&db));
            let other_node = deerflow_stores::SqlAccountStore::new($second(&db).await).stores();
            let stores = deerflow_stores::SqlAccountStore::new(db).stores();
            deerflow_domain::testkit::accounts::AccountSuite { stores, other_node, keys, keep }
        }
        async fn memories() -> deerflow_runtime::testkit::memories::UserMemoryStores {
            let (db, keep) = $open().await;
            deerflow_runtime::testkit::memories::UserMemoryStores { memories: std::sync::Arc::new(deerflow_stores::SqlMemoryStore::new(db)), keep }
        }
        async fn memory_updates() -> deerflow_runtime::testkit::memory_updates::MemoryUpdateStores {
            let (db, keep) = $open().await;
            deerflow_runtime::testkit::memory_updates::MemoryUpdateStores {
                runs: super::ports_over(&db, keep).runs,
                memories: std::sync::Arc::new(deerflow_stores::SqlMemoryStore::new(db)),
            }
        }
        async fn upkeep() -> deerflow_domain::testkit::maintenance::MaintenanceStores {
            let (db, keep) = $open().await;
            let runs = super::ports_over(&db, keep).runs;
            deerflow_domain::testkit::maintenance::MaintenanceStores {
                upkeep: std::sync::Arc::new(deerflow_stores::SqlMaintenanceStore::new(db.clone())),
                flows: std::sync::Arc::new(deerflow_stores::SqlFlowStore::new(db)),
                runs,
            }
        }
        async fn usage() -> deerflow_domain::testkit::usage::UsageStores {
            let (db, keep) = $open().await;
            let runs = super::ports_over(&db, keep).runs;
            let usage = std::sync::Arc::new(deerflow_stores::SqlUsageStore::new(db));
            deerflow_domain::testkit::usage::UsageStores {
                usage,
                create: runs.create,
                commit: runs.commit,
                delete: runs.delete,
                keep: runs.keep,
            }
        }
        suites_of_threads!($attrs threads);
        deerflow_runtime::memory_store_suite!($attrs memories);
        deerflow_runtime::memory_update_suite!($attrs memory_updates);
        deerflow_domain::maintenance_suite!($attrs upkeep);
        deerflow_domain::usage_store_suite!($attrs usage);
        deerflow_domain::cron_store_suite!($attrs crons);
        deerflow_domain::thread_log_suite!($attrs thread_logs);
        mod scheduled_tasks {
            deerflow_domain::task_store_suite!($attrs super::tasks);
        }
        mod channels {
            deerflow_domain::channel_store_suite!($attrs super::channels);
        }
        mod accounts {
            deerflow_domain::account_store_suite!($attrs super::accounts);
        }
        deerflow_runtime::promises! { $attrs $open, [super] rows_of_a_user_are_deleted }
        deerflow_domain::flow_store_suite!($attrs flows);
        deerflow_domain::api_key_store_suite!($attrs keys);
        deerflow_domain::item_store_suite!($attrs items);
    };
}

mod sqlite {
    all_suites!([#[tokio::test(flavor = "multi_thread", worker_threads = 2)]] super::sqlite, super::only_node);
}

mod sqlite_in_memory {
    all_suites!([#[tokio::test(flavor = "multi_thread", worker_threads = 2)]] super::memory, super::only_node);
}

mod sqlite_with_jsonl {
    suites_of_threads!([#[tokio::test(flavor = "multi_thread", worker_threads = 2)]] super::split);
}

mod postgres_server {
    all_suites!([
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        #[ignore = "needs DEERFLOW_TEST_POSTGRES_URL; make test-external runs it"]
    ] super::postgres, super::postgres_again);
}

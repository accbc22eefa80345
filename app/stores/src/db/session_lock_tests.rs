//! A session lock whose connection breaks, and leases while requests use every other connection.

use std::time::Duration;

use deerflow_runtime::runs::store::{NodeStore, StoreLockStatus};
use deerflow_runtime::testkit::node;
use sea_orm::{ConnectionTrait, TransactionTrait};

use crate::db::scratch_schema;
use crate::{Database, OpenError, PostgresConfig, SessionLockTimeouts, SqlNodeStore};

/// Longer than a healthy server takes: a connection that is dropped for being slow would acquire
/// the lock again.
const SLOW: Duration = Duration::from_secs(60);
/// Longer than every test.
const LEASE: Duration = Duration::from_secs(600);

/// Opens the database. `fresh` is `false` for a second process of the same schema.
async fn open(schema: &str, exclusive: bool, fresh: bool) -> Result<Database, OpenError> {
    if fresh {
        scratch_schema::delete(schema).await;
    }
    let config = PostgresConfig {
        exclusive,
        ..scratch_schema::settings(schema)
    };
    Database::open_postgres(
        &config,
        SessionLockTimeouts {
            connect: SLOW,
            release: SLOW,
        },
    )
    .await
}

/// Terminates the session that holds the lock, as a server or network failure does.
async fn cut(db: &Database) {
    let cut = "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 1 \
        AND ((classid::bigint << 32) | objid::bigint) = hashtextextended('deerflow:' || current_schema(), 0)";
    db.reads().execute_unprepared(cut).await.unwrap();
    let held = "DO $$ BEGIN WHILE EXISTS (SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 1 \
        AND ((classid::bigint << 32) | objid::bigint) = hashtextextended('deerflow:' || current_schema(), 0)) \
        LOOP PERFORM pg_sleep(0.01); END LOOP; END $$";
    db.reads().execute_unprepared(held).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs DEERFLOW_TEST_POSTGRES_URL; make test-external runs it"]
async fn broken_session_reacquires_lock() {
    for exclusive in [true, false] {
        let schema = format!("deerflow_place_again_{exclusive}");
        let db = open(&schema, exclusive, true).await.unwrap();
        assert_eq!(db.hold().await, Ok(StoreLockStatus::Kept));
        cut(&db).await;
        let mut session = db.hold().await;
        if session.is_err() {
            // The broken connection is detected on use.
            session = db.hold().await;
        }
        assert_eq!(session, Ok(StoreLockStatus::Retaken));
        assert_eq!(db.hold().await, Ok(StoreLockStatus::Kept));
        let other = open(&schema, !exclusive, false).await;
        assert!(other.is_err(), "other processes are excluded again");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs DEERFLOW_TEST_POSTGRES_URL; make test-external runs it"]
async fn lock_taken_by_other_process_is_lost_until_it_ends() {
    let db = open("deerflow_place_lost", true, true).await.unwrap();
    cut(&db).await;
    let other = open("deerflow_place_lost", true, false).await.unwrap();
    let mut session = db.hold().await;
    if session.is_err() {
        session = db.hold().await;
    }
    assert_eq!(session, Ok(StoreLockStatus::Lost));
    assert_eq!(db.hold().await, Ok(StoreLockStatus::Lost));
    cut(&other).await;
    assert_eq!(db.hold().await, Ok(StoreLockStatus::Retaken));
    assert_eq!(
        other
            .hold()
            .await
            .map_or(StoreLockStatus::Lost, |hold| hold),
        StoreLockStatus::Lost
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs DEERFLOW_TEST_POSTGRES_URL; make test-external runs it"]
async fn lease_is_renewed_while_pool_is_exhausted() {
    let db = open("deerflow_place_lease", false, true).await.unwrap();
    let nodes = SqlNodeStore::new(db.clone());
    nodes.register(&node("n1"), LEASE).await.unwrap();
    // The pool's only connection is busy: other callers time out.
    let busy = db.reads().begin().await.unwrap();
    assert_eq!(nodes.renew(&node("n1"), LEASE).await, Ok(true));
    assert_eq!(nodes.owned(&node("n1")).await, Ok(vec![]));
    drop(busy);
}

//! A place in Postgres whose session breaks, and leases while requests have every other connection.

use std::time::Duration;

use harness::runtime::runs::store::{Hold, NodeStore};
use harness::testkit::node;
use sea_orm::{ConnectionTrait, TransactionTrait};
use sqlx::{Connection, Executor, PgConnection};

use crate::{Database, OpenError, PlaceLimits, PostgresConfig, SqlNodeStore};

fn url() -> String {
    #[expect(
        clippy::disallowed_methods,
        reason = "tests have no configuration to ask"
    )]
    let url = std::env::var("DEERFLOW_TEST_POSTGRES_URL");
    url.expect("set DEERFLOW_TEST_POSTGRES_URL to a scratch database; the tests make schemas in it")
}

/// Longer than a server takes that works: a connection that is given up because it is slow has the place taken again.
const SLOW: Duration = Duration::from_secs(60);
/// Longer than any test.
const LEASE: Duration = Duration::from_secs(600);

/// A second process of one schema is opened with `fresh` off.
async fn open(schema: &str, exclusive: bool, fresh: bool) -> Result<Database, OpenError> {
    if fresh {
        let mut direct = PgConnection::connect(&url()).await.unwrap();
        direct
            .execute(sqlx::AssertSqlSafe(format!(
                "DROP SCHEMA IF EXISTS {schema} CASCADE"
            )))
            .await
            .unwrap();
    }
    let config = PostgresConfig {
        url: url().into(),
        schema: Some(schema.to_owned()),
        max_connections: 1,
        exclusive,
    };
    Database::open_postgres(
        &config,
        PlaceLimits {
            dial: SLOW,
            rest: SLOW,
        },
    )
    .await
}

/// Cuts the session that keeps the place, as a server or a network does.
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
async fn a_place_whose_session_breaks_is_taken_again() {
    for exclusive in [true, false] {
        let schema = format!("deerflow_place_again_{exclusive}");
        let db = open(&schema, exclusive, true).await.unwrap();
        assert_eq!(db.hold().await, Ok(Hold::Kept));
        cut(&db).await;
        let mut held = db.hold().await;
        if held.is_err() {
            // The broken connection is noticed by using it.
            held = db.hold().await;
        }
        assert_eq!(held, Ok(Hold::Retaken));
        assert_eq!(db.hold().await, Ok(Hold::Kept));
        let other = open(&schema, !exclusive, false).await;
        assert!(other.is_err(), "others are kept out again");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs DEERFLOW_TEST_POSTGRES_URL; make test-external runs it"]
async fn a_place_that_another_process_took_meanwhile_is_lost_until_that_one_ends() {
    let db = open("deerflow_place_lost", true, true).await.unwrap();
    cut(&db).await;
    let other = open("deerflow_place_lost", true, false).await.unwrap();
    let mut held = db.hold().await;
    if held.is_err() {
        held = db.hold().await;
    }
    assert_eq!(held, Ok(Hold::Lost));
    assert_eq!(db.hold().await, Ok(Hold::Lost));
    cut(&other).await;
    assert_eq!(db.hold().await, Ok(Hold::Retaken));
    assert_eq!(
        other.hold().await.map_or(Hold::Lost, |hold| hold),
        Hold::Lost
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs DEERFLOW_TEST_POSTGRES_URL; make test-external runs it"]
async fn a_lease_is_renewed_while_requests_have_every_connection() {
    let db = open("deerflow_place_lease", false, true).await.unwrap();
    let nodes = SqlNodeStore::new(db.clone());
    nodes.register(&node("n1"), LEASE).await.unwrap();
    // The pool has one connection, and this keeps it, whatever the server thinks of it: who waits for another one is refused in the end.
    let busy = db.reads().begin().await.unwrap();
    assert_eq!(nodes.renew(&node("n1"), LEASE).await, Ok(true));
    assert_eq!(nodes.owned(&node("n1")).await, Ok(vec![]));
    drop(busy);
}

//! Query plans of searches: they use indexes.

use deerflow_core::ids::ThreadId;
use deerflow_core::tasks::Tasks;
use deerflow_domain::threads::{NewThread, ThreadSearch, ThreadSort, ThreadStore};
use deerflow_runtime::runs::ThreadStatus;
use sea_orm::{ConnectionTrait, Statement};
use serde_json::json;

use super::*;
use crate::sql::threads::SqlThreadStore;
use crate::{Database, DatabaseConfig};

fn ann() -> Owner {
    Owner::User("ann".to_owned())
}

/// Returns SQLite's plan for a search.
async fn plan(db: &Database, search: ThreadSearch) -> String {
    let query = statement(
        db.reads(),
        &ThreadSearch {
            limit: 10,
            ..search
        },
        &ann(),
    )
    .await
    .unwrap();
    let explain = Statement {
        sql: format!("EXPLAIN QUERY PLAN {}", query.sql),
        ..query
    };
    let rows = db.reads().query_all_raw(explain).await.unwrap();
    let lines: Vec<String> = rows
        .iter()
        .map(|row| row.try_get("", "detail").unwrap())
        .collect();
    lines.join("; ")
}

fn metadata(entries: serde_json::Value) -> ThreadSearch {
    ThreadSearch {
        metadata: entries.as_object().cloned().unwrap(),
        ..ThreadSearch::default()
    }
}

#[tokio::test]
async fn each_order_uses_an_index_without_sort() {
    let tasks = Tasks::new();
    let db = Database::open(&DatabaseConfig::Memory, &tasks)
        .await
        .unwrap();
    for (sort_by, index) in [
        (ThreadSort::UpdatedAt, "threads_meta_by_update"),
        (ThreadSort::StateUpdatedAt, "threads_meta_by_state_update"),
        (ThreadSort::CreatedAt, "threads_meta_by_creation"),
        (ThreadSort::ThreadId, "threads_meta_by_id"),
        (ThreadSort::Status, "threads_meta_by_status"),
    ] {
        for ascending in [false, true] {
            let plan = plan(
                &db,
                ThreadSearch {
                    sort_by,
                    ascending,
                    ..ThreadSearch::default()
                },
            )
            .await;
            assert!(
                plan.contains(&format!("USING INDEX {index} (user_id=?)")),
                "{sort_by:?}: {plan}"
            );
            // Threads with the same time may be sorted among themselves.
            assert!(
                !plan.contains("USE TEMP B-TREE FOR ORDER BY"),
                "{sort_by:?}: {plan}"
            );
        }
    }
    let by_status = plan(
        &db,
        ThreadSearch {
            status: Some(ThreadStatus::Busy),
            ..ThreadSearch::default()
        },
    )
    .await;
    assert!(
        by_status.contains("threads_meta_by_status (user_id=? AND status=?)")
            && !by_status.contains("TEMP"),
        "{by_status}"
    );
    let pinned = plan(
        &db,
        ThreadSearch {
            pinned_first: true,
            ..ThreadSearch::default()
        },
    )
    .await;
    assert!(
        pinned.contains("threads_meta_by_user (user_id=?)") && !pinned.contains("TEMP"),
        "{pinned}"
    );
}

#[tokio::test]
async fn offset_is_skipped_in_index_only() {
    let tasks = Tasks::new();
    let db = Database::open(&DatabaseConfig::Memory, &tasks)
        .await
        .unwrap();
    for (sort_by, index) in [
        (ThreadSort::UpdatedAt, "threads_meta_by_update"),
        (ThreadSort::Status, "threads_meta_by_status"),
    ] {
        let plan = plan(
            &db,
            ThreadSearch {
                sort_by,
                offset: 50_000,
                ..ThreadSearch::default()
            },
        )
        .await;
        assert!(
            plan.contains(&format!("USING COVERING INDEX {index} (user_id=?)")),
            "{sort_by:?}: {plan}"
        );
    }
}

#[tokio::test]
async fn search_starts_from_rare_metadata_or_status() {
    let tasks = Tasks::new();
    let db = Database::open(&DatabaseConfig::Memory, &tasks)
        .await
        .unwrap();
    let store = SqlThreadStore::new(db.clone());
    for n in 0..3_i64 {
        let metadata = json!({ "mark": n, "of": { "all": true } })
            .as_object()
            .cloned()
            .unwrap();
        let at = chrono::DateTime::from_timestamp_micros(n).unwrap();
        let thread_id = ThreadId::parse(format!("t{n}")).unwrap();
        let new = NewThread {
            thread_id,
            user_id: Some("ann".to_owned()),
            assistant: None,
            assistant_id: None,
            metadata,
            ttl: None,
            request: None,
            at,
        };
        store.create(new).await.unwrap();
    }
    let with_status = ThreadSearch {
        status: Some(ThreadStatus::Idle),
        sort_by: ThreadSort::ThreadId,
        ..ThreadSearch::default()
    };
    for search in [
        metadata(json!({ "mark": 1 })),
        metadata(json!({ "of": { "all": true } })),
        ThreadSearch {
            sort_by: ThreadSort::UpdatedAt,
            pinned_first: true,
            ..with_status.clone()
        },
        with_status,
    ] {
        let plan = plan(&db, search.clone()).await;
        assert!(
            plan.contains("threads_meta_1 (thread_id=?)"),
            "{search:?}: {plan}"
        );
    }
}

#[tokio::test]
async fn page_from_head_of_order_equals_full_page() {
    let tasks = Tasks::new();
    let db = Database::open(&DatabaseConfig::Memory, &tasks)
        .await
        .unwrap();
    let store = SqlThreadStore::new(db.clone());
    for n in 0..40_i64 {
        let metadata = json!({ "even": n % 2 == 0 }).as_object().cloned().unwrap();
        let at = chrono::DateTime::from_timestamp_micros(n % 7).unwrap();
        let thread_id = ThreadId::parse(format!("t{n}")).unwrap();
        let user_id = Some(if n % 5 == 0 { "bob" } else { "ann" }.to_owned());
        let new = NewThread {
            thread_id,
            user_id,
            assistant: None,
            assistant_id: None,
            metadata,
            ttl: None,
            request: None,
            at,
        };
        store.create(new).await.unwrap();
    }
    for (sort_by, offset) in [
        (ThreadSort::UpdatedAt, 0),
        (ThreadSort::ThreadId, 3),
        (ThreadSort::Status, 9),
    ] {
        let search = ThreadSearch {
            sort_by,
            offset,
            limit: 5,
            ..metadata(json!({ "even": true }))
        };
        let filters = Filters::of(&search, &ann(), db.reads()).unwrap();
        let found = page(filters.head_of_order(), &search)
            .all(db.reads())
            .await
            .unwrap();
        assert_eq!(
            found,
            page(filters.matching(None), &search)
                .all(db.reads())
                .await
                .unwrap(),
            "{sort_by:?}"
        );
        assert_eq!(found.len(), 5, "{sort_by:?}");
    }
}

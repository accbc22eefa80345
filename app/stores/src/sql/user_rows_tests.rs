//! Tests of the rows that go with an account, over all tables of the schema.

use deerflow_core::actor_context::Owner;
use deerflow_core::ids::ThreadId;
use deerflow_core::tasks::Tasks;
use deerflow_domain::accounts::{AuditAction, NewAuditEntry};
use deerflow_domain::testkit::accounts::account;
use deerflow_domain::threads::{Deleted, ThreadStore};
use deerflow_runtime::testkit::at;
use sea_orm::{DatabaseBackend, QueryResult};

use super::*;
use crate::{DatabaseConfig, SqlAccountStore, SqlThreadStore};

/// Column of a table.
struct Column {
    name: String,
    kind: String,
}

async fn rows(db: &Database, sql: &str) -> Vec<QueryResult> {
    let statement = Statement::from_string(DatabaseBackend::Sqlite, sql);
    db.reads().query_all_raw(statement).await.unwrap()
}

async fn columns(db: &Database, table: &str) -> Vec<Column> {
    let found = rows(db, &format!("PRAGMA table_info({table})")).await;
    let column = |row: &QueryResult| Column {
        name: row.try_get_by_index(1).unwrap(),
        kind: row.try_get_by_index(2).unwrap(),
    };
    found.iter().map(column).collect()
}

/// Returns the tables with an owner, and those whose rows go with a row of one.
async fn tables(db: &Database) -> Vec<String> {
    let mut owned = vec!["assistant_versions".to_owned()];
    for row in rows(db, "SELECT name FROM sqlite_master WHERE type = 'table'").await {
        let table: String = row.try_get_by_index(0).unwrap();
        for Column { name, .. } in columns(db, &table).await {
            let names_a_person = name.contains("user") || name.contains("owner");
            match (table.as_str(), name.as_str()) {
                (_, "user_id") => owned.push(table.clone()),
                // A node, and a browser.
                ("runs", "owner") | ("sessions", "user_agent") => {}
                _ => assert!(!names_a_person, "{table}.{name} may name an owner"),
            }
        }
    }
    owned
}

/// Stores a row whose texts contain the name of the user.
async fn insert(db: &Database, table: &str, user: &str) {
    let columns = columns(db, table).await;
    let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
    let values = columns.iter().map(|column| match column.name.as_str() {
        "user_id" => format!("'{user}'"),
        name if column.kind == "TEXT" => format!("'{user}-{name}'"),
        _ => "1".to_owned(),
    });
    let values: Vec<String> = values.collect();
    let (names, values) = (names.join(", "), values.join(", "));
    rows(
        db,
        &format!("INSERT INTO {table} ({names}) VALUES ({values})"),
    )
    .await;
}

async fn count(db: &Database, table: &str, user: &str) -> i64 {
    let column = if table == "assistant_versions" {
        "replace(assistant_id, '-assistant_id', '')"
    } else {
        "user_id"
    };
    let sql = format!("SELECT COUNT(*) FROM {table} WHERE {column} = '{user}'");
    rows(db, &sql).await[0].try_get_by_index(0).unwrap()
}

#[tokio::test]
async fn deletion_covers_every_table_with_an_owner() {
    let db = Database::open(&DatabaseConfig::Memory, &Tasks::new())
        .await
        .unwrap();
    let accounts = SqlAccountStore::new(db.clone()).stores().accounts;
    let entry = NewAuditEntry::new(AuditAction::AccountDeleted, at(0));
    let people = ["ann", "bob"].map(|id| account(id, &format!("{id}@example.org")));
    let imported = accounts.import(people.to_vec(), entry.clone()).await;
    assert_eq!(imported.unwrap().imported.len(), 2);
    let tables = tables(&db).await;
    rows(&db, "PRAGMA foreign_keys = OFF").await;
    for table in &tables {
        insert(&db, table, "ann").await;
        insert(&db, table, "bob").await;
    }
    rows(&db, "PRAGMA foreign_keys = ON").await;
    for data in SqlUserRows::sources(&db) {
        assert_eq!(data.delete_all("ann").await.unwrap().count, 1);
    }
    let thread = ThreadId::parse("ann-thread_id").unwrap();
    let owner = Owner::User("ann".to_owned());
    let deleted = SqlThreadStore::new(db.clone())
        .delete(&thread, &owner)
        .await;
    assert_eq!(deleted, Ok(Deleted::Removed));
    for data in SqlUserRows::rest(&db) {
        data.delete_all("ann").await.unwrap();
    }
    accounts.delete("ann", entry).await.unwrap();
    for table in &tables {
        assert_eq!(count(&db, table, "ann").await, 0, "{table}");
        assert_eq!(count(&db, table, "bob").await, 1, "{table}");
    }
}

#[tokio::test]
async fn abandoned_run_no_longer_keeps_thread_busy() {
    let db = Database::open(&DatabaseConfig::Memory, &Tasks::new())
        .await
        .unwrap();
    for table in ["threads_meta", "runs"] {
        insert(&db, table, "ann").await;
        insert(&db, table, "bob").await;
    }
    rows(&db, "UPDATE runs SET status = 'running'").await;
    let ended = SqlUserRows::abandoned_runs(&db).delete_all("ann").await;
    assert_eq!(ended.unwrap().count, 1);
    let threads = SqlThreadStore::new(db);
    for (user, expected) in [("ann", Deleted::Removed), ("bob", Deleted::Busy)] {
        let thread = ThreadId::parse(format!("{user}-thread_id")).unwrap();
        let owner = Owner::User(user.to_owned());
        assert_eq!(threads.delete(&thread, &owner).await, Ok(expected));
    }
}

//! Compares the schema of a new SQLite database with a recording. A change of the recording is a
//! change of the schema and needs a migration.

use std::fmt::Write as _;

use deerflow_core::tasks::Tasks;
use sea_orm::{ConnectionTrait, DatabaseBackend, Statement};

use crate::{Database, DatabaseConfig};

#[tokio::test]
async fn sqlite_schema_equals_recording() {
    let db = Database::open(&DatabaseConfig::Memory, &Tasks::new())
        .await
        .unwrap();
    let statement = Statement::from_string(
        DatabaseBackend::Sqlite,
        "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%' ORDER BY name",
    );
    let rows = db.reads().query_all_raw(statement).await.unwrap();
    let mut schema = String::new();
    for row in rows {
        let sql: String = row.try_get_by_index(0).unwrap();
        writeln!(schema, "{sql};").unwrap();
    }
    let recorded = include_str!("../../tests/recorded/schema.sqlite.sql");
    assert_eq!(schema, recorded);
}

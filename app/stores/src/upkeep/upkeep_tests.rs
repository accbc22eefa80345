//! Tests of upkeep on real files.

use std::path::Path;

use chrono::{DateTime, Utc};
use deerflow_core::tasks::Tasks;
use deerflow_domain::api_keys::{ApiKeyStore, Rights, issue};
use tempfile::TempDir;

use super::UpkeepError;
use crate::db::config::{DatabaseConfig, OpenError};
use crate::db::connect::Database;
use crate::files::database_files::DATABASE_FILE;
use crate::sql::api_keys::SqlApiKeyStore;

pub(super) fn now() -> DateTime<Utc> {
    DateTime::from_timestamp(1_800_000_000, 0).unwrap()
}

/// A data directory and its configuration.
pub(super) fn installation() -> (TempDir, DatabaseConfig) {
    let folder = tempfile::tempdir().unwrap();
    let config = DatabaseConfig::Sqlite(folder.path().to_owned());
    (folder, config)
}

/// Opens the database as a server does, and stores a key of each user.
pub(super) async fn with_users(config: &DatabaseConfig, users: &[&str], tasks: &Tasks) -> Database {
    let database = Database::open(config, tasks).await.unwrap();
    let keys = SqlApiKeyStore::new(&database);
    for user in users {
        issue(&keys, user, Rights::User, None, None, now())
            .await
            .unwrap();
    }
    database
}

/// Returns the users whose keys a database has.
pub(super) async fn users(config: &DatabaseConfig) -> Vec<String> {
    let tasks = Tasks::new();
    let database = Database::open(config, &tasks).await.unwrap();
    let keys = SqlApiKeyStore::new(&database).list(None).await.unwrap();
    drop(database);
    tasks.shut_down().await;
    let mut users: Vec<String> = keys.into_iter().map(|key| key.user_id).collect();
    users.sort();
    users
}

fn damage(file: &Path) {
    let mut bytes = std::fs::read(file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle..middle + 4096].fill(0xa5);
    std::fs::write(file, bytes).unwrap();
}

#[tokio::test]
async fn backup_of_running_server_restores_its_moment() {
    let ((_folder, config), copies) = (installation(), tempfile::tempdir().unwrap());
    let backup = copies.path().join("monday.db");
    let tasks = Tasks::new();
    let server = with_users(&config, &["ann", "bob"], &tasks).await;
    let written = Database::back_up(&config, &backup).await.unwrap();
    assert_eq!(std::fs::metadata(&backup).unwrap().len(), written.bytes);
    issue(
        &SqlApiKeyStore::new(&server),
        "late",
        Rights::User,
        None,
        None,
        now(),
    )
    .await
    .unwrap();
    let refused = Database::restore(&config, &backup, now())
        .await
        .unwrap_err();
    assert!(
        matches!(refused, UpkeepError::Open(OpenError::InUse { .. })),
        "{refused}"
    );
    drop(server);
    tasks.shut_down().await;
    assert_eq!(users(&config).await, ["ann", "bob", "late"]);
    let restored = Database::restore(&config, &backup, now()).await.unwrap();
    assert_eq!(users(&config).await, ["ann", "bob"]);
    // The former database is complete under its new name.
    let former = installation();
    std::fs::copy(
        restored.former.unwrap(),
        former.0.path().join(DATABASE_FILE),
    )
    .unwrap();
    assert_eq!(users(&former.1).await, ["ann", "bob", "late"]);
    let mut names: Vec<_> = std::fs::read_dir(copies.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    names.sort();
    assert_eq!(names, ["monday.db", "monday.db.sha256"]);
}

#[tokio::test]
async fn backup_is_readable_by_its_owner_only_and_replaces_nothing() {
    use std::os::unix::fs::PermissionsExt;
    let ((folder, config), tasks) = (installation(), Tasks::new());
    let backup = folder.path().join("copy.db");
    for missing in [
        Database::back_up(&config, &backup).await.map(drop),
        Database::check_integrity(&config).await.map(drop),
        Database::vacuum(&config).await.map(drop),
    ] {
        assert!(
            matches!(missing, Err(UpkeepError::Missing(_))),
            "{missing:?}"
        );
    }
    let _server = with_users(&config, &["ann"], &tasks).await;
    Database::back_up(&config, &backup).await.unwrap();
    let mode = std::fs::metadata(&backup).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let again = Database::back_up(&config, &backup).await.unwrap_err();
    assert!(matches!(again, UpkeepError::Exists(_)), "{again}");
}

#[tokio::test]
async fn damaged_or_foreign_file_is_not_restored() {
    let ((folder, config), tasks) = (installation(), Tasks::new());
    let server = with_users(&config, &["ann"], &tasks).await;
    let backup = folder.path().join("copy.db");
    Database::back_up(&config, &backup).await.unwrap();
    drop(server);
    tasks.shut_down().await;
    damage(&backup);
    let text = folder.path().join("notes.txt");
    std::fs::write(
        &text,
        "not a database, but a long enough text\n".repeat(400),
    )
    .unwrap();
    let empty = folder.path().join("empty.db");
    std::fs::write(&empty, "").unwrap();
    for file in [&backup, &text, &empty] {
        let refused = Database::restore(&config, file, now()).await.unwrap_err();
        assert!(
            matches!(refused, UpkeepError::NotRestorable { .. }),
            "{refused}"
        );
    }
    assert_eq!(users(&config).await, ["ann"]);
}

#[tokio::test]
async fn damaged_database_is_reported_and_can_be_replaced() {
    let ((folder, config), tasks) = (installation(), Tasks::new());
    let server = with_users(&config, &["ann"], &tasks).await;
    let copies = tempfile::tempdir().unwrap();
    let backup = copies.path().join("copy.db");
    Database::back_up(&config, &backup).await.unwrap();
    let sound = Database::check_integrity(&config).await.unwrap();
    assert_eq!(sound.problems, Vec::<String>::new());
    drop(server);
    tasks.shut_down().await;
    // The file has all rows after this, whenever the last connection wrote the log back.
    Database::vacuum(&config).await.unwrap();
    let file = folder.path().join(DATABASE_FILE);
    damage(&file);
    let problems = Database::check_integrity(&config).await;
    assert!(
        problems
            .as_ref()
            .map_or(true, |found| !found.problems.is_empty()),
        "{problems:?}"
    );
    // A name of the former database, whatever its state.
    let restored = Database::restore(&config, &backup, now()).await.unwrap();
    assert!(restored.former.unwrap().is_file());
    assert_eq!(users(&config).await, ["ann"]);
}

#[tokio::test]
async fn interrupted_attempts_do_not_prevent_later_ones() {
    let ((folder, config), tasks) = (installation(), Tasks::new());
    let server = with_users(&config, &["ann"], &tasks).await;
    let backup = folder.path().join("copy.db");
    std::fs::write(folder.path().join("copy.db.partial"), "half").unwrap();
    Database::back_up(&config, &backup).await.unwrap();
    drop(server);
    tasks.shut_down().await;
    std::fs::write(folder.path().join("deerflow.db.restoring"), "half").unwrap();
    Database::restore(&config, &backup, now()).await.unwrap();
    assert_eq!(users(&config).await, ["ann"]);
    assert!(!folder.path().join("copy.db.partial").exists());
    assert!(!folder.path().join("deerflow.db.restoring").exists());
}

#[tokio::test]
async fn vacuum_needs_the_database_alone_and_preserves_its_rows() {
    let ((_folder, config), tasks) = (installation(), Tasks::new());
    let server = with_users(&config, &["ann"], &tasks).await;
    let refused = Database::vacuum(&config).await.unwrap_err();
    assert!(
        matches!(refused, UpkeepError::Open(OpenError::InUse { .. })),
        "{refused}"
    );
    drop(server);
    tasks.shut_down().await;
    let vacuumed = Database::vacuum(&config).await.unwrap();
    assert!(vacuumed.after > 0 && vacuumed.after <= vacuumed.before);
    assert_eq!(users(&config).await, ["ann"]);
}

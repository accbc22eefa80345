//! Tests of backup and restore with files of interrupted, concurrent or damaged attempts.

use std::path::{Path, PathBuf};

use chrono::{DateTime, TimeDelta, Utc};
use deerflow_core::tasks::Tasks;
use tempfile::TempDir;

use super::partial::PartialBackup;
use super::upkeep_tests::{installation, now, users, with_users};
use super::{Restored, UpkeepError};
use crate::db::config::DatabaseConfig;
use crate::db::connect::Database;
use crate::files::companions::with_suffix;

/// A data directory without a running server, and a backup elsewhere.
struct Stopped {
    folder: TempDir,
    config: DatabaseConfig,
    backups: TempDir,
}

impl Stopped {
    async fn with_backup() -> Self {
        let ((folder, config), tasks) = (installation(), Tasks::new());
        let backups = tempfile::tempdir().unwrap();
        let server = with_users(&config, &["ann"], &tasks).await;
        Database::back_up(&config, &backups.path().join("copy.db"))
            .await
            .unwrap();
        drop(server);
        tasks.shut_down().await;
        Self {
            folder,
            config,
            backups,
        }
    }

    fn backup(&self) -> PathBuf {
        self.backups.path().join("copy.db")
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    async fn restore(&self, backup: &Path, now: DateTime<Utc>) -> Result<Restored, UpkeepError> {
        Database::restore(&self.config, backup, now).await
    }
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[tokio::test]
async fn log_without_database_is_not_applied_to_the_restored() {
    let (stopped, tasks) = (Stopped::with_backup().await, Tasks::new());
    // The log of a running server, which has rows that the backup lacks.
    let server = with_users(&stopped.config, &["late"], &tasks).await;
    let log = std::fs::read(stopped.at("deerflow.db-wal")).unwrap();
    assert!(!log.is_empty());
    drop(server);
    tasks.shut_down().await;
    std::fs::remove_file(stopped.at("deerflow.db")).unwrap();
    std::fs::write(stopped.at("deerflow.db-wal"), &log).unwrap();
    std::fs::write(stopped.at("deerflow.db-shm"), "index").unwrap();
    let restored = stopped.restore(&stopped.backup(), now()).await.unwrap();
    assert_eq!((restored.former, restored.warnings.len()), (None, 1));
    assert!(!stopped.at("deerflow.db-shm").exists());
    let stored = stopped.at("deerflow.db.before-restore-20270115T080000Z-wal");
    assert_eq!(std::fs::read(stored).unwrap(), log);
    assert_eq!(users(&stopped.config).await, ["ann"]);
}

#[tokio::test]
async fn concurrent_backup_of_one_name_is_refused() {
    let stopped = Stopped::with_backup().await;
    let target = stopped.backups.path().join("second.db");
    let other = PartialBackup::acquire(&target).unwrap().unwrap();
    std::fs::write(other.path(), "half").unwrap();
    let refused = Database::back_up(&stopped.config, &target).await;
    assert!(matches!(refused, Err(UpkeepError::BackupRunning(_))));
    assert_eq!(std::fs::read(other.path()).unwrap(), b"half");
    drop(other);
    Database::back_up(&stopped.config, &target).await.unwrap();
    assert_eq!(
        names(stopped.backups.path()),
        ["copy.db", "copy.db.sha256", "second.db", "second.db.sha256"]
    );
}

#[tokio::test]
async fn files_of_killed_backup_are_removed_by_the_next() {
    let stopped = Stopped::with_backup().await;
    std::fs::remove_file(stopped.backup()).unwrap();
    for suffix in [
        ".partial",
        ".partial-journal",
        ".partial-lock",
        ".partial.sha256",
        ".sha256",
    ] {
        std::fs::write(with_suffix(&stopped.backup(), suffix), "half").unwrap();
    }
    Database::back_up(&stopped.config, &stopped.backup())
        .await
        .unwrap();
    assert_eq!(names(stopped.backups.path()), ["copy.db", "copy.db.sha256"]);
    let restored = stopped.restore(&stopped.backup(), now()).await.unwrap();
    assert_eq!(restored.warnings, Vec::<String>::new());
}

#[tokio::test]
async fn failed_backup_leaves_no_file() {
    let stopped = Stopped::with_backup().await;
    // The file has all rows after this, whenever the last connection wrote the log back.
    Database::vacuum(&stopped.config).await.unwrap();
    std::fs::write(stopped.at("deerflow.db"), "no database").unwrap();
    let target = stopped.backups.path().join("second.db");
    Database::back_up(&stopped.config, &target)
        .await
        .unwrap_err();
    assert_eq!(names(stopped.backups.path()), ["copy.db", "copy.db.sha256"]);
}

#[tokio::test]
async fn each_flipped_byte_of_a_backup_is_found() {
    let stopped = Stopped::with_backup().await;
    let sound = std::fs::read(stopped.backup()).unwrap();
    for place in (0..sound.len()).step_by(sound.len() / 40) {
        let mut damaged = sound.clone();
        damaged[place] ^= 0x10;
        std::fs::write(stopped.backup(), damaged).unwrap();
        let refused = stopped.restore(&stopped.backup(), now()).await.unwrap_err();
        assert!(refused.to_string().contains("its SHA-256 is"), "{refused}");
    }
    let checksum = with_suffix(&stopped.backup(), ".sha256");
    std::fs::write(&checksum, "none\n").unwrap();
    let refused = stopped.restore(&stopped.backup(), now()).await.unwrap_err();
    assert!(refused.to_string().contains("no SHA-256"), "{refused}");
    std::fs::write(stopped.backup(), sound).unwrap();
    std::fs::remove_file(checksum).unwrap();
    let restored = stopped.restore(&stopped.backup(), now()).await.unwrap();
    assert_eq!(restored.warnings.len(), 1);
}

#[tokio::test]
async fn backup_that_no_server_can_write_is_refused() {
    let stopped = Stopped::with_backup().await;
    std::fs::remove_file(with_suffix(&stopped.backup(), ".sha256")).unwrap();
    let sound = std::fs::read(stopped.backup()).unwrap();
    // The versions of the file format for writing and reading.
    for place in [18, 19] {
        let mut damaged = sound.clone();
        damaged[place] = 9;
        std::fs::write(stopped.backup(), damaged).unwrap();
        let refused = stopped.restore(&stopped.backup(), now()).await.unwrap_err();
        assert!(
            matches!(refused, UpkeepError::NotRestorable { .. }),
            "{refused}"
        );
    }
    assert_eq!(users(&stopped.config).await, ["ann"]);
}

#[tokio::test]
async fn second_name_of_interrupted_restore_is_removed() {
    let stopped = Stopped::with_backup().await;
    let (second, copy) = (
        stopped.at("deerflow.db.before-restore-20270101T000000Z"),
        stopped.at("deerflow.db.restoring"),
    );
    let interrupt = || {
        std::fs::hard_link(stopped.at("deerflow.db"), &second).unwrap();
        std::fs::write(&copy, "half").unwrap();
    };
    interrupt();
    // By the next start.
    assert_eq!(users(&stopped.config).await, ["ann"]);
    assert!(!second.exists() && !copy.exists());
    interrupt();
    // By the next restore.
    let restored = stopped.restore(&stopped.backup(), now()).await.unwrap();
    assert_eq!(restored.warnings.len(), 2);
    assert!(!second.exists() && !copy.exists());
    // A former database is a file of its own, and stays.
    let later = now() + TimeDelta::seconds(1);
    stopped.restore(&stopped.backup(), later).await.unwrap();
    assert!(restored.former.unwrap().exists());
}

#[tokio::test]
async fn unsuitable_source_is_named_and_stays() {
    let stopped = Stopped::with_backup().await;
    let copy = stopped.at("deerflow.db.restoring");
    std::fs::copy(stopped.backup(), &copy).unwrap();
    let folder = stopped.backups.path().to_owned();
    for source in [&copy, &stopped.at("deerflow.db"), &folder] {
        let refused = stopped.restore(source, now()).await.unwrap_err();
        assert!(
            matches!(&refused, UpkeepError::NotRestorable { file, .. } if file == source),
            "{refused}"
        );
        assert!(source.exists());
    }
    let missing = stopped.restore(&stopped.at("none.db"), now()).await;
    let missing = missing.unwrap_err();
    assert!(missing.to_string().contains("none.db"));
    assert!(std::error::Error::source(&missing).is_none());
}

#[test]
fn copy_larger_than_the_free_space_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("copy.db");
    super::backup::check_space(1, &file).unwrap();
    let refused = super::backup::check_space(u64::MAX, &file).unwrap_err();
    let text = refused.to_string();
    assert!(text.contains(&u64::MAX.to_string()), "{text}");
    assert!(matches!(refused, UpkeepError::NoSpace { free, .. } if free > 0));
}

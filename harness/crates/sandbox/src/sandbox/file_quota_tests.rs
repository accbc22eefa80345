//! Tests of the quota of files.

use std::fs;

use super::*;

fn home_with(bytes: usize) -> tempfile::TempDir {
    let home = tempfile::tempdir().unwrap();
    let uploads = home.path().join("users/ann/threads/t/user-data/uploads");
    fs::create_dir_all(&uploads).unwrap();
    fs::write(uploads.join("a"), vec![0; bytes]).unwrap();
    home
}

fn exceeded(used: u64, limit: u64) -> QuotaExceeded {
    QuotaExceeded {
        quota: Quota::FileBytes,
        used,
        limit,
    }
}

#[tokio::test]
async fn concurrent_reservations_share_the_free_bytes() {
    let home = home_with(60);
    let quota = FileQuota::new(home.path(), Some(100));
    let first = quota.reserve("ann", 30).await.unwrap().unwrap();
    assert_eq!(first.bytes(), 30);
    let second = quota.reserve("ann", 30).await.unwrap().unwrap();
    assert_eq!(second.bytes(), 10, "only 10 of 100 bytes are free");
    assert_eq!(second.exceeded(), exceeded(90, 100));
    let third = quota.reserve("ann", 1).await;
    assert_eq!(third.unwrap_err(), exceeded(100, 100));
    assert!(quota.reserve("bob", 30).await.is_ok());
    first.finish(5);
    drop(second);
    let all = quota.reserve("ann", 99).await.unwrap().unwrap();
    assert_eq!(all.bytes(), 35);
}

#[tokio::test]
async fn copy_of_a_thread_needs_the_size_of_its_files() {
    let home = home_with(60);
    let quota = FileQuota::new(home.path(), Some(100));
    let thread = ThreadId::parse("t").unwrap();
    let none = ThreadId::parse("none").unwrap();
    let refused = quota.reserve_copy("ann", &thread).await;
    assert_eq!(refused.unwrap_err(), exceeded(60, 100));
    assert!(quota.reserve_copy("ann", &none).await.unwrap().is_none());
    quota.set(Some(120));
    let copy = quota.reserve_copy("ann", &thread).await.unwrap().unwrap();
    assert_eq!(copy.bytes(), 60);
    let second = quota.reserve_copy("ann", &thread).await;
    assert_eq!(second.unwrap_err(), exceeded(120, 120));
    drop(copy);
    assert!(quota.reserve_all("ann", 61).await.is_err());
    assert!(quota.reserve_all("ann", 60).await.is_ok());
    quota.set(None);
    assert!(quota.reserve_copy("ann", &thread).await.unwrap().is_none());
}

#[tokio::test]
async fn removed_files_are_free_again() {
    let home = home_with(100);
    let quota = FileQuota::new(home.path(), Some(100));
    assert_eq!(
        quota.reserve("ann", 1).await.unwrap_err(),
        exceeded(100, 100)
    );
    fs::remove_file(home.path().join("users/ann/threads/t/user-data/uploads/a")).unwrap();
    // Measurements use blocking threads, whose time the test does not control.
    quota.0.users.lock().get_mut("ann").unwrap().measured = None;
    assert_eq!(quota.reserve("ann", 1).await.unwrap().unwrap().bytes(), 1);
    quota.set(None);
    assert!(quota.reserve("ann", 1).await.unwrap().is_none());
}

#[test]
fn links_are_not_followed() {
    let home = home_with(7);
    let outside = home.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("large"), vec![0; 5_000]).unwrap();
    let workspace = home.path().join("users/ann/threads/t/user-data/workspace");
    fs::create_dir_all(&workspace).unwrap();
    std::os::unix::fs::symlink(&outside, workspace.join("link")).unwrap();
    let bytes = measure_user_files(home.path(), "ann").unwrap();
    assert!((7..4_096).contains(&bytes), "{bytes}");
    assert_eq!(measure_user_files(home.path(), "nobody").unwrap(), 0);
}

//! Files of deleted threads, also after interrupted deletions.

use deerflow_gateway::ports::ThreadFilesPort;
use harness::ids::ThreadId;
use harness::sandbox::{VirtualPath, WriteMode};

use crate::support::Gateway;

const USER: &str = "default";

async fn with_a_file(gateway: &Gateway, thread: &str) -> (ThreadId, VirtualPath) {
    let thread = ThreadId::parse(thread).expect("an id");
    let path = VirtualPath::parse("/mnt/user-data/outputs/a.txt").expect("a path");
    gateway
        .files
        .thread(USER, &thread)
        .write_text(&path, "kept".to_owned(), WriteMode::Replace)
        .await
        .expect("written");
    (thread, path)
}

async fn exists(gateway: &Gateway, (thread, path): &(ThreadId, VirtualPath)) -> bool {
    gateway
        .files
        .thread(USER, thread)
        .exists(path)
        .await
        .expect("a look")
}

#[tokio::test]
async fn deletion_reports_remaining_files() {
    let gateway = Gateway::new();
    let thread = gateway.thread().await;
    let file = with_a_file(&gateway, &thread).await;
    // Not a directory, so it cannot be removed as one.
    let not_a_directory = gateway
        .files
        .home
        .home()
        .join(format!("users/{USER}/threads/.removing-{thread}.0"));
    std::fs::write(&not_a_directory, "").expect("odd");
    let path = format!("/api/threads/{thread}");
    let deleted = gateway.send("DELETE", &path, None).await;
    assert_eq!(deleted.code(), 500);
    let detail = format!(
        "Thread {thread} is deleted, but some of its files could not be removed. Delete it again, or wait for the next sweep."
    );
    assert_eq!(deleted.json()["detail"], detail);
    assert!(!exists(&gateway, &file).await);
    std::fs::remove_file(&not_a_directory).expect("mended");
    assert_eq!(
        gateway.send("DELETE", &path, None).await.code(),
        404,
        "the row went the first time"
    );
}

#[tokio::test]
async fn sweep_finishes_only_interrupted_deletions() {
    let gateway = Gateway::new();
    let (kept, uploaded) = (
        gateway.thread().await,
        "0e8dd1a4-5a7c-4a36-9b1c-a1b2c3d4e5f6",
    );
    let with_row = with_a_file(&gateway, &kept).await;
    let not_yet_made = with_a_file(&gateway, uploaded).await;
    let row_is_gone = with_a_file(&gateway, "row-is-gone").await;
    for (thread, _) in [&with_row, &row_is_gone] {
        gateway
            .files
            .note_removal(USER, thread, true)
            .await
            .expect("noted");
    }
    deerflow_gateway::background::sweep_files(&gateway.state)
        .await
        .expect("swept");
    assert!(!exists(&gateway, &row_is_gone).await);
    assert!(exists(&gateway, &with_row).await && exists(&gateway, &not_yet_made).await);
}

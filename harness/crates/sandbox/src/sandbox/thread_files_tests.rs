//! The async API: a cancelled write is complete or absent, and leaves no files behind.

use super::super::safe_fs::Resolver;
use super::super::test_support::{TestHome, names_in, path, work};
use super::super::virtual_paths::Root;
use super::*;

fn fixture() -> TestHome {
    TestHome::new(Resolver::detect())
}

#[tokio::test]
async fn async_operations_work_end_to_end() {
    let fixture = fixture();
    let files = &fixture.files;
    files
        .write_text(&work("a.txt"), "one two".to_owned(), WriteMode::Replace)
        .await
        .expect("write");
    let replaced = files
        .replace(
            &work("a.txt"),
            "two".to_owned(),
            "three".to_owned(),
            Occurrences::First,
        )
        .await;
    assert_eq!(replaced.expect("replace"), 1);
    let read = files
        .read_text(&work("a.txt"), LineRange::ALL)
        .await
        .expect("read");
    assert_eq!(
        read,
        TextRead::Text {
            text: "one three".to_owned(),
            first_line: 1
        }
    );
    assert!(files.exists(&work("a.txt")).await.expect("exists"));
    assert!(!files.exists(&work("b.txt")).await.expect("exists"));
    let (_, metadata) = files.open_read(&work("a.txt")).await.expect("open");
    assert_eq!(metadata.len(), 9);
    let listing = files
        .list(&VirtualPath::of_root(Root::Workspace), 2)
        .await
        .expect("list");
    assert_eq!(listing.lines, ["/mnt/user-data/workspace/a.txt"]);
    assert!(files.remove_file(&work("a.txt")).await.expect("remove"));
    assert!(files.remove_all().await.expect("remove all"));
    assert!(!files.remove_all().await.expect("nothing left"));
}

#[tokio::test]
async fn incoming_file_is_visible_after_finish() {
    let fixture = fixture();
    let upload = path("/mnt/user-data/uploads/big.bin");
    let mut incoming = fixture.files.begin_write(&upload).await.expect("begin");
    for piece in ["first ", "second ", "third"] {
        assert!(!fixture.files.exists(&upload).await.expect("exists"));
        incoming = incoming
            .write(Bytes::from_static(piece.as_bytes()))
            .await
            .expect("piece");
    }
    assert_eq!(incoming.written(), 18);
    assert_eq!(
        incoming.finish(Durability::Synced).await.expect("finish"),
        18
    );
    let uploads = fixture.files.blocking().dirs().host_path(Root::Uploads);
    assert_eq!(names_in(&uploads), ["big.bin"]);
}

#[tokio::test]
async fn dropped_incoming_file_is_deleted() {
    let fixture = fixture();
    let upload = path("/mnt/user-data/uploads/big.bin");
    let incoming = fixture.files.begin_write(&upload).await.expect("begin");
    let incoming = incoming
        .write(Bytes::from_static(b"half"))
        .await
        .expect("piece");
    drop(incoming);
    assert!(names_in(&fixture.files.blocking().dirs().host_path(Root::Uploads)).is_empty());
}

#[tokio::test]
async fn cancelled_write_is_complete_or_absent() {
    let fixture = fixture();
    let (file, content) = (work("a"), "x".repeat(50_000));
    for _ in 0..50 {
        let write = fixture
            .files
            .write_text(&file, content.clone(), WriteMode::Replace);
        // Polled once, then dropped.
        let _ = futures_util::FutureExt::now_or_never(write);
    }
    fixture
        .files
        .write_text(&work("last"), String::new(), WriteMode::Replace)
        .await
        .expect("write");
    match fixture.files.read_text(&file, LineRange::ALL).await {
        Ok(TextRead::Text { text, .. }) => assert_eq!(text, content),
        Ok(other) => panic!("{other:?}"),
        Err(error) => assert!(error.is_not_found(), "{error}"),
    }
}

//! The async face: cancelled writes are whole or absent, and nothing stays behind.

use super::super::safe_fs::Resolver;
use super::super::test_support::{Place, names_in, path, work};
use super::super::virtual_paths::Root;
use super::*;

fn place() -> Place {
    Place::new(Resolver::detect())
}

#[tokio::test]
async fn every_operation_is_there_for_async_code() {
    let place = place();
    let files = &place.files;
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
async fn an_upload_appears_when_it_is_complete() {
    let place = place();
    let upload = path("/mnt/user-data/uploads/big.bin");
    let mut incoming = place.files.begin_write(&upload).await.expect("begin");
    for piece in ["first ", "second ", "third"] {
        assert!(!place.files.exists(&upload).await.expect("exists"));
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
    let uploads = place.files.blocking().dirs().host_path(Root::Uploads);
    assert_eq!(names_in(&uploads), ["big.bin"]);
}

#[tokio::test]
async fn an_upload_that_breaks_off_leaves_nothing() {
    let place = place();
    let upload = path("/mnt/user-data/uploads/big.bin");
    let incoming = place.files.begin_write(&upload).await.expect("begin");
    let incoming = incoming
        .write(Bytes::from_static(b"half"))
        .await
        .expect("piece");
    drop(incoming);
    assert!(names_in(&place.files.blocking().dirs().host_path(Root::Uploads)).is_empty());
}

#[tokio::test]
async fn a_write_whose_caller_left_is_whole_or_absent() {
    let place = place();
    let (file, content) = (work("a"), "x".repeat(50_000));
    for _ in 0..50 {
        let write = place
            .files
            .write_text(&file, content.clone(), WriteMode::Replace);
        // Polled once, then dropped.
        let _ = futures_util::FutureExt::now_or_never(write);
    }
    place
        .files
        .write_text(&work("last"), String::new(), WriteMode::Replace)
        .await
        .expect("write");
    match place.files.read_text(&file, LineRange::ALL).await {
        Ok(TextRead::Text { text, .. }) => assert_eq!(text, content),
        Ok(other) => panic!("{other:?}"),
        Err(error) => assert!(error.is_not_found(), "{error}"),
    }
}

//! Batches, what a thread has, and names that are attacks.

use std::path::PathBuf;

use bytes::Bytes;
use tempfile::TempDir;

use super::*;
use crate::ids::ThreadId;
use crate::sandbox::{FileHome, FileLimits, Root, ThreadFiles, VirtualPath, WriteMode};

struct Place {
    _home: TempDir,
    files: ThreadFiles,
    thread: ThreadId,
}

impl Place {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let thread = ThreadId::parse("t").unwrap();
        let files = FileHome::new(home.path(), FileLimits::default()).thread("ann", &thread);
        Self { _home: home, files, thread }
    }

    async fn upload(&self, limits: UploadLimits, named: &[(&str, &[u8])]) -> Result<Uploaded, UploadError> {
        let mut batch = UploadBatch::new(self.files.clone(), limits);
        for (name, content) in named {
            if let Some(file) = batch.begin(name).await? {
                let whole = batch.write(file, Bytes::copy_from_slice(content)).await?;
                batch.add(whole);
            }
        }
        batch.appear("ann", &self.thread, None).await
    }

    async fn names(&self) -> Vec<String> {
        list(&self.files, &self.thread).await.unwrap().files.into_iter().map(|file| file.filename).collect()
    }

    fn folder(&self) -> PathBuf {
        self.files.blocking().dirs().host_path(Root::Uploads)
    }
}

const LIMITS: UploadLimits = UploadLimits { max_files: 2, max_file_size: 4, max_total_size: 6 };

#[tokio::test]
async fn files_appear_together_and_are_listed_and_removed() {
    let place = Place::new();
    assert_eq!(list(&place.files, &place.thread).await.unwrap(), UploadList { count: 0, files: vec![] });
    let uploaded = place.upload(LIMITS, &[("../a.txt", b"1"), ("a.txt", b"22")]).await.unwrap();
    assert_eq!((uploaded.success, &*uploaded.message), (true, "Successfully uploaded 2 file(s)"));
    let [first, second] = &uploaded.files[..] else { panic!("{uploaded:?}") };
    assert_eq!((&*first.filename, first.size, &first.original_filename), ("a.txt", 1, &None));
    assert_eq!((&*second.filename, second.size, second.original_filename.as_deref()), ("a_1.txt", 2, Some("a.txt")));
    assert_eq!(first.virtual_path, "/mnt/user-data/uploads/a.txt");
    assert_eq!(place.names().await, ["a.txt", "a_1.txt"]);
    let removed = remove(&place.files, &place_named("a.txt").unwrap()).await.unwrap();
    assert_eq!(removed.message, "Deleted a.txt");
    let again = remove(&place.files, &place_named("a.txt").unwrap()).await;
    assert!(matches!(again, Err(UploadError::NotFound(name)) if name == "a.txt"));
}

#[tokio::test]
async fn what_goes_beyond_a_limit_leaves_nothing() {
    let place = Place::new();
    let refused = async |named: &[(&str, &[u8])]| place.upload(LIMITS, named).await.unwrap_err();
    assert!(matches!(refused(&[]).await, UploadError::Nothing));
    assert!(matches!(refused(&[("a", b""), ("b", b""), ("c", b"")]).await, UploadError::TooMany(2)));
    assert!(matches!(refused(&[("a", b"1"), ("b", b"12345")]).await, UploadError::FileTooLarge(name) if name == "b"));
    assert!(matches!(refused(&[("a", b"1234"), ("b", b"123")]).await, UploadError::TooMuch));
    assert_eq!(place.names().await, [""; 0]);
    assert!(place.folder().read_dir().is_ok_and(|mut items| items.next().is_none()), "not even unfinished files");
}

#[tokio::test]
async fn what_an_upload_must_not_replace_is_left_as_it_was() {
    let place = Place::new();
    let inside = VirtualPath::parse("/mnt/user-data/uploads/folder/x").unwrap();
    place.files.write_text(&inside, "x".to_owned(), WriteMode::Replace).await.unwrap();
    let outside = tempfile::NamedTempFile::new().unwrap();
    std::os::unix::fs::symlink(outside.path(), place.folder().join("link")).unwrap();
    let uploaded = place.upload(LIMITS, &[("link", b"evil"), ("folder", b"evil")]).await.unwrap();
    assert_eq!((uploaded.success, uploaded.skipped_files), (false, vec!["link".to_owned(), "folder".to_owned()]));
    assert_eq!(std::fs::read(outside.path()).unwrap(), b"");
    assert_eq!(remove(&place.files, &place_named("link").unwrap()).await.unwrap().message, "Deleted link", "and not what it leads to");
    let refused = remove(&place.files, &place_named("folder").unwrap()).await;
    assert!(matches!(refused, Err(UploadError::NotAFile(_))), "{refused:?}");
    assert!(outside.path().exists() && place.files.exists(&inside).await.unwrap());
}

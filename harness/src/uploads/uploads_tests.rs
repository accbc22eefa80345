//! Batches, what a thread has, and names that are attacks.

use std::path::PathBuf;

use async_trait::async_trait;
use bytes::Bytes;
use tempfile::TempDir;

use super::*;
use crate::documents::{DocumentKind, DocumentReader, Opening, Unreadable, glimpse, hidden_copies};
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
        Self {
            _home: home,
            files,
            thread,
        }
    }

    async fn upload(
        &self,
        limits: UploadLimits,
        named: &[(&str, &[u8])],
    ) -> Result<Uploaded, UploadError> {
        self.upload_for(None, limits, named).await
    }

    async fn upload_for(
        &self,
        reader: Option<&dyn DocumentReader>,
        limits: UploadLimits,
        named: &[(&str, &[u8])],
    ) -> Result<Uploaded, UploadError> {
        let mut batch = UploadBatch::new(self.files.clone(), limits);
        for (name, content) in named {
            if let Some(file) = batch.begin(name).await? {
                let whole = batch.write(file, Bytes::copy_from_slice(content)).await?;
                batch.add(whole);
            }
        }
        batch.appear("ann", &self.thread, reader).await
    }

    async fn names(&self) -> Vec<String> {
        list(&self.files, &self.thread)
            .await
            .unwrap()
            .files
            .into_iter()
            .map(|file| file.filename)
            .collect()
    }

    fn folder(&self) -> PathBuf {
        self.files.blocking().dirs().host_path(Root::Uploads)
    }
}

/// Reads no document and names its kind.
#[derive(Debug)]
struct KindReader;

#[async_trait]
impl DocumentReader for KindReader {
    async fn markdown(
        &self,
        _user: &str,
        kind: DocumentKind,
        _document: Opening<'_>,
    ) -> Result<String, Unreadable> {
        Ok(format!("# a {}", kind.ending()))
    }
}

const LIMITS: UploadLimits = UploadLimits {
    max_files: 2,
    max_file_size: 4,
    max_total_size: 6,
};

#[tokio::test]
async fn files_appear_together_and_are_listed_and_removed() {
    let place = Place::new();
    assert_eq!(
        list(&place.files, &place.thread).await.unwrap(),
        UploadList {
            count: 0,
            files: vec![]
        }
    );
    let uploaded = place
        .upload(LIMITS, &[("../a.txt", b"1"), ("a.txt", b"22")])
        .await
        .unwrap();
    assert_eq!(
        (uploaded.success, &*uploaded.message),
        (true, "Successfully uploaded 2 file(s)")
    );
    let [first, second] = &uploaded.files[..] else {
        panic!("{uploaded:?}")
    };
    assert_eq!(
        (&*first.filename, first.size, &first.original_filename),
        ("a.txt", 1, &None)
    );
    assert_eq!(
        (
            &*second.filename,
            second.size,
            second.original_filename.as_deref()
        ),
        ("a_1.txt", 2, Some("a.txt"))
    );
    assert_eq!(first.virtual_path, "/mnt/user-data/uploads/a.txt");
    assert_eq!(place.names().await, ["a.txt", "a_1.txt"]);
    let removed = remove(&place.files, &place_named("a.txt").unwrap())
        .await
        .unwrap();
    assert_eq!(removed.message, "Deleted a.txt");
    let again = remove(&place.files, &place_named("a.txt").unwrap()).await;
    assert!(matches!(again, Err(UploadError::NotFound(name)) if name == "a.txt"));
}

#[tokio::test]
async fn what_goes_beyond_a_limit_leaves_nothing() {
    let place = Place::new();
    let refused = async |named: &[(&str, &[u8])]| place.upload(LIMITS, named).await.unwrap_err();
    assert!(matches!(refused(&[]).await, UploadError::Nothing));
    assert!(matches!(
        refused(&[("a", b""), ("b", b""), ("c", b"")]).await,
        UploadError::TooMany(2)
    ));
    assert!(
        matches!(refused(&[("a", b"1"), ("b", b"12345")]).await, UploadError::FileTooLarge(name) if name == "b")
    );
    assert!(matches!(
        refused(&[("a", b"1234"), ("b", b"123")]).await,
        UploadError::TooMuch
    ));
    assert_eq!(place.names().await, [""; 0]);
    assert!(
        place
            .folder()
            .read_dir()
            .is_ok_and(|mut items| items.next().is_none()),
        "not even unfinished files"
    );
}

#[tokio::test]
async fn what_an_upload_must_not_replace_is_left_as_it_was() {
    let place = Place::new();
    let inside = VirtualPath::parse("/mnt/user-data/uploads/folder/x").unwrap();
    place
        .files
        .write_text(&inside, "x".to_owned(), WriteMode::Replace)
        .await
        .unwrap();
    let outside = tempfile::NamedTempFile::new().unwrap();
    std::os::unix::fs::symlink(outside.path(), place.folder().join("link")).unwrap();
    let uploaded = place
        .upload(LIMITS, &[("link", b"evil"), ("folder", b"evil")])
        .await
        .unwrap();
    assert_eq!(
        (uploaded.success, uploaded.skipped_files),
        (false, vec!["link".to_owned(), "folder".to_owned()])
    );
    assert_eq!(std::fs::read(outside.path()).unwrap(), b"");
    assert_eq!(
        remove(&place.files, &place_named("link").unwrap())
            .await
            .unwrap()
            .message,
        "Deleted link",
        "and not what it leads to"
    );
    let refused = remove(&place.files, &place_named("folder").unwrap()).await;
    assert!(
        matches!(refused, Err(UploadError::NotAFile(_))),
        "{refused:?}"
    );
    assert!(outside.path().exists() && place.files.exists(&inside).await.unwrap());
}

#[tokio::test]
async fn documents_that_differ_in_their_endings_keep_their_texts_apart() {
    let place = Place::new();
    let upload = async |named: &[(&str, &[u8])]| {
        let uploaded = place
            .upload_for(Some(&KindReader), LIMITS, named)
            .await
            .unwrap();
        uploaded
            .files
            .into_iter()
            .map(|file| file.markdown_file.unwrap_or_default())
            .collect::<Vec<_>>()
    };
    let title = async |name: &str| {
        glimpse(&place.files, name)
            .await
            .headings
            .first()
            .map(|heading| heading.title.clone())
    };
    let remove = async |name: &str| {
        remove(&place.files, &place_named(name).unwrap())
            .await
            .unwrap()
    };

    assert_eq!(
        upload(&[("plan.pdf", b"1"), ("plan.docx", b"2")]).await,
        ["plan.md", "plan.docx.md"],
        "in one request"
    );
    assert_eq!(
        upload(&[("plan.xls", b"3")]).await,
        ["plan.xls.md"],
        "and in a later one"
    );
    assert_eq!(
        upload(&[("plan.docx", b"4")]).await,
        ["plan.docx.md"],
        "and again"
    );
    for ending in ["pdf", "docx", "xls"] {
        assert_eq!(
            title(&format!("plan.{ending}")).await,
            Some(format!("a {ending}"))
        );
    }
    let names = place.names().await;
    let copies = hidden_copies(
        &place.files,
        &names.iter().map(String::as_str).collect::<Vec<_>>(),
    )
    .await;
    assert_eq!(
        (names.len(), copies.len()),
        (6, 3),
        "{names:?}, of which {copies:?} are no uploads of their own"
    );

    remove("plan.docx").await;
    assert_eq!(
        place.names().await,
        ["plan.md", "plan.pdf", "plan.xls", "plan.xls.md"]
    );
    remove("plan.pdf").await;
    assert_eq!(place.names().await, ["plan.xls", "plan.xls.md"]);
    assert_eq!(
        upload(&[("plan.doc", b"5"), ("plan.doc.md", b"own")]).await,
        ["plan.md", ""]
    );
    assert_eq!(upload(&[("plan.md", b"own")]).await, [""]);
    assert_eq!(
        upload(&[("plan.ppt", b"6")]).await,
        ["plan.ppt.md"],
        "beside a text of the user's own"
    );
    assert_eq!(
        upload(&[("plan.doc", b"7")]).await,
        [""],
        "whose texts have both names"
    );
    assert_eq!(title("plan.doc").await, None);
}

//! Batches, listings and malicious names.

use std::path::PathBuf;

use async_trait::async_trait;
use bytes::Bytes;
use tempfile::TempDir;

use super::*;
use crate::documents::{
    ConversionError, DocumentFuture, DocumentKind, DocumentReader, hidden_copies, upload_preview,
};
use crate::sandbox::{FileHome, FileLimits, Root, ThreadFiles, VirtualPath, WriteMode};
use deerflow_core::ids::ThreadId;

struct TestUploads {
    _home: TempDir,
    files: ThreadFiles,
    thread: ThreadId,
}

impl TestUploads {
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

/// A reader that returns the kind of a document instead of its content.
#[derive(Debug)]
struct KindReader;

#[async_trait]
impl DocumentReader for KindReader {
    async fn markdown(
        &self,
        _user: &str,
        kind: DocumentKind,
        _document: DocumentFuture<'_>,
    ) -> Result<String, ConversionError> {
        Ok(format!("# a {}", kind.ending()))
    }
}

const LIMITS: UploadLimits = UploadLimits {
    max_files: 2,
    max_file_size: 4,
    max_total_size: 6,
};

#[tokio::test]
async fn batch_appears_atomically_and_is_listed_and_removed() {
    let uploads = TestUploads::new();
    assert_eq!(
        list(&uploads.files, &uploads.thread).await.unwrap(),
        UploadList {
            count: 0,
            files: vec![]
        }
    );
    let uploaded = uploads
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
    assert_eq!(uploads.names().await, ["a.txt", "a_1.txt"]);
    let removed = remove(&uploads.files, &upload_path("a.txt").unwrap())
        .await
        .unwrap();
    assert_eq!(removed.message, "Deleted a.txt");
    let again = remove(&uploads.files, &upload_path("a.txt").unwrap()).await;
    assert!(matches!(again, Err(UploadError::NotFound(name)) if name == "a.txt"));
}

#[tokio::test]
async fn upload_beyond_limit_stores_nothing() {
    let uploads = TestUploads::new();
    let refused = async |named: &[(&str, &[u8])]| uploads.upload(LIMITS, named).await.unwrap_err();
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
    assert_eq!(uploads.names().await, [""; 0]);
    assert!(
        uploads
            .folder()
            .read_dir()
            .is_ok_and(|mut items| items.next().is_none()),
        "not even unfinished files"
    );
}

#[tokio::test]
async fn upload_does_not_replace_links_or_folders() {
    let uploads = TestUploads::new();
    let inside = VirtualPath::parse("/mnt/user-data/uploads/folder/x").unwrap();
    uploads
        .files
        .write_text(&inside, "x".to_owned(), WriteMode::Replace)
        .await
        .unwrap();
    let outside = tempfile::NamedTempFile::new().unwrap();
    std::os::unix::fs::symlink(outside.path(), uploads.folder().join("link")).unwrap();
    let uploaded = uploads
        .upload(LIMITS, &[("link", b"evil"), ("folder", b"evil")])
        .await
        .unwrap();
    assert_eq!(
        (uploaded.success, uploaded.skipped_files),
        (false, vec!["link".to_owned(), "folder".to_owned()])
    );
    assert_eq!(std::fs::read(outside.path()).unwrap(), b"");
    assert_eq!(
        remove(&uploads.files, &upload_path("link").unwrap())
            .await
            .unwrap()
            .message,
        "Deleted link",
        "and not its target"
    );
    let refused = remove(&uploads.files, &upload_path("folder").unwrap()).await;
    assert!(
        matches!(refused, Err(UploadError::NotAFile(_))),
        "{refused:?}"
    );
    assert!(outside.path().exists() && uploads.files.exists(&inside).await.unwrap());
}

#[tokio::test]
async fn documents_with_same_stem_have_separate_markdown() {
    let uploads = TestUploads::new();
    let upload = async |named: &[(&str, &[u8])]| {
        let uploaded = uploads
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
        upload_preview(&uploads.files, name)
            .await
            .headings
            .first()
            .map(|heading| heading.title.clone())
    };
    let remove = async |name: &str| {
        remove(&uploads.files, &upload_path(name).unwrap())
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
        "and in a later request"
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
    let names = uploads.names().await;
    let copies = hidden_copies(
        &uploads.files,
        &names.iter().map(String::as_str).collect::<Vec<_>>(),
    )
    .await;
    assert_eq!(
        (names.len(), copies.len()),
        (6, 3),
        "{names:?}, of which {copies:?} are converted files"
    );

    remove("plan.docx").await;
    assert_eq!(
        uploads.names().await,
        ["plan.md", "plan.pdf", "plan.xls", "plan.xls.md"]
    );
    remove("plan.pdf").await;
    assert_eq!(uploads.names().await, ["plan.xls", "plan.xls.md"]);
    assert_eq!(
        upload(&[("plan.doc", b"5"), ("plan.doc.md", b"own")]).await,
        ["plan.md", ""]
    );
    assert_eq!(upload(&[("plan.md", b"own")]).await, [""]);
    assert_eq!(
        upload(&[("plan.ppt", b"6")]).await,
        ["plan.ppt.md"],
        "next to a text of the user"
    );
    assert_eq!(
        upload(&[("plan.doc", b"7")]).await,
        [""],
        "if both names are in use"
    );
    assert_eq!(title("plan.doc").await, None);
}

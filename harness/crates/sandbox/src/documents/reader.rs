//! Port for converting documents to Markdown, and its adapter with one process per document.

use std::fmt::Debug;
use std::fs::File;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Command;
use tokio::time::timeout;

use super::kind::DocumentKind;
use deerflow_core::fair_permits::FairPermits;

/// Maximum length of the Markdown, in bytes.
pub(super) const MAX_MARKDOWN_BYTES: u64 = 16 << 20;
/// Maximum length of a worker's error text, in bytes.
const MAX_STDERR_BYTES: u64 = 1_024;
/// Maximum number of documents that are converted concurrently, one per user; others wait.
const MAX_CONCURRENT_DOCUMENTS: usize = 2;
/// Maximum time that a document waits for a permit.
const QUEUE_TIMEOUT: Duration = Duration::from_secs(15);

/// Reason why a document could not be converted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConversionError {
    /// The document is broken, encrypted or too large.
    #[error("the document cannot be read: {0}")]
    Document(String),
    /// Timeout of the conversion.
    #[error("reading the document took longer than {} seconds", .0.as_secs())]
    TooSlow(Duration),
    /// Timeout while waiting for a permit.
    #[error("too many documents are being read: no permit within {} seconds", .0.as_secs())]
    Busy(Duration),
    /// The worker process could not be started.
    #[error("cannot start a worker: {0}")]
    NoWorker(String),
}

/// Future that opens a document when it is polled.
pub type DocumentFuture<'a> = BoxFuture<'a, Result<File, ConversionError>>;

/// Converts documents to Markdown.
///
/// ```
/// use std::io::Read;
///
/// use async_trait::async_trait;
/// use deerflow_sandbox::documents::{
///     ConversionError, DocumentFuture, DocumentKind, DocumentReader,
/// };
///
/// /// Reads documents that are already Markdown.
/// #[derive(Debug)]
/// struct PlainText;
///
/// #[async_trait]
/// impl DocumentReader for PlainText {
///     async fn markdown(
///         &self,
///         _user: &str,
///         _kind: DocumentKind,
///         document: DocumentFuture<'_>,
///     ) -> Result<String, ConversionError> {
///         let mut text = String::new();
///         let read = document.await?.read_to_string(&mut text);
///         read.map_err(|error| ConversionError::Document(error.to_string()))?;
///         Ok(text)
///     }
/// }
/// ```
#[async_trait]
pub trait DocumentReader: Send + Sync + Debug {
    /// Converts a document of `user`. The document is opened when the user gets a permit. The call
    /// has its own timeouts, for any document and any number of concurrent calls.
    async fn markdown(
        &self,
        user: &str,
        kind: DocumentKind,
        document: DocumentFuture<'_>,
    ) -> Result<String, ConversionError>;
}

/// Converts each document in its own process, which is confined to computing (see `worker`).
#[derive(Debug)]
pub struct ProcessDocumentReader {
    program: PathBuf,
    arguments: Vec<String>,
    limit: Duration,
    permits: FairPermits,
}

impl ProcessDocumentReader {
    /// Creates a reader that starts `program` with `arguments` and the document's file extension,
    /// and passes the document as standard input.
    pub fn new(
        program: PathBuf,
        arguments: impl IntoIterator<Item = String>,
        limit: Duration,
    ) -> Self {
        Self {
            program,
            arguments: arguments.into_iter().collect(),
            limit,
            permits: FairPermits::limited_per_user("documents", MAX_CONCURRENT_DOCUMENTS, 1),
        }
    }

    async fn run_worker(
        &self,
        kind: DocumentKind,
        document: File,
    ) -> Result<String, ConversionError> {
        let mut worker = Command::new(&self.program)
            .args(&self.arguments)
            .arg(kind.ending())
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::from(document))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| ConversionError::NoWorker(error.to_string()))?;
        let (text, stderr) = tokio::join!(
            read(worker.stdout.take(), MAX_MARKDOWN_BYTES),
            read(worker.stderr.take(), MAX_STDERR_BYTES)
        );
        let ended = worker
            .wait()
            .await
            .map_err(|error| ConversionError::NoWorker(error.to_string()))?;
        match String::from_utf8(text) {
            Ok(text) if ended.success() => Ok(text),
            _ => {
                let stderr = String::from_utf8_lossy(&stderr);
                let stderr = stderr.trim();
                Err(ConversionError::Document(if stderr.is_empty() {
                    format!("its worker ended with {ended}")
                } else {
                    stderr.to_owned()
                }))
            }
        }
    }
}

#[async_trait]
impl DocumentReader for ProcessDocumentReader {
    async fn markdown(
        &self,
        user: &str,
        kind: DocumentKind,
        document: DocumentFuture<'_>,
    ) -> Result<String, ConversionError> {
        let _permit = self
            .permits
            .acquire_within(user, QUEUE_TIMEOUT)
            .await
            .ok_or(ConversionError::Busy(QUEUE_TIMEOUT))?;
        let reading = async { self.run_worker(kind, document.await?).await };
        // On timeout the future is dropped, which kills the worker.
        timeout(self.limit, reading)
            .await
            .map_err(|_| ConversionError::TooSlow(self.limit))?
    }
}

/// Reads up to `max_bytes` bytes from a pipe and closes it.
async fn read(pipe: Option<impl AsyncRead + Unpin>, max_bytes: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Some(pipe) = pipe {
        // After a read error, the worker's exit status decides about the bytes received so far.
        let _cut = pipe.take(max_bytes).read_to_end(&mut bytes).await;
    }
    bytes
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use futures_util::FutureExt;
    use tokio::sync::oneshot;

    use super::*;

    fn reader() -> ProcessDocumentReader {
        ProcessDocumentReader::new(
            "/bin/cat".into(),
            ["-".to_owned(), "--".to_owned(), "/dev/null".to_owned()],
            Duration::from_secs(3_600),
        )
    }

    /// A document that is never opened.
    fn endless(begun: oneshot::Sender<()>) -> DocumentFuture<'static> {
        async move {
            let _sent = begun.send(());
            std::future::pending().await
        }
        .boxed()
    }

    #[tokio::test(start_paused = true)]
    async fn waiting_document_times_out_unopened() {
        let reader = reader();
        let (ann, ben) = (oneshot::channel(), oneshot::channel());
        let opened = AtomicBool::new(false);
        let started = tokio::time::Instant::now();
        let unread = || {
            async {
                Err(ConversionError::Document(format!(
                    "opened: {}",
                    opened.swap(true, Ordering::Relaxed)
                )))
            }
            .boxed()
        };
        let waits = async {
            ann.1.await.unwrap();
            let own = reader.markdown("ann", DocumentKind::Pdf, unread()).await;
            assert_eq!(
                (own, started.elapsed()),
                (Err(ConversionError::Busy(QUEUE_TIMEOUT)), QUEUE_TIMEOUT),
                "one permit per user"
            );
            // The second permit was free all the time.
            assert_eq!(
                reader.markdown("cid", DocumentKind::Pdf, unread()).await,
                Err(ConversionError::Document("opened: false".to_owned()))
            );
            let second = reader.markdown("ben", DocumentKind::Pdf, endless(ben.0));
            let third = async {
                ben.1.await.unwrap();
                reader.markdown("cid", DocumentKind::Pdf, unread()).await
            };
            tokio::select! {
                read = third => assert_eq!(read, Err(ConversionError::Busy(QUEUE_TIMEOUT)), "two permits in total"),
                read = second => panic!("{read:?}"),
            }
        };
        tokio::select! {
            () = waits => {}
            read = reader.markdown("ann", DocumentKind::Pdf, endless(ann.0)) => panic!("{read:?}"),
        }
        let free = reader.markdown("ann", DocumentKind::Pdf, unread()).await;
        assert_eq!(
            free,
            Err(ConversionError::Document("opened: true".to_owned())),
            "permits are released"
        );
    }
}

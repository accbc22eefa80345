//! The port that turns documents into Markdown, and its adapter: a process of its own for each document.

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
use crate::turns::Turns;

/// The longest Markdown, in bytes.
pub(super) const LONGEST: u64 = 16 << 20;
/// How much is read of what a worker has to say about its failure, in bytes.
const LONGEST_WORDS: u64 = 1_024;
/// How many documents are read at once, each of another user; the others wait.
const AT_ONCE: usize = 2;
/// How long a document waits for its turn.
const PATIENCE: Duration = Duration::from_secs(15);

/// Why a document has no Markdown.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// It is broken, locked, or too much.
    #[error("the document cannot be read: {0}")]
    Document(String),
    /// It took too long.
    #[error("reading the document took longer than {} seconds", .0.as_secs())]
    TooSlow(Duration),
    /// Others came before it.
    #[error("other documents are being read: its turn did not come within {} seconds", .0.as_secs())]
    Busy(Duration),
    /// There is no worker.
    #[error("no worker can be started: {0}")]
    NoWorker(String),
}

/// A document that is opened when it is asked for.
pub type Opening<'a> = BoxFuture<'a, Result<File, Unreadable>>;

/// Turns documents into Markdown.
#[async_trait]
pub trait DocumentReader: Send + Sync + Debug {
    /// The Markdown of a document of `user`, which is opened when its turn comes. Ends within limits of its own, whatever is in the
    /// document and however many others there are.
    async fn markdown(
        &self,
        user: &str,
        kind: DocumentKind,
        document: Opening<'_>,
    ) -> Result<String, Unreadable>;
}

/// Has each document read by a process that can do nothing but compute (`worker`).
#[derive(Debug)]
pub struct ProcessDocumentReader {
    program: PathBuf,
    arguments: Vec<String>,
    limit: Duration,
    turns: Turns,
}

impl ProcessDocumentReader {
    /// Starts `program` with `arguments` and the kind's ending; the document is its standard input.
    pub fn new(
        program: PathBuf,
        arguments: impl IntoIterator<Item = String>,
        limit: Duration,
    ) -> Self {
        Self {
            program,
            arguments: arguments.into_iter().collect(),
            limit,
            turns: Turns::new(AT_ONCE, PATIENCE),
        }
    }

    async fn follow(&self, kind: DocumentKind, document: File) -> Result<String, Unreadable> {
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
            .map_err(|error| Unreadable::NoWorker(error.to_string()))?;
        let (text, words) = tokio::join!(
            read(worker.stdout.take(), LONGEST),
            read(worker.stderr.take(), LONGEST_WORDS)
        );
        let ended = worker
            .wait()
            .await
            .map_err(|error| Unreadable::NoWorker(error.to_string()))?;
        match String::from_utf8(text) {
            Ok(text) if ended.success() => Ok(text),
            _ => {
                let words = String::from_utf8_lossy(&words);
                let words = words.trim();
                Err(Unreadable::Document(if words.is_empty() {
                    format!("its worker ended with {ended}")
                } else {
                    words.to_owned()
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
        document: Opening<'_>,
    ) -> Result<String, Unreadable> {
        let _turn = self
            .turns
            .next(user)
            .await
            .ok_or(Unreadable::Busy(PATIENCE))?;
        let reading = async { self.follow(kind, document.await?).await };
        // Dropped, the worker is killed.
        timeout(self.limit, reading)
            .await
            .map_err(|_| Unreadable::TooSlow(self.limit))?
    }
}

/// What a pipe brings, up to `most` bytes; then it is closed.
async fn read(pipe: Option<impl AsyncRead + Unpin>, most: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Some(pipe) = pipe {
        // What came before a fault is judged by how the worker ended.
        let _cut = pipe.take(most).read_to_end(&mut bytes).await;
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

    /// A document that is never there.
    fn endless(begun: oneshot::Sender<()>) -> Opening<'static> {
        async move {
            let _told = begun.send(());
            std::future::pending().await
        }
        .boxed()
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_too_long_is_told_so_and_has_opened_nothing() {
        let reader = reader();
        let (ann, ben) = (oneshot::channel(), oneshot::channel());
        let opened = AtomicBool::new(false);
        let begun = tokio::time::Instant::now();
        let unread = || {
            async {
                Err(Unreadable::Document(format!(
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
                (own, begun.elapsed()),
                (Err(Unreadable::Busy(PATIENCE)), PATIENCE),
                "one turn for each user"
            );
            // The other turn was free all the time.
            assert_eq!(
                reader.markdown("cid", DocumentKind::Pdf, unread()).await,
                Err(Unreadable::Document("opened: false".to_owned()))
            );
            let second = reader.markdown("ben", DocumentKind::Pdf, endless(ben.0));
            let third = async {
                ben.1.await.unwrap();
                reader.markdown("cid", DocumentKind::Pdf, unread()).await
            };
            tokio::select! {
                read = third => assert_eq!(read, Err(Unreadable::Busy(PATIENCE)), "two turns for all"),
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
            Err(Unreadable::Document("opened: true".to_owned())),
            "turns come back"
        );
    }
}

//! The way to the client: a message per line in both directions, none of them of any length, none read faster than answers are.

use std::future::Future;
use std::io;

use harness::runtime::tasks::{TaskKind, TaskPanicked, Tasks};
use rmcp::RoleServer;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::reading::{LONGEST_LINE, Refusal, read, too_long};

/// How many messages may wait to be written before no more are read.
const MOST_WAITING: usize = 64;

/// How much is read at a time, in bytes.
const PIECE: usize = 1 << 16;

/// A message that is to be written, and who waits for that.
#[derive(Debug)]
struct Outgoing {
    message: ServerJsonRpcMessage,
    written: Option<oneshot::Sender<()>>,
}

/// The link to a client, as the protocol's machine has it.
#[derive(Debug)]
pub(super) struct Link<R> {
    lines: Lines<R>,
    out: Option<mpsc::Sender<Outgoing>>,
    over: CancellationToken,
}

/// Links with a client. The end of either stream cancels `over`, and the task ends when everything is written.
pub(super) fn open<R, W>(
    input: R,
    output: W,
    over: &CancellationToken,
    tasks: &Tasks,
) -> (Link<R>, JoinHandle<Result<(), TaskPanicked>>)
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let (out, outgoing) = mpsc::channel(MOST_WAITING);
    let end = over.clone();
    let writer = async move {
        if let Err(error) = write(output, outgoing).await {
            tracing::warn!(%error, "the mcp client reads no more");
            end.cancel();
        }
    };
    let writer = tasks.spawn(TaskKind::Finish, "mcp output", writer);
    (
        Link {
            lines: Lines::new(input),
            out: Some(out),
            over: over.clone(),
        },
        writer,
    )
}

async fn write(
    mut output: impl AsyncWrite + Unpin,
    mut outgoing: mpsc::Receiver<Outgoing>,
) -> io::Result<()> {
    while let Some(Outgoing { message, written }) = outgoing.recv().await {
        let mut line = serde_json::to_vec(&message)?;
        line.push(b'\n');
        output.write_all(&line).await?;
        output.flush().await?;
        if let Some(written) = written {
            _ = written.send(());
        }
    }
    Ok(())
}

impl<R: AsyncRead + Unpin + Send> Transport<RoleServer> for Link<R> {
    type Error = Closed;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Closed>> + Send + 'static {
        let out = self.out.clone();
        async move {
            let (written, is_written) = oneshot::channel();
            out.ok_or(Closed)?
                .send(Outgoing {
                    message,
                    written: Some(written),
                })
                .await
                .map_err(|_| Closed)?;
            is_written.await.map_err(|_| Closed)
        }
    }

    /// Nothing is lost when the future is dropped: a line stays until it is whole, and is used up without waiting.
    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        let Self { lines, out, over } = self;
        loop {
            let room = match out.as_ref()?.reserve().await {
                Ok(room) => room,
                Err(_closed) => return None,
            };
            let read = match lines.next().await {
                Ok(Some(Line::Whole(line))) => read(&line),
                Ok(Some(Line::TooLong)) => Err(too_long()),
                Ok(None) => {
                    over.cancel();
                    return None;
                }
                Err(error) => {
                    tracing::warn!(%error, "the mcp client cannot be read any further");
                    over.cancel();
                    return None;
                }
            };
            match read {
                Ok(Some(message)) => return Some(message),
                Ok(None) => {}
                Err(refusal) => {
                    let Refusal { error, id } = *refusal;
                    tracing::debug!(%error, "a line of the mcp client is refused");
                    room.send(Outgoing {
                        message: ServerJsonRpcMessage::error(error, id),
                        written: None,
                    });
                }
            }
        }
    }

    async fn close(&mut self) -> Result<(), Closed> {
        self.out = None;
        Ok(())
    }
}

/// The client's end of the link is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the client reads no more")]
pub(super) struct Closed;

/// Lines of at most [`LONGEST_LINE`] bytes.
#[derive(Debug)]
struct Lines<R> {
    input: BufReader<R>,
    /// What there is of the next line.
    line: Vec<u8>,
    /// Whether that line is too long, and goes.
    is_too_long: bool,
}

#[derive(Debug, PartialEq, Eq)]
enum Line {
    /// Without its end.
    Whole(Vec<u8>),
    /// It was longer than any message.
    TooLong,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    fn new(input: R) -> Self {
        Self {
            input: BufReader::with_capacity(PIECE, input),
            line: Vec::new(),
            is_too_long: false,
        }
    }

    /// The next line; nothing after the last one. What the stream breaks off with is no line.
    async fn next(&mut self) -> io::Result<Option<Line>> {
        loop {
            let piece = self.input.fill_buf().await?;
            if piece.is_empty() {
                return Ok(None);
            }
            let end = piece.iter().position(|byte| *byte == b'\n');
            let new = &piece[..end.unwrap_or(piece.len())];
            self.is_too_long |= self.line.len() + new.len() > LONGEST_LINE;
            if self.is_too_long {
                self.line = Vec::new();
            } else {
                self.line.extend_from_slice(new);
            }
            let used = new.len() + usize::from(end.is_some());
            self.input.consume(used);
            if end.is_some() {
                let line = std::mem::take(&mut self.line);
                let is_too_long = std::mem::take(&mut self.is_too_long);
                return Ok(Some(if is_too_long {
                    Line::TooLong
                } else {
                    Line::Whole(line)
                }));
            }
        }
    }
}

#[cfg(test)]
#[path = "lines_tests.rs"]
mod tests;

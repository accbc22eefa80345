//! Transport over two streams: one JSON message per line, with a length limit, and with
//! backpressure from the output to the input.

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

use crate::parse::{MAX_LINE_BYTES, Refusal, read, too_long};

/// Number of queued outgoing messages at which reading pauses.
const MAX_QUEUED: usize = 64;

/// Size of the read buffer, in bytes.
const READ_BUFFER_BYTES: usize = 1 << 16;

/// Message to write, and the sender that is notified afterwards.
#[derive(Debug)]
struct Outgoing {
    message: ServerJsonRpcMessage,
    written: Option<oneshot::Sender<()>>,
}

/// Transport of one client for the protocol implementation.
#[derive(Debug)]
pub(crate) struct ClientTransport<R> {
    lines: LineReader<R>,
    out: Option<mpsc::Sender<Outgoing>>,
    shutdown: CancellationToken,
}

/// Opens a transport and starts its writer. The end of either stream cancels `shutdown`; the task
/// ends when everything is written.
pub(crate) fn open<R, W>(
    input: R,
    output: W,
    shutdown: &CancellationToken,
    tasks: &Tasks,
) -> (ClientTransport<R>, JoinHandle<Result<(), TaskPanicked>>)
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let (out, outgoing) = mpsc::channel(MAX_QUEUED);
    let end = shutdown.clone();
    let writer = async move {
        if let Err(error) = write(output, outgoing).await {
            tracing::warn!(%error, "cannot write to the mcp client");
            end.cancel();
        }
    };
    let writer = tasks.spawn(TaskKind::Finish, "mcp output", writer);
    (
        ClientTransport {
            lines: LineReader::new(input),
            out: Some(out),
            shutdown: shutdown.clone(),
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

impl<R: AsyncRead + Unpin + Send> Transport<RoleServer> for ClientTransport<R> {
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

    /// Receives the next valid message, or `None` at the end. Cancellation safe: an incomplete line
    /// stays buffered, and a complete line is consumed without awaiting.
    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        let Self {
            lines,
            out,
            shutdown,
        } = self;
        loop {
            let slot = match out.as_ref()?.reserve().await {
                Ok(slot) => slot,
                Err(_closed) => return None,
            };
            let read = match lines.next().await {
                Ok(Some(Line::Whole(line))) => read(&line),
                Ok(Some(Line::TooLong)) => Err(too_long()),
                Ok(None) => {
                    shutdown.cancel();
                    return None;
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot read from the mcp client");
                    shutdown.cancel();
                    return None;
                }
            };
            match read {
                Ok(Some(message)) => return Some(message),
                Ok(None) => {}
                Err(refusal) => {
                    let Refusal { error, id } = *refusal;
                    tracing::debug!(%error, "rejected a line of the mcp client");
                    slot.send(Outgoing {
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

/// The client has closed its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("client closed the connection")]
pub(crate) struct Closed;

/// Reads lines of at most [`MAX_LINE_BYTES`] bytes.
#[derive(Debug)]
struct LineReader<R> {
    input: BufReader<R>,
    /// Incomplete next line.
    line: Vec<u8>,
    /// `true` if the incomplete line exceeds the limit and is being discarded.
    is_too_long: bool,
}

#[derive(Debug, PartialEq, Eq)]
enum Line {
    /// Complete line, without its line feed.
    Whole(Vec<u8>),
    /// Line above the length limit; its content was discarded.
    TooLong,
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    fn new(input: R) -> Self {
        Self {
            input: BufReader::with_capacity(READ_BUFFER_BYTES, input),
            line: Vec::new(),
            is_too_long: false,
        }
    }

    /// Returns the next line, or `None` at the end. A last line without a line feed is ignored.
    async fn next(&mut self) -> io::Result<Option<Line>> {
        loop {
            let piece = self.input.fill_buf().await?;
            if piece.is_empty() {
                return Ok(None);
            }
            let end = piece.iter().position(|byte| *byte == b'\n');
            let new = &piece[..end.unwrap_or(piece.len())];
            self.is_too_long |= self.line.len() + new.len() > MAX_LINE_BYTES;
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
#[path = "framing_tests.rs"]
mod tests;

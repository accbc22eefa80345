//! The way to a server that is a process: a line for each message.

use std::borrow::Cow;
use std::future::Future;
use std::io;
use std::sync::Arc;

use rmcp::RoleClient;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::Mutex;

use super::reading;
use crate::programs::{BoundedLines, Faults};

/// As much of a line's room is kept for the next, in bytes.
const USUAL_LINE: usize = 64 << 10;

/// A conversation over a process' output `R` and input `W`.
pub(super) struct StdioTransport<R, W> {
    output: BufReader<BoundedLines<R>>,
    line: Vec<u8>,
    input: Arc<Mutex<Option<W>>>,
}

impl<R: AsyncRead + Unpin, W> StdioTransport<R, W> {
    pub(super) fn new(output: R, input: W, faults: Faults) -> Self {
        let output = BufReader::new(BoundedLines::new(output, faults));
        Self {
            output,
            line: Vec::new(),
            input: Arc::new(Mutex::new(Some(input))),
        }
    }
}

impl<R, W> Transport<RoleClient> for StdioTransport<R, W>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = io::Error;

    fn name() -> Cow<'static, str> {
        "stdio".into()
    }

    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let input = self.input.clone();
        async move {
            let mut line = serde_json::to_vec(&message)?;
            line.push(b'\n');
            let mut input = input.lock().await;
            let input = input.as_mut().ok_or(io::ErrorKind::NotConnected)?;
            input.write_all(&line).await?;
            input.flush().await
        }
    }

    /// Dropped in the middle of a line, it goes on there the next time.
    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            self.output.read_until(b'\n', &mut self.line).await.ok()?;
            if !self.line.ends_with(b"\n") {
                return None;
            }
            let read = reading::message(&self.line);
            self.line.clear();
            self.line.shrink_to(USUAL_LINE);
            match read {
                Ok(message) => return Some(message),
                // Whoever prints for people meets the bound on bytes, which is for nothing but floods.
                Err(error) => {
                    tracing::debug!(%error, "an mcp server wrote a line that is no message")
                }
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.input.lock().await.take();
        Ok(())
    }
}

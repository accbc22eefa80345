//! Transport to a server process: one line per message.

use std::borrow::Cow;
use std::future::Future;
use std::io;
use std::sync::Arc;

use rmcp::RoleClient;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::Mutex;

use super::decoding;
use crate::child_process::{BoundedLines, ConnectionHealth};

/// Capacity of the line buffer that is retained between lines, in bytes.
const RETAINED_LINE_BYTES: usize = 64 << 10;

/// Transport over a process' output `R` and input `W`.
pub(super) struct StdioTransport<R, W> {
    output: BufReader<BoundedLines<R>>,
    line: Vec<u8>,
    input: Arc<Mutex<Option<W>>>,
}

impl<R: AsyncRead + Unpin, W> StdioTransport<R, W> {
    pub(super) fn new(output: R, input: W, health: ConnectionHealth) -> Self {
        let output = BufReader::new(BoundedLines::new(output, health));
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

    /// Cancel-safe: a partly read line is continued by the next call.
    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            self.output.read_until(b'\n', &mut self.line).await.ok()?;
            if !self.line.ends_with(b"\n") {
                return None;
            }
            let read = decoding::message(&self.line);
            self.line.clear();
            self.line.shrink_to(RETAINED_LINE_BYTES);
            match read {
                Ok(message) => return Some(message),
                // A server may print text for humans, so such a line is not a failure; the byte
                // quota stops floods.
                Err(error) => {
                    tracing::debug!(%error, "mcp server wrote a line that is not a message")
                }
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.input.lock().await.take();
        Ok(())
    }
}

//! Transport wrapper between an untrusted server and the protocol implementation: counts
//! unsolicited messages, replaces unreadable parts, and reads the stderr of a process.

use std::borrow::Cow;
use std::future::Future;

use rmcp::RoleClient;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::Transport;

use super::decoding::replace_unreadable_parts;
use crate::child_process::{ConnectionHealth, StderrReader};

/// Transport with an untrusted peer.
pub(super) struct GuardedTransport<T> {
    inner: T,
    health: ConnectionHealth,
    stderr: Option<StderrReader>,
}

impl<T> GuardedTransport<T> {
    pub(super) fn new(inner: T, health: ConnectionHealth) -> Self {
        Self {
            inner,
            health,
            stderr: None,
        }
    }

    /// Also reads the process' stderr, so that the process is not blocked by a full pipe.
    pub(super) fn with_stderr(self, stderr: StderrReader) -> Self {
        Self {
            stderr: Some(stderr),
            ..self
        }
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for GuardedTransport<T> {
    type Error = T::Error;

    fn name() -> Cow<'static, str> {
        T::name()
    }

    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        // Only requests reset the quota, not replies: the server could send requests forever.
        if matches!(message, ClientJsonRpcMessage::Request(_)) {
            self.health.reset_quota();
        }
        self.inner.send(message)
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        let Self {
            inner,
            health,
            stderr,
        } = self;
        let message = loop {
            tokio::select! {
                message = inner.receive() => break message,
                within_limits = next_stderr(stderr) => if !within_limits {
                    return None;
                },
            }
        };
        let Some(message) = message else {
            // The reason of the end may still be in the stderr pipe.
            if let Some(stderr) = stderr {
                stderr.drain().await;
            }
            return None;
        };
        health
            .count_message()
            .then(|| replace_unreadable_parts(message))
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.inner.close().await
    }
}

async fn next_stderr(stderr: &mut Option<StderrReader>) -> bool {
    match stderr {
        Some(stderr) => stderr.read_next().await,
        None => std::future::pending().await,
    }
}

//! What stands between a server and the protocol's machine: it counts what comes unasked, leaves out what cannot
//! be read, and reads what a process complains of.

use std::borrow::Cow;
use std::future::Future;

use rmcp::RoleClient;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::Transport;

use super::reading::without_odd_parts;
use crate::programs::{Errors, Faults};

/// A transport whose peer is not trusted.
pub(super) struct Watched<T> {
    inner: T,
    faults: Faults,
    errors: Option<Errors>,
}

impl<T> Watched<T> {
    pub(super) fn new(inner: T, faults: Faults) -> Self {
        Self {
            inner,
            faults,
            errors: None,
        }
    }

    /// Reads these errors, too, so that the process can go on writing them.
    pub(super) fn with_errors(self, errors: Errors) -> Self {
        Self {
            errors: Some(errors),
            ..self
        }
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for Watched<T> {
    type Error = T::Error;

    fn name() -> Cow<'static, str> {
        T::name()
    }

    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        // Answers to the server do not count: it could ask for ever.
        if matches!(message, ClientJsonRpcMessage::Request(_)) {
            self.faults.asked();
        }
        self.inner.send(message)
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        let Self {
            inner,
            faults,
            errors,
        } = self;
        let message = loop {
            tokio::select! {
                message = inner.receive() => break message,
                is_fine = listen(errors) => if !is_fine {
                    return None;
                },
            }
        };
        let Some(message) = message else {
            // Why it ended may still be on its way.
            if let Some(errors) = errors {
                errors.listen_to_the_end().await;
            }
            return None;
        };
        faults.count_message().then(|| without_odd_parts(message))
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.inner.close().await
    }
}

async fn listen(errors: &mut Option<Errors>) -> bool {
    match errors {
        Some(errors) => errors.listen().await,
        None => std::future::pending().await,
    }
}

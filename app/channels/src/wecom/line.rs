//! Access of senders to the live connection.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use super::exchange::Call;
use super::frame::FrameAnswer;
use crate::platform::PlatformError;

/// Number of calls that may wait for the connection.
const MAX_WAITING: usize = 64;
/// Number of answered requests that are remembered.
const MAX_REMEMBERED: usize = 10_000;

/// Connection that is open.
#[derive(Debug)]
struct Open {
    connection: String,
    sender: mpsc::Sender<Call>,
    /// Stream of each answered request. A request has one stream.
    streams: HashMap<String, String>,
    order: VecDeque<String>,
}

/// The live connection, if there is one. Clones share it.
#[derive(Debug, Clone, Default)]
pub(super) struct Line(Arc<Mutex<Option<Open>>>);

/// Registration of a connection. Dropping it removes the connection.
#[derive(Debug)]
pub(super) struct Registration {
    line: Line,
    connection: String,
}

impl Drop for Registration {
    fn drop(&mut self) {
        let mut open = self.line.0.lock();
        if open.as_ref().map(|open| &open.connection) == Some(&self.connection) {
            *open = None;
        }
    }
}

impl Line {
    /// Registers a connection, whose owner sends the received calls.
    pub(super) fn register(&self, connection: &str) -> (Registration, mpsc::Receiver<Call>) {
        let (sender, receiver) = mpsc::channel(MAX_WAITING);
        *self.0.lock() = Some(Open {
            connection: connection.to_owned(),
            sender,
            streams: HashMap::new(),
            order: VecDeque::new(),
        });
        let registration = Registration {
            line: self.clone(),
            connection: connection.to_owned(),
        };
        (registration, receiver)
    }

    /// Returns the id of the live connection.
    pub(super) fn connection(&self) -> Result<String, PlatformError> {
        let open = self.0.lock();
        open.as_ref()
            .map(|open| open.connection.clone())
            .ok_or_else(disconnected)
    }

    /// Assigns a stream to a request. Returns `false` if the request has another one.
    pub(super) fn assign(&self, req_id: &str, stream: &str) -> bool {
        let mut open = self.0.lock();
        let Some(open) = open.as_mut() else {
            return false;
        };
        if let Some(assigned) = open.streams.get(req_id) {
            return assigned == stream;
        }
        open.streams.insert(req_id.to_owned(), stream.to_owned());
        open.order.push_back(req_id.to_owned());
        if open.order.len() > MAX_REMEMBERED
            && let Some(oldest) = open.order.pop_front()
        {
            open.streams.remove(&oldest);
        }
        true
    }

    /// Sends a frame and waits for its answer.
    pub(super) async fn call(
        &self,
        command: &'static str,
        req_id: String,
        body: Value,
    ) -> Result<FrameAnswer, PlatformError> {
        let sender = match self.0.lock().as_ref() {
            Some(open) => open.sender.clone(),
            None => return Err(disconnected()),
        };
        let (reply, answer) = oneshot::channel();
        let call = Call {
            command,
            req_id,
            body,
            reply,
        };
        sender.send(call).await.map_err(|_| disconnected())?;
        answer.await.unwrap_or_else(|_| {
            Err(PlatformError::Unavailable(
                "the connection to wecom ended before the answer".to_owned(),
            ))
        })
    }
}

fn disconnected() -> PlatformError {
    PlatformError::Unavailable("wecom is not connected, its message is sent later".to_owned())
}

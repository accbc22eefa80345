//! Event stream of one run.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_util::Stream;
use futures_util::stream::BoxStream;
use serde_json::Value;

use super::error::ClientError;
use super::event::StreamEvent;
use super::event_adapter::EventAdapter;
use crate::ids::{RunId, ThreadId};
use crate::runtime::runs::{RunStatus, RunStream};
use crate::runtime::stream_bridge::{StreamItem, TerminalKind};

/// Events of a run, up to its `end` event or to an error, which is then the last item. Dropping it
/// does not stop the run; [`Client::cancel`](super::Client::cancel) does.
pub struct Conversation {
    /// Id of the run.
    pub run_id: RunId,
    /// Id of its thread.
    pub thread_id: ThreadId,
    items: BoxStream<'static, StreamItem>,
    adapter: EventAdapter,
    ready: VecDeque<StreamEvent>,
    /// Failure that the run reported; returned when the stream ends.
    failure: Option<ClientError>,
    has_ended: bool,
}

impl std::fmt::Debug for Conversation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Conversation")
            .field("run_id", &self.run_id)
            .field("thread_id", &self.thread_id)
            .finish_non_exhaustive()
    }
}

impl Conversation {
    pub(super) fn of(stream: RunStream) -> Self {
        let RunStream {
            run_id,
            thread_id,
            items,
            ..
        } = stream;
        Self {
            run_id,
            thread_id,
            items,
            adapter: EventAdapter::default(),
            ready: VecDeque::new(),
            failure: None,
            has_ended: false,
        }
    }

    /// Processes an item and returns the final event if the item ends the stream.
    fn handle_item(&mut self, item: StreamItem) -> Option<Result<StreamEvent, ClientError>> {
        match item {
            StreamItem::Event(event) => {
                let data = serde_json::from_slice(&event.data.into_bytes()).unwrap_or_default();
                if event.event == "error" {
                    self.failure = Some(failed(&data));
                } else {
                    self.ready.extend(self.adapter.on_frame(&event.event, data));
                }
                None
            }
            StreamItem::Heartbeat => None,
            StreamItem::Gap(_) => Some(Err(ClientError::Gap)),
            StreamItem::Aborted => Some(Err(ClientError::StreamEnded)),
            StreamItem::End(TerminalKind::Error) => Some(Err(self
                .failure
                .take()
                .unwrap_or_else(|| failed(&Value::Null)))),
            StreamItem::End(TerminalKind::End) => Some(Ok(self.adapter.end(RunStatus::Success))),
            StreamItem::End(TerminalKind::Cancel) => {
                Some(Ok(self.adapter.end(RunStatus::Interrupted)))
            }
        }
    }
}

impl Stream for Conversation {
    type Item = Result<StreamEvent, ClientError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Poll::Ready(Some(Ok(event)));
            }
            if self.has_ended {
                return Poll::Ready(None);
            }
            let end = match ready!(self.items.as_mut().poll_next(context)) {
                Some(item) => self.handle_item(item),
                None => Some(Err(ClientError::StreamEnded)),
            };
            if let Some(end) = end {
                self.has_ended = true;
                return Poll::Ready(Some(end));
            }
        }
    }
}

/// Converts the data of an `error` event.
fn failed(data: &Value) -> ClientError {
    let text = |key: &str, otherwise: &str| data[key].as_str().unwrap_or(otherwise).to_owned();
    ClientError::Failed {
        name: text("error", "Error"),
        message: text("message", "the run failed"),
    }
}

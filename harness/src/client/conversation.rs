//! One question and what comes of it, as a stream.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_util::Stream;
use futures_util::stream::BoxStream;
use serde_json::Value;

use super::error::ClientError;
use super::event::StreamEvent;
use super::telling::Telling;
use crate::ids::{RunId, ThreadId};
use crate::runtime::runs::{RunStatus, RunStream};
use crate::runtime::stream_bridge::{StreamItem, TerminalKind};

/// The events of a run, up to its `end` or to an error, which is the last item then. Dropping it does not stop the run;
/// [`Client::cancel`](super::Client::cancel) does.
pub struct Conversation {
    /// The run.
    pub run_id: RunId,
    /// Its thread.
    pub thread_id: ThreadId,
    items: BoxStream<'static, StreamItem>,
    telling: Telling,
    ready: VecDeque<StreamEvent>,
    /// What the run said of its failure.
    failure: Option<ClientError>,
    is_over: bool,
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
            telling: Telling::default(),
            ready: VecDeque::new(),
            failure: None,
            is_over: false,
        }
    }

    /// Takes an item in; gives the end if it is one.
    fn take(&mut self, item: StreamItem) -> Option<Result<StreamEvent, ClientError>> {
        match item {
            StreamItem::Event(event) => {
                let data = serde_json::from_slice(&event.data.into_bytes()).unwrap_or_default();
                if event.event == "error" {
                    self.failure = Some(failed(&data));
                } else {
                    self.ready.extend(self.telling.frame(&event.event, data));
                }
                None
            }
            StreamItem::Heartbeat => None,
            StreamItem::Gap(_) => Some(Err(ClientError::Gap)),
            StreamItem::Aborted => Some(Err(ClientError::ShuttingDown)),
            StreamItem::End(TerminalKind::Error) => Some(Err(self
                .failure
                .take()
                .unwrap_or_else(|| failed(&Value::Null)))),
            StreamItem::End(TerminalKind::End) => Some(Ok(self.telling.end(RunStatus::Success))),
            StreamItem::End(TerminalKind::Cancel) => {
                Some(Ok(self.telling.end(RunStatus::Interrupted)))
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
            if self.is_over {
                return Poll::Ready(None);
            }
            let end = match ready!(self.items.as_mut().poll_next(context)) {
                Some(item) => self.take(item),
                None => Some(Err(ClientError::ShuttingDown)),
            };
            if let Some(end) = end {
                self.is_over = true;
                return Poll::Ready(Some(end));
            }
        }
    }
}

/// The failure that an `error` event tells of.
fn failed(data: &Value) -> ClientError {
    let text = |key: &str, otherwise: &str| data[key].as_str().unwrap_or(otherwise).to_owned();
    ClientError::Failed {
        name: text("error", "Error"),
        message: text("message", "the run failed"),
    }
}

//! Frames that wait for answers: at most one of each request id at a time.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::frame::{self, FrameAnswer};
use crate::platform::PlatformError;

/// Time within which a frame is answered.
pub(super) const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// Further time in which a late answer may arrive. Until then the request id takes no other frame:
/// the platform would refuse it, and the late answer would count for the wrong frame.
const LATE_TIMEOUT: Duration = Duration::from_secs(55);

/// Frame to send, and the receiver of its answer.
#[derive(Debug)]
pub(super) struct Call {
    /// Command.
    pub(super) command: &'static str,
    /// Request id.
    pub(super) req_id: String,
    /// Content.
    pub(super) body: Value,
    /// Receiver of the answer.
    pub(super) reply: oneshot::Sender<Result<FrameAnswer, PlatformError>>,
}

#[derive(Debug)]
struct Sent {
    /// Receiver of the answer; `None` after it was informed that the answer is late.
    reply: Option<oneshot::Sender<Result<FrameAnswer, PlatformError>>>,
    deadline: Instant,
}

/// Frames without answer, and those that wait for them. Dropping it fails all calls.
#[derive(Debug, Default)]
pub(super) struct Exchange {
    sent: HashMap<String, Sent>,
    waiting: HashMap<String, VecDeque<Call>>,
}

impl Exchange {
    /// Takes a call. Returns the frame if it is to be sent now.
    pub(super) fn submit(&mut self, call: Call, now: Instant) -> Option<String> {
        if self.sent.contains_key(&call.req_id) {
            self.waiting
                .entry(call.req_id.clone())
                .or_default()
                .push_back(call);
            return None;
        }
        Some(self.begin(call, now))
    }

    fn begin(&mut self, call: Call, now: Instant) -> String {
        let text = frame::write(call.command, &call.req_id, &call.body);
        let sent = Sent {
            reply: Some(call.reply),
            deadline: now + ANSWER_TIMEOUT,
        };
        self.sent.insert(call.req_id, sent);
        text
    }

    /// Returns the next frame of a request id whose previous frame is done.
    fn next(&mut self, req_id: &str, now: Instant) -> Option<String> {
        let waiting = self.waiting.get_mut(req_id)?;
        // A caller that has gone needs no frame.
        let next = std::iter::from_fn(|| waiting.pop_front()).find(|call| !call.reply.is_closed());
        if waiting.is_empty() {
            self.waiting.remove(req_id);
        }
        next.map(|call| self.begin(call, now))
    }

    /// Passes an answer to its caller, unless it is late. Returns the next frame to send.
    pub(super) fn answered(
        &mut self,
        req_id: &str,
        answer: FrameAnswer,
        now: Instant,
    ) -> Option<String> {
        let sent = self.sent.remove(req_id)?;
        if let Some(reply) = sent.reply {
            // The caller may have gone.
            let _ = reply.send(Ok(answer));
        }
        self.next(req_id, now)
    }

    /// Fails the calls whose timeout has passed, and gives up answers that are very late. Returns the
    /// next frames to send.
    pub(super) fn expire(&mut self, now: Instant) -> Vec<String> {
        let mut lost = Vec::new();
        for (req_id, sent) in &mut self.sent {
            if sent.deadline > now {
                continue;
            }
            match sent.reply.take() {
                Some(reply) => {
                    let error = "wecom did not answer within 5 s".to_owned();
                    // The caller may have gone.
                    let _ = reply.send(Err(PlatformError::Unavailable(error)));
                    sent.deadline = now + LATE_TIMEOUT;
                }
                None => lost.push(req_id.clone()),
            }
        }
        let mut frames = Vec::new();
        for req_id in lost {
            self.sent.remove(&req_id);
            frames.extend(self.next(&req_id, now));
        }
        frames
    }

    /// Fails the calls that are not sent yet.
    pub(super) fn drop_waiting(&mut self) {
        self.waiting.clear();
    }

    /// Reports whether a caller waits for the answer to a sent frame.
    pub(super) fn awaits_answer(&self) -> bool {
        let mut replies = self.sent.values().filter_map(|sent| sent.reply.as_ref());
        replies.any(|reply| !reply.is_closed())
    }

    /// Returns the earliest timeout.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.sent.values().map(|sent| sent.deadline).min()
    }
}

#[cfg(test)]
#[path = "exchange_tests.rs"]
mod tests;

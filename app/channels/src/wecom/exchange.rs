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

    /// Returns the earliest timeout.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.sent.values().map(|sent| sent.deadline).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Reply = oneshot::Receiver<Result<FrameAnswer, PlatformError>>;

    fn call(req_id: &str, number: u64) -> (Call, Reply) {
        let (reply, receiver) = oneshot::channel();
        let call = Call {
            command: "aibot_respond_msg",
            req_id: req_id.to_owned(),
            body: number.into(),
            reply,
        };
        (call, receiver)
    }

    fn ok() -> FrameAnswer {
        FrameAnswer {
            code: 0,
            message: String::new(),
            body: Value::Null,
        }
    }

    #[tokio::test]
    async fn second_frame_waits_for_the_answer_to_the_first() {
        let now = Instant::now();
        let mut exchange = Exchange::default();
        let (first, first_reply) = call("a", 1);
        let (second, mut second_reply) = call("a", 2);
        let (other, _other_reply) = call("b", 3);
        assert!(exchange.submit(first, now).is_some());
        assert_eq!(exchange.submit(second, now), None);
        assert!(exchange.submit(other, now).is_some());
        let next = exchange.answered("a", ok(), now).unwrap();
        assert!(next.contains("\"body\":2"), "{next}");
        assert_eq!(first_reply.await.unwrap(), Ok(ok()));
        assert!(second_reply.try_recv().is_err());
    }

    #[tokio::test]
    async fn late_answer_counts_for_no_other_frame() {
        let now = Instant::now();
        let mut exchange = Exchange::default();
        let (first, first_reply) = call("a", 1);
        let (gone, gone_reply) = call("a", 2);
        let (third, mut third_reply) = call("a", 3);
        exchange.submit(first, now);
        exchange.submit(gone, now);
        exchange.submit(third, now);
        drop(gone_reply);
        assert_eq!(exchange.expire(now), Vec::<String>::new());
        assert_eq!(exchange.deadline(), Some(now + ANSWER_TIMEOUT));
        let later = now + ANSWER_TIMEOUT;
        assert_eq!(exchange.expire(later), Vec::<String>::new());
        assert!(matches!(
            first_reply.await.unwrap(),
            Err(PlatformError::Unavailable(_))
        ));
        let next = exchange.answered("a", ok(), later).unwrap();
        assert!(next.contains("\"body\":3"), "{next}");
        assert!(third_reply.try_recv().is_err());
        exchange.answered("a", ok(), later);
        assert_eq!(third_reply.await.unwrap(), Ok(ok()));
    }

    #[tokio::test]
    async fn lost_answer_releases_the_next_frame_after_a_minute() {
        let now = Instant::now();
        let mut exchange = Exchange::default();
        let (first, _first_reply) = call("a", 1);
        let (second, _second_reply) = call("a", 2);
        exchange.submit(first, now);
        exchange.submit(second, now);
        let late = now + ANSWER_TIMEOUT;
        assert_eq!(exchange.expire(late), Vec::<String>::new());
        let frames = exchange.expire(late + LATE_TIMEOUT);
        assert!(
            frames.len() == 1 && frames[0].contains("\"body\":2"),
            "{frames:?}"
        );
    }
}

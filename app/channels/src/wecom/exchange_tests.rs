//! Tests of frames and their answers.

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

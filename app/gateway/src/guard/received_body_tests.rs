//! Tests of received bodies: memory of large ones, limits of time, and slow clients.

use std::convert::Infallible;

use futures_util::{FutureExt, stream};
use harness::runtime::actor_context::{ActorContext, scope};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::time::timeout;

use super::*;
use crate::guard::body_memory::BodyMemory;

const MIB: usize = 1 << 20;
/// Memory in which two texts of 2 MiB fit, of two users.
const MEMORY: usize = 16 * MIB;

/// Account of a request of `user`.
async fn account(memory: &BodyMemory, user: &str) -> RequestMemory {
    scope(ActorContext::user(user), async { memory.account(None) }).await
}

fn request(account: &RequestMemory, body: Body) -> Request {
    let mut request = Request::new(body);
    request.extensions_mut().insert(account.clone());
    request
}

/// Body without a declared length, with its sender.
fn chunked() -> (UnboundedSender<Bytes>, Body) {
    let (sender, receiver) = unbounded_channel::<Bytes>();
    let chunks = stream::unfold(receiver, |mut receiver| async {
        let chunk = receiver.recv().await?;
        Some((Ok::<_, Infallible>(chunk), receiver))
    });
    (sender, Body::from_stream(chunks))
}

fn zeros(bytes: usize) -> Bytes {
    vec![0; bytes].into()
}

/// Receives a body of 2 MiB, and retains its memory.
async fn hold(memory: &BodyMemory, user: &str) -> RequestMemory {
    let account = account(memory, user).await;
    let received = receive(request(&account, zeros(2 * MIB).into()), BODY_LIMIT).await;
    assert_eq!(received.expect("received").len(), 2 * MIB);
    account
}

#[tokio::test(start_paused = true)]
async fn large_body_waits_for_memory_and_small_one_does_not() {
    let memory = BodyMemory::new(MEMORY);
    let held = [hold(&memory, "a").await, hold(&memory, "b").await];
    let other = account(&memory, "c").await;
    let small = receive(request(&other, zeros(SMALL_TEXT).into()), BODY_LIMIT);
    assert!(small.now_or_never().is_some_and(|body| body.is_ok()));
    let large = request(&other, zeros(SMALL_TEXT + 1).into());
    let mut large = Box::pin(receive(large, BODY_LIMIT));
    assert!((&mut large).now_or_never().is_none());
    held[0].release();
    assert_eq!(large.await.expect("received").len(), SMALL_TEXT + 1);
}

#[tokio::test(start_paused = true)]
async fn chunked_body_waits_once_it_is_large() {
    let memory = BodyMemory::new(MEMORY);
    let held = hold(&memory, "a").await;
    let (sender, body) = chunked();
    let mut body = Box::pin(receive(request(&held, body), BODY_LIMIT));
    sender.send(zeros(SMALL_TEXT)).expect("open");
    assert!((&mut body).now_or_never().is_none());
    sender.send(zeros(MIB)).expect("open");
    drop(sender);
    assert!(
        (&mut body).now_or_never().is_none(),
        "the user's part is used"
    );
    held.release();
    assert_eq!(body.await.expect("received").len(), SMALL_TEXT + MIB);
    // Of the limit, the size of the text stays reserved.
    let rest = MIB - SMALL_TEXT;
    let second = receive(request(&held, zeros(rest + 1).into()), BODY_LIMIT);
    assert!(second.now_or_never().is_none());
    let second = receive(request(&held, zeros(rest).into()), BODY_LIMIT);
    assert!(second.now_or_never().is_some());
}

#[tokio::test(start_paused = true)]
async fn memory_that_is_not_released_refuses_bodies() {
    let memory = BodyMemory::new(MEMORY);
    let _held = [hold(&memory, "a").await, hold(&memory, "b").await];
    let other = account(&memory, "c").await;
    let since = Instant::now();
    let refused = receive(request(&other, zeros(2 * MIB).into()), BODY_LIMIT).await;
    assert_eq!(
        refused,
        Err(ApiError::BodiesBusy {
            retry_after_secs: 5
        })
    );
    assert_eq!(since.elapsed().as_secs(), 20);
}

#[tokio::test(start_paused = true)]
async fn slow_client_gives_its_memory_to_another_user() {
    let memory = BodyMemory::new(MEMORY);
    let _held = hold(&memory, "a").await;
    let slow = account(&memory, "b").await;
    let (sender, body) = chunked();
    sender.send(zeros(MIB + 1)).expect("open");
    let slow_request = request(&slow, body);
    let slow_body = async {
        let received = receive(slow_request, BODY_LIMIT).await;
        slow.release();
        received
    };
    let mut slow_body = Box::pin(slow_body);
    // Nobody else waits.
    let alone = timeout(Duration::from_secs(30), &mut slow_body).await;
    assert!(alone.is_err(), "{alone:?}");
    let other = account(&memory, "c").await;
    let other = receive(request(&other, zeros(2 * MIB).into()), BODY_LIMIT);
    let since = Instant::now();
    let (slow_body, other) = tokio::join!(slow_body, other);
    assert_eq!(slow_body, Err(ApiError::TooSlow));
    assert_eq!(other.expect("received").len(), 2 * MIB);
    assert!(since.elapsed() <= CHECK, "{:?}", since.elapsed());
    drop(sender);
}

#[tokio::test(start_paused = true)]
async fn body_that_stops_is_refused_after_the_timeout() {
    let memory = BodyMemory::new(MEMORY);
    let account = account(&memory, "a").await;
    for first in [1, MIB + 1] {
        let (sender, body) = chunked();
        sender.send(zeros(first)).expect("open");
        let since = Instant::now();
        let received = receive(request(&account, body), BODY_LIMIT).await;
        assert_eq!(received, Err(ApiError::TooSlow));
        assert_eq!(since.elapsed().as_secs(), BODY_TIMEOUT.as_secs());
        account.release();
        drop(sender);
    }
}

#[tokio::test(start_paused = true)]
async fn body_received_early_is_counted_once() {
    let memory = BodyMemory::new(MEMORY);
    let account = account(&memory, "a").await;
    let early = receive_early(request(&account, zeros(2 * MIB).into()), BODY_LIMIT);
    let again = receive(early.await.expect("received"), BODY_LIMIT);
    let again = again.now_or_never().expect("in memory").expect("received");
    assert_eq!(again.len(), 2 * MIB);
}

#[tokio::test]
async fn body_beyond_its_limit_is_rejected_with_the_limit() {
    let text = "x".repeat(100);
    let read = receive(Request::new(text.clone().into()), 100).await;
    assert_eq!(read, Ok(text.clone().into()));
    let refused = receive(Request::new(text.clone().into()), 99).await;
    assert_eq!(refused, Err(ApiError::TooLarge(99)));
    let (sender, body) = chunked();
    sender.send(text.into()).expect("open");
    let streamed = receive(Request::new(body), 99).await;
    assert_eq!(streamed, Err(ApiError::TooLarge(99)));
}

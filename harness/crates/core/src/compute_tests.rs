//! Tests of the sizes of computations and of their threads.

use tokio::sync::oneshot;

use super::*;
use crate::tasks::{TaskKind, Tasks};

const HEAVY: Size = Size {
    items: HEAVY_MESSAGES,
    bytes: 0,
};

/// The heavy poll blocks its thread until another task of the same single worker has run.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn other_tasks_progress_during_heavy_poll() {
    let tasks = Tasks::new();
    let (arrive, arrived) = oneshot::channel();
    let (release, released) = std::sync::mpsc::channel::<()>();
    let work = offloading(async move {
        heavy_poll(HEAVY).await;
        arrive.send(()).unwrap();
        released.recv().unwrap();
    });
    let heavy = tasks.spawn(TaskKind::Finish, "heavy", work);
    arrived.await.unwrap();
    tasks
        .spawn(TaskKind::Finish, "light", async move {
            release.send(()).unwrap()
        })
        .await
        .unwrap()
        .unwrap();
    heavy.await.unwrap().unwrap();
}

fn conversation(messages: usize, text: &str) -> Vec<Message> {
    let message = |_| Message::human(text);
    (0..messages).map(message).collect()
}

#[test]
fn size_of_messages_is_estimated_from_samples() {
    let size = Size::messages(&conversation(40, "abcdefgh"));
    assert_eq!((size.items, size.bytes), (40, 40 * 20));
    let long = Size::messages(&conversation(1_000, "abcdefgh"));
    assert_eq!(long.items, 1_000);
    assert!((15_000..=25_000).contains(&long.bytes), "{long:?}");
    assert_eq!(Size::messages(&[]), Size::default());
}

#[test]
fn messages_that_were_sent_count_less() {
    let messages = conversation(1_000, "text");
    let unsent = Size::messages(&messages);
    for message in &messages {
        message.wire_json(1, |_| None);
    }
    let sent = Size::messages(&messages);
    assert!(unsent.is_heavy() && !sent.is_heavy());
    assert_eq!(sent.items, 1_000 / SENT_PER_UNSENT);
    let huge = conversation(10, &"x".repeat(1 << 20));
    for message in &huge {
        message.wire_json(1, |_| None);
    }
    assert!(Size::messages(&huge).is_heavy());
}

/// Reports whether the current poll runs off the I/O threads.
fn is_off() -> bool {
    POLLS.with(|polls| polls.current.get())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn run_is_offloaded_until_its_next_await() {
    let seen = offloading(async {
        let before = is_off();
        heavy_poll(HEAVY).await;
        let within = is_off();
        tokio::task::yield_now().await;
        heavy_poll(Size::items(HEAVY_MESSAGES - 1)).await;
        (before, within, is_off())
    });
    assert_eq!(seen.await, (false, true, false));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn heavy_request_stays_offloaded_and_passes_it_on() {
    let seen = offloading_all(async {
        let light = continuing(async { is_off() }).await;
        heavy_poll(HEAVY).await;
        tokio::task::yield_now().await;
        (light, is_off(), continuing(async { is_off() }).await)
    });
    assert_eq!(seen.await, (false, true, true));
}

#[tokio::test]
async fn a_runtime_of_one_thread_computes_in_place() {
    heavy_poll(HEAVY).await;
    assert!(
        !offloading(async {
            heavy_poll(HEAVY).await;
            is_off()
        })
        .await
    );
}

#[test]
fn wrapped_work_is_stored_once() {
    let large = [0_u8; 4096];
    let work = || async move {
        tokio::task::yield_now().await;
        large.len()
    };
    let size = size_of_val(&work());
    let actor = crate::actor_context::ActorContext::default();
    assert!(size_of_val(&offloading(work())) < 512);
    assert!(size_of_val(&offloading_all(work())) < 512);
    assert!(size_of_val(&crate::actor_context::scope(actor, work())) < size + 512);
    let observed = crate::permit_waits::ObservedWait::default();
    assert!(size_of_val(&observed.observe(work())) < size + 512);
}

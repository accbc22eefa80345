//! Tests of the queue between the tasks of a run.

use super::*;

#[tokio::test]
async fn values_arrive_in_order_from_all_senders() {
    let (sender, mut receiver) = run_queue();
    let other = sender.clone();
    for value in 0..100 {
        [&sender, &other][value % 2].send(value);
    }
    for value in 0..100 {
        assert_eq!(receiver.recv().await, Some(value));
    }
    assert_eq!(receiver.try_recv(), None);
}

#[tokio::test]
async fn receiver_that_waits_is_woken_by_other_threads() {
    let (sender, mut receiver) = run_queue();
    let senders: Vec<_> = (0..8)
        .map(|of| {
            let sender = sender.clone();
            std::thread::spawn(move || {
                for value in 0..1_000 {
                    sender.send(of * 1_000 + value);
                    std::thread::yield_now();
                }
            })
        })
        .collect();
    drop(sender);
    let mut received = Vec::new();
    while let Some(value) = receiver.recv().await {
        received.push(value);
    }
    senders
        .into_iter()
        .for_each(|sender| sender.join().unwrap());
    received.sort_unstable();
    assert_eq!(received, (0..8_000).collect::<Vec<i32>>());
}

#[tokio::test]
async fn queued_values_are_received_after_the_last_sender() {
    let (sender, mut receiver) = run_queue();
    sender.send(1);
    let last = sender.clone();
    drop(sender);
    last.send(2);
    drop(last);
    assert_eq!(receiver.recv().await, Some(1));
    assert_eq!(receiver.recv().await, Some(2));
    assert_eq!(receiver.recv().await, None);
}

/// Value that owns a sender of its own queue.
struct Owner {
    _value: Arc<()>,
    _sender: QueueSender<Owner>,
}

#[test]
fn values_are_dropped_without_a_receiver() {
    let (sender, receiver) = run_queue();
    let values = Arc::new(());
    let send = || {
        sender.send(Owner {
            _value: Arc::clone(&values),
            _sender: sender.clone(),
        });
    };
    send();
    assert_eq!(Arc::strong_count(&values), 2);
    drop(receiver);
    assert_eq!(Arc::strong_count(&values), 1);
    send();
    assert_eq!(Arc::strong_count(&values), 1);
}

#[tokio::test]
async fn empty_queue_frees_the_memory_of_a_burst() {
    let (sender, mut receiver) = run_queue();
    for _ in 0..2 {
        (0..1_000).for_each(|value| sender.send(value));
        while receiver.try_recv().is_some() {}
        assert!(receiver.0.lock().values.capacity() <= MAX_RETAINED);
    }
}

#[test]
fn waker_of_a_dropped_receiver_is_dropped() {
    let (_sender, mut receiver) = run_queue::<()>();
    let task = Arc::new(NoTask);
    let waker = Arc::clone(&task).into();
    let polled = receiver.poll_recv(&mut Context::from_waker(&waker));
    assert!(polled.is_pending());
    drop(waker);
    assert_eq!(Arc::strong_count(&task), 2);
    drop(receiver);
    assert_eq!(Arc::strong_count(&task), 1);
}

/// Task that does nothing when it is woken.
struct NoTask;

impl std::task::Wake for NoTask {
    fn wake(self: Arc<Self>) {}
}

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
async fn receiver_that_waits_is_woken_by_another_task() {
    let (sender, mut receiver) = run_queue();
    let received = tokio::spawn(async move {
        let mut received = Vec::new();
        while let Some(value) = receiver.recv().await {
            received.push(value);
        }
        received
    });
    let senders = (0..8).map(|of| {
        let sender = sender.clone();
        tokio::spawn(async move {
            for value in 0..1_000 {
                sender.send(of * 1_000 + value);
                tokio::task::yield_now().await;
            }
        })
    });
    futures_util::future::join_all(senders).await;
    drop(sender);
    let mut received: Vec<i32> = received.await.unwrap();
    received.sort_unstable();
    assert_eq!(received, (0..8_000).collect::<Vec<_>>());
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

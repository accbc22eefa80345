//! Behaviour of the in-memory bridge beyond the contract: retention and release of memory.

use crate::stream_bridge::END_SENTINEL;
use futures_util::FutureExt;

use super::*;

const HOUR: Duration = Duration::from_secs(60 * 60);

fn run(text: &str) -> RunId {
    RunId::parse(text).expect("a valid id")
}

fn bridge(options: InMemoryOptions) -> InMemoryStreamBridge {
    InMemoryStreamBridge::new(options).expect("valid options")
}

/// Publishes events that share no bytes with their neighbours, so that packs save little.
async fn publish(bridge: &InMemoryStreamBridge, run_id: &str, count: usize, bytes: usize) {
    let key = StreamKey {
        run_id: run(run_id),
        attempt: 1,
    };
    for nth in 0..count {
        let digit = if nth % 2 == 0 { b'1' } else { b'2' };
        bridge
            .publish(
                &key,
                EventName::Borrowed("values"),
                Bytes::from(vec![digit; bytes]).into(),
            )
            .await
            .expect("an open stream takes events");
    }
}

async fn end(bridge: &InMemoryStreamBridge, run_id: &str) {
    bridge
        .publish_end(&StreamKey {
            run_id: run(run_id),
            attempt: 1,
        })
        .await
        .expect("an open stream can be ended");
}

async fn view(bridge: &InMemoryStreamBridge, run_id: &str) -> Subscription {
    bridge
        .subscribe(&run(run_id), ResumeFrom::Start, HOUR)
        .await
        .expect("an open bridge")
}

async fn resume(bridge: &InMemoryStreamBridge, run_id: &str) -> ResumeResult {
    view(bridge, run_id).await.resume
}

#[tokio::test]
async fn ready_events_are_returned_without_yielding() {
    let bridge = bridge(InMemoryOptions::default());
    publish(&bridge, "r", 5_000, 10).await;
    end(&bridge, "r").await;
    let mut view = view(&bridge, "r").await;
    for _ in 0..5_000 {
        assert!(matches!(
            view.items.next().now_or_never(),
            Some(Some(StreamItem::Event(_)))
        ));
    }
    assert_eq!(view.items.next().now_or_never(), Some(Some(END_SENTINEL)));
}

#[tokio::test]
async fn log_stays_within_byte_limit_and_retains_newest() {
    let bridge = bridge(InMemoryOptions {
        max_bytes: 10_000,
        ..InMemoryOptions::default()
    });
    publish(&bridge, "r", 20, 1_000).await;
    assert_eq!(resume(&bridge, "r").await, ResumeResult::Gap);
    publish(&bridge, "r", 1, 1_000_000).await;
    let cursor = ResumeFrom::After(EventId {
        seq: 20,
        attempt: 1,
    });
    let mut newest = bridge
        .subscribe(&run("r"), cursor, HOUR)
        .await
        .expect("an open bridge");
    assert!(
        matches!(newest.items.next().now_or_never(), Some(Some(StreamItem::Event(event))) if event.data.len() == 1_000_000)
    );
}

#[tokio::test(start_paused = true)]
async fn ended_run_expires_after_retention_without_sweep() {
    let bridge = bridge(InMemoryOptions {
        retention_after_end: HOUR,
        ..InMemoryOptions::default()
    });
    publish(&bridge, "r", 1, 10).await;
    end(&bridge, "r").await;
    tokio::time::advance(HOUR - Duration::from_secs(1)).await;
    assert_eq!(
        resume(&bridge, "r").await,
        ResumeResult::Ended(TerminalKind::End)
    );
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(resume(&bridge, "r").await, ResumeResult::Unknown);
}

#[tokio::test]
async fn ended_runs_over_budget_are_evicted_in_end_order() {
    let bridge = bridge(InMemoryOptions {
        max_ended_bytes: 25_000,
        ..InMemoryOptions::default()
    });
    for name in ["first", "second", "third", "open"] {
        publish(&bridge, name, 10, 1_000).await;
    }
    end(&bridge, "second").await;
    let mut active_view = view(&bridge, "second").await;
    active_view.items.next().await;
    end(&bridge, "first").await;
    end(&bridge, "third").await;
    assert_eq!(resume(&bridge, "second").await, ResumeResult::Unknown);
    assert_eq!(
        resume(&bridge, "first").await,
        ResumeResult::Ended(TerminalKind::End)
    );
    assert_eq!(
        resume(&bridge, "third").await,
        ResumeResult::Ended(TerminalKind::End)
    );
    assert_eq!(resume(&bridge, "open").await, ResumeResult::From(1));
    // The batch that the viewer had taken before is complete; it contained all events that fit into
    // one batch.
    let remaining: Vec<_> = active_view.items.collect().await;
    assert_eq!(remaining.len(), 10);
    assert_eq!(remaining.last(), Some(&END_SENTINEL));
}

#[tokio::test]
async fn viewer_of_evicted_run_gets_a_gap() {
    let bridge = bridge(InMemoryOptions {
        max_ended_bytes: 1,
        ..InMemoryOptions::default()
    });
    publish(&bridge, "old", 500, 10).await;
    end(&bridge, "old").await;
    let mut active_view = view(&bridge, "old").await;
    active_view.items.next().await;
    end(&bridge, "new").await;
    let remaining: Vec<_> = active_view.items.collect().await;
    let Some(StreamItem::Gap(gap)) = remaining.last() else {
        panic!("expected a gap, got {:?}", remaining.last())
    };
    assert_eq!(
        gap.requested_event_id,
        Some(format!("{}-1", remaining.len()))
    );
    assert_eq!(
        (
            gap.earliest_available_event_id.as_str(),
            gap.latest_available_event_id.as_str()
        ),
        ("500-1", "500-1")
    );
}

#[tokio::test(start_paused = true)]
async fn memory_is_released_after_eviction_and_last_viewer() {
    let options = InMemoryOptions::default();
    let sweep = options.sweep_interval + Duration::from_millis(1);
    let bridge = bridge(options);
    bridge.start().await.expect("open");
    bridge
        .start()
        .await
        .expect("starting twice is starting once");
    publish(&bridge, "r", 10, 1_000).await;
    let active_view = view(&bridge, "r").await;
    end(&bridge, "r").await;
    bridge.cleanup(&run("r"), Duration::ZERO).await;
    tokio::time::sleep(sweep).await;
    assert!(
        bridge.shared.ended.lock().bytes() > 10_000,
        "the viewer still needs it"
    );
    drop(active_view);
    tokio::time::sleep(sweep).await;
    assert_eq!(bridge.shared.ended.lock().bytes(), 0);
    bridge.close().await;
    assert_eq!(bridge.shared.tasks.alive(), 0);
}

#[tokio::test(start_paused = true)]
async fn cleanup_of_open_run_waits_for_its_end() {
    let bridge = bridge(InMemoryOptions::default());
    publish(&bridge, "r", 1, 10).await;
    bridge.cleanup(&run("r"), Duration::ZERO).await;
    publish(&bridge, "r", 1, 10).await;
    let mut live = view(&bridge, "r").await;
    end(&bridge, "r").await;
    assert_eq!(resume(&bridge, "r").await, ResumeResult::Unknown);
    assert_eq!(live.items.by_ref().count().await, 3);
}

#[tokio::test(start_paused = true)]
async fn zero_or_infinite_heartbeat_is_disabled() {
    let bridge = bridge(InMemoryOptions::default());
    publish(&bridge, "r", 1, 10).await;
    for heartbeat in [Duration::ZERO, Duration::MAX] {
        let mut view = bridge
            .subscribe(&run("r"), ResumeFrom::Tail, heartbeat)
            .await
            .expect("an open bridge");
        assert!(tokio::time::timeout(HOUR, view.items.next()).await.is_err());
    }
}

#[tokio::test(start_paused = true)]
async fn detecting_lost_producer_wakes_waiting_viewers() {
    let bridge = bridge(InMemoryOptions::default());
    let began = Instant::now();
    let stall_timeout = bridge.shared.options.idle_stream_ttl;
    publish(&bridge, "r", 1, 10).await;
    let mut waiting = bridge
        .subscribe(&run("r"), ResumeFrom::Tail, Duration::ZERO)
        .await
        .expect("an open bridge");
    let finder = async {
        tokio::time::sleep(stall_timeout).await;
        resume(&bridge, "r").await
    };
    let (item, found) =
        tokio::join!(biased; tokio::time::timeout(2 * stall_timeout, waiting.items.next()), finder);
    assert_eq!(
        (item, found),
        (Ok(Some(StreamItem::Aborted)), ResumeResult::Unknown)
    );
    assert!(
        began.elapsed() < 2 * stall_timeout,
        "the viewer was not woken"
    );
}

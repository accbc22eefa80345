//! What the memory bridge does beyond the contract: what it keeps, and when it lets go.

use crate::runtime::stream_bridge::END_SENTINEL;
use futures_util::FutureExt;

use super::*;

const HOUR: Duration = Duration::from_secs(60 * 60);

fn run(text: &str) -> RunId {
    RunId::parse(text).expect("a valid id")
}

fn bridge(options: MemoryOptions) -> MemoryStreamBridge {
    MemoryStreamBridge::new(options).expect("valid options")
}

async fn publish(bridge: &MemoryStreamBridge, run_id: &str, count: usize, bytes: usize) {
    let key = StreamKey {
        run_id: run(run_id),
        attempt: 1,
    };
    for _ in 0..count {
        bridge
            .publish(
                &key,
                EventName::Borrowed("values"),
                Bytes::from(vec![b'1'; bytes]).into(),
            )
            .await
            .expect("an open stream takes events");
    }
}

async fn end(bridge: &MemoryStreamBridge, run_id: &str) {
    bridge
        .publish_end(&StreamKey {
            run_id: run(run_id),
            attempt: 1,
        })
        .await
        .expect("an open stream can be ended");
}

async fn view(bridge: &MemoryStreamBridge, run_id: &str) -> Subscription {
    bridge
        .subscribe(&run(run_id), ResumeFrom::Start, HOUR)
        .await
        .expect("an open bridge")
}

async fn resume(bridge: &MemoryStreamBridge, run_id: &str) -> ResumeResult {
    view(bridge, run_id).await.resume
}

#[tokio::test]
async fn all_ready_events_are_handed_over_without_yielding() {
    let bridge = bridge(MemoryOptions::default());
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
async fn a_log_keeps_within_its_bytes_and_always_its_newest_event() {
    let bridge = bridge(MemoryOptions {
        max_bytes: 10_000,
        ..MemoryOptions::default()
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
async fn an_ended_run_is_forgotten_after_its_retention_even_before_a_sweep() {
    let bridge = bridge(MemoryOptions {
        retention_after_end: HOUR,
        ..MemoryOptions::default()
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
async fn ended_runs_over_the_budget_go_in_the_order_of_their_end() {
    let bridge = bridge(MemoryOptions {
        max_ended_bytes: 25_000,
        ..MemoryOptions::default()
    });
    for name in ["first", "second", "third", "open"] {
        publish(&bridge, name, 10, 1_000).await;
    }
    end(&bridge, "second").await;
    let mut under_way = view(&bridge, "second").await;
    under_way.items.next().await;
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
    // What the viewer had taken before is whole; it had taken everything that fits one batch.
    let left: Vec<_> = under_way.items.collect().await;
    assert_eq!(left.len(), 10);
    assert_eq!(left.last(), Some(&END_SENTINEL));
}

#[tokio::test]
async fn a_viewer_of_a_run_over_the_budget_is_told_of_the_hole() {
    let bridge = bridge(MemoryOptions {
        max_ended_bytes: 1,
        ..MemoryOptions::default()
    });
    publish(&bridge, "old", 500, 10).await;
    end(&bridge, "old").await;
    let mut under_way = view(&bridge, "old").await;
    under_way.items.next().await;
    end(&bridge, "new").await;
    let left: Vec<_> = under_way.items.collect().await;
    let Some(StreamItem::Gap(gap)) = left.last() else {
        panic!("expected a gap, got {:?}", left.last())
    };
    assert_eq!(gap.requested_event_id, Some(format!("{}-1", left.len())));
    assert_eq!(
        (
            gap.earliest_available_event_id.as_str(),
            gap.latest_available_event_id.as_str()
        ),
        ("500-1", "500-1")
    );
}

#[tokio::test(start_paused = true)]
async fn memory_is_given_back_once_neither_the_bridge_nor_a_viewer_needs_it() {
    let options = MemoryOptions::default();
    let sweep = options.sweep_interval + Duration::from_millis(1);
    let bridge = bridge(options);
    bridge.start().await.expect("open");
    bridge
        .start()
        .await
        .expect("starting twice is starting once");
    publish(&bridge, "r", 10, 1_000).await;
    let under_way = view(&bridge, "r").await;
    end(&bridge, "r").await;
    bridge.cleanup(&run("r"), Duration::ZERO).await;
    tokio::time::sleep(sweep).await;
    assert!(
        bridge.inner.ended.lock().bytes() > 10_000,
        "the viewer still needs it"
    );
    drop(under_way);
    tokio::time::sleep(sweep).await;
    assert_eq!(bridge.inner.ended.lock().bytes(), 0);
    bridge.close().await;
    assert_eq!(bridge.inner.tasks.alive(), 0);
}

#[tokio::test(start_paused = true)]
async fn cleaning_up_an_open_run_waits_for_its_end() {
    let bridge = bridge(MemoryOptions::default());
    publish(&bridge, "r", 1, 10).await;
    bridge.cleanup(&run("r"), Duration::ZERO).await;
    publish(&bridge, "r", 1, 10).await;
    let mut live = view(&bridge, "r").await;
    end(&bridge, "r").await;
    assert_eq!(resume(&bridge, "r").await, ResumeResult::Unknown);
    assert_eq!(live.items.by_ref().count().await, 3);
}

#[tokio::test(start_paused = true)]
async fn a_heartbeat_of_zero_or_for_ever_is_none() {
    let bridge = bridge(MemoryOptions::default());
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
async fn whoever_finds_a_lost_producer_wakes_the_viewers_that_wait_for_it() {
    let bridge = bridge(MemoryOptions::default());
    let began = Instant::now();
    let patience = bridge.inner.options.idle_stream_ttl;
    publish(&bridge, "r", 1, 10).await;
    let mut waiting = bridge
        .subscribe(&run("r"), ResumeFrom::Tail, Duration::ZERO)
        .await
        .expect("an open bridge");
    let finder = async {
        tokio::time::sleep(patience).await;
        resume(&bridge, "r").await
    };
    let (item, found) =
        tokio::join!(biased; tokio::time::timeout(2 * patience, waiting.items.next()), finder);
    assert_eq!(
        (item, found),
        (Ok(Some(StreamItem::Aborted)), ResumeResult::Unknown)
    );
    assert!(began.elapsed() < 2 * patience, "the viewer was not woken");
}

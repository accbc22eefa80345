//! Contract of silence, slow viewers and timeouts. Waits are the behaviour under test: run the
//! tests with paused time if the adapter allows it.

use tokio::time::sleep;

use super::*;

const SECOND: Duration = Duration::from_secs(1);

/// A silent stream sends heartbeats at the requested interval.
pub async fn silence_produces_heartbeats(factory: &dyn StreamBridgeFactory) {
    let scene = Scene::open(factory).await;
    scene.publish(1, 1).await;
    let mut view = scene.view_with(ResumeFrom::Start, SECOND).await;
    let began = Instant::now();
    next_event(&mut view).await;
    for _ in 0..3 {
        // A heartbeat in time is accepted even if a slow machine handles it late.
        tokio::select! {
            biased;
            item = next(&mut view) => assert_eq!(item, Some(StreamItem::Heartbeat)),
            () = sleep(SECOND * 5 / 3) => panic!("a one-second heartbeat did not arrive in time"),
        }
    }
    let silence = began.elapsed();
    assert!(
        silence >= 3 * SECOND - SECOND / 10,
        "three one-second heartbeats took {silence:?}"
    );
    scene.publish(1, 1).await;
    assert_eq!(next_event(&mut view).await.id, id(2, 1));
}

/// A heartbeat follows one period after the last event, not between events.
pub async fn events_postpone_heartbeats(factory: &dyn StreamBridgeFactory) {
    let scene = Scene::open(factory).await;
    scene.publish(1, 1).await;
    let mut quiet_since = Instant::now();
    let mut view = scene.view_with(ResumeFrom::Tail, SECOND).await;
    for _ in 0..5 {
        let half = async {
            sleep(SECOND / 2).await;
            // Measured before any viewer can have seen the event.
            let published_at = Instant::now();
            scene.publish(1, 1).await;
            published_at
        };
        let (published_at, ()) =
            tokio::join!(half, event_or_late_heartbeats(&mut view, quiet_since));
        quiet_since = published_at;
    }
    assert_late_heartbeat(next(&mut view).await, quiet_since);
}

/// Takes the next event. On a slow machine, heartbeats may precede it.
async fn event_or_late_heartbeats(view: &mut Subscription, quiet_since: Instant) {
    loop {
        match next(view).await {
            Some(StreamItem::Event(_)) => return,
            other => assert_late_heartbeat(other, quiet_since),
        }
    }
}

fn assert_late_heartbeat(item: Option<StreamItem>, quiet_since: Instant) {
    assert_eq!(item, Some(StreamItem::Heartbeat));
    assert!(
        quiet_since.elapsed() >= SECOND - SECOND / 10,
        "a heartbeat {:?} after an event",
        quiet_since.elapsed()
    );
}

/// Events were waiting and the viewer did not poll: it is disconnected without an end, and resumes
/// at its cursor.
pub async fn stalled_viewer_is_aborted_and_may_resume(factory: &dyn StreamBridgeFactory) {
    let unit = factory.unit();
    let scene = Scene::with(
        factory,
        TestLimits {
            stalled_subscriber_timeout: 2 * unit,
            ..TestLimits::default()
        },
    )
    .await;
    scene.publish(1, 5).await;
    let mut view = scene.view(ResumeFrom::Start).await;
    let seen = next_event(&mut view).await.id;
    sleep(3 * unit).await;
    let after = rest(&mut view).await;
    assert_eq!(
        after.last(),
        Some(&StreamItem::Aborted),
        "events in flight may still arrive, then the disconnect"
    );
    let arrived = after.len() - 1;
    let cursor = id(seen.seq + arrived as u64, 1);
    let mut resumed = scene.view(ResumeFrom::After(cursor)).await;
    assert_eq!(
        ids(&mut resumed, 4 - arrived).await.last().copied(),
        (arrived < 4).then(|| id(5, 1))
    );
}

/// Silence of the producer does not disconnect a viewer.
pub async fn waiting_viewer_is_not_stalled(factory: &dyn StreamBridgeFactory) {
    let unit = factory.unit();
    let scene = Scene::with(
        factory,
        TestLimits {
            stalled_subscriber_timeout: 2 * unit,
            ..TestLimits::default()
        },
    )
    .await;
    scene.publish(1, 1).await;
    let mut polled = scene.view(ResumeFrom::Start).await;
    let mut unpolled = scene.view(ResumeFrom::Tail).await;
    next_event(&mut polled).await;
    for seq in 2..=4 {
        sleep(3 * unit).await;
        scene.publish(1, 1).await;
        assert_eq!(next_event(&mut polled).await.id, id(seq, 1));
        assert_eq!(next_event(&mut unpolled).await.id, id(seq, 1));
    }
}

/// A viewer that never reads delays neither the producer nor other viewers.
pub async fn unpolled_viewer_does_not_slow_producer(factory: &dyn StreamBridgeFactory) {
    let scene = Scene::open(factory).await;
    scene.publish(1, 1).await;
    let mut idle = Vec::new();
    for _ in 0..50 {
        let mut view = scene.view(ResumeFrom::Start).await;
        next_event(&mut view).await;
        idle.push(view);
    }
    let mut reads = scene.view(ResumeFrom::Start).await;
    tokio::time::timeout(RECEIVE_TIMEOUT, scene.publish(1, 2_000))
        .await
        .expect("the producer waits for no viewer");
    assert_eq!(ids(&mut reads, 2_001).await.last(), Some(&id(2_001, 1)));
}

/// No viewer waits forever for a lost producer: viewers are aborted, not ended.
pub async fn stream_without_producer_is_aborted(factory: &dyn StreamBridgeFactory) {
    let scene = Scene::with(
        factory,
        TestLimits {
            idle_stream_ttl: 3 * factory.unit(),
            ..TestLimits::default()
        },
    )
    .await;
    scene.publish(1, 1).await;
    let mut view = scene.view(ResumeFrom::Start).await;
    next_event(&mut view).await;
    assert_eq!(rest(&mut view).await, [StreamItem::Aborted]);
}

/// User input may take any time; the next publish ends the suspension.
pub async fn awaiting_input_suspends_idle_limit(factory: &dyn StreamBridgeFactory) {
    let unit = factory.unit();
    let scene = Scene::with(
        factory,
        TestLimits {
            idle_stream_ttl: 3 * unit,
            ..TestLimits::default()
        },
    )
    .await;
    scene.publish(1, 1).await;
    let mut view = scene.view(ResumeFrom::Start).await;
    next_event(&mut view).await;
    scene.bridge.mark_awaiting_input(&scene.run).await;
    sleep(10 * unit).await;
    assert_eq!(scene.publish(1, 1).await, [id(2, 1)]);
    assert_eq!(next_event(&mut view).await.id, id(2, 1));
    assert_eq!(rest(&mut view).await, [StreamItem::Aborted]);
}

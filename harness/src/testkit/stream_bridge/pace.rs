//! Silence, slowness and patience. Waits here are the behaviour under test: run them with paused time where the adapter allows it.

use tokio::time::sleep;

use super::*;

const SECOND: Duration = Duration::from_secs(1);

/// A silent stream shows that it lives, as often as was asked.
pub async fn silence_is_filled_with_heartbeats(factory: &dyn StreamBridgeFactory) {
    let scene = Scene::open(factory).await;
    scene.publish(1, 1).await;
    let mut view = scene.view_with(ResumeFrom::Start, SECOND).await;
    let began = Instant::now();
    next_event(&mut view).await;
    for _ in 0..3 {
        // A heartbeat that was due in time counts, however late the machine gets to it.
        tokio::select! {
            biased;
            item = next(&mut view) => assert_eq!(item, Some(StreamItem::Heartbeat)),
            () = sleep(SECOND * 5 / 3) => panic!("a heartbeat of a second did not come in time"),
        }
    }
    let silence = began.elapsed();
    assert!(
        silence >= 3 * SECOND - SECOND / 10,
        "three heartbeats of a second took {silence:?}"
    );
    scene.publish(1, 1).await;
    assert_eq!(next_event(&mut view).await.id, id(2, 1));
}

/// A heartbeat comes a period after the last event, not in the midst of them.
pub async fn events_put_heartbeats_off(factory: &dyn StreamBridgeFactory) {
    let scene = Scene::open(factory).await;
    scene.publish(1, 1).await;
    let mut quiet_since = Instant::now();
    let mut view = scene.view_with(ResumeFrom::Tail, SECOND).await;
    for _ in 0..5 {
        let half = async {
            sleep(SECOND / 2).await;
            // Not after anybody has seen it.
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

/// Takes the next event. On a slow machine heartbeats may come before it, if they are due.
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

/// Events waited, the viewer did not ask: it is cut without an end, and resumes where it was.
pub async fn a_stalled_viewer_is_cut_and_may_resume(factory: &dyn StreamBridgeFactory) {
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
        "what was under way may still arrive, then the cut"
    );
    let arrived = after.len() - 1;
    let cursor = id(seen.seq + arrived as u64, 1);
    let mut resumed = scene.view(ResumeFrom::After(cursor)).await;
    assert_eq!(
        ids(&mut resumed, 4 - arrived).await.last().copied(),
        (arrived < 4).then(|| id(5, 1))
    );
}

/// Silence of the producer is not the viewer's fault.
pub async fn a_viewer_that_waits_for_the_producer_is_not_stalled(
    factory: &dyn StreamBridgeFactory,
) {
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

/// A viewer that never reads costs its producer no time, and the others no event.
pub async fn a_viewer_that_is_not_polled_does_not_slow_the_producer(
    factory: &dyn StreamBridgeFactory,
) {
    let scene = Scene::open(factory).await;
    scene.publish(1, 1).await;
    let mut idle = Vec::new();
    for _ in 0..50 {
        let mut view = scene.view(ResumeFrom::Start).await;
        next_event(&mut view).await;
        idle.push(view);
    }
    let mut reads = scene.view(ResumeFrom::Start).await;
    tokio::time::timeout(PATIENCE, scene.publish(1, 2_000))
        .await
        .expect("the producer waits for nobody");
    assert_eq!(ids(&mut reads, 2_001).await.last(), Some(&id(2_001, 1)));
}

/// Nobody waits for ever on a producer that is gone: viewers are aborted, not ended.
pub async fn a_stream_without_its_producer_is_given_up(factory: &dyn StreamBridgeFactory) {
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

/// A person may take as long as a person takes; the next publish ends the exemption.
pub async fn waiting_for_a_person_suspends_the_limit_on_silence(factory: &dyn StreamBridgeFactory) {
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

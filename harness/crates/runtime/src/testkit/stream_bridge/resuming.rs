//! Contract of cursors: the position of a viewer, and the gap if it is not available.

use super::*;
use crate::stream_bridge::{Gap, ResumeResult};

async fn assert_only_a_gap(scene: &Scene, from: ResumeFrom, earliest: EventId, latest: EventId) {
    let requested = match from {
        ResumeFrom::After(id) => Some(id),
        ResumeFrom::Start | ResumeFrom::Tail => None,
    };
    let mut view = scene.view(from).await;
    assert_eq!(view.resume, ResumeResult::Gap, "{from:?}");
    let gap = Gap::new(&scene.run, requested, earliest, latest);
    assert_eq!(rest(&mut view).await, [StreamItem::Gap(gap)], "{from:?}");
}

/// The first event after cursor x is x+1, for every x, on a live and on an ended stream.
pub async fn resumed_viewer_gets_events_after_cursor(factory: &dyn StreamBridgeFactory) {
    let scene = Scene::open(factory).await;
    let published = scene.publish(1, 10).await;
    for (seen, cursor) in published.iter().enumerate() {
        let mut view = scene.view(ResumeFrom::After(*cursor)).await;
        assert_eq!(view.resume, ResumeResult::From(cursor.seq + 1));
        assert_eq!(ids(&mut view, 9 - seen).await, published[seen + 1..]);
        assert_silent(&mut view);
    }
    let mut at_the_tail = scene.view(ResumeFrom::After(id(10, 1))).await;
    assert_eq!(scene.publish(1, 1).await, [id(11, 1)]);
    assert_eq!(next_event(&mut at_the_tail).await.id, id(11, 1));
    scene.end().await;
    for cursor in 1..=11 {
        let mut view = scene.view(ResumeFrom::After(id(cursor, 1))).await;
        let left = usize::try_from(11 - cursor).expect("small");
        assert_eq!(rest(&mut view).await.len(), left + 1);
    }
}

/// A subscription at the tail replays no events; on an ended stream it receives only the end.
pub async fn tail_viewer_gets_only_new_events(factory: &dyn StreamBridgeFactory) {
    let scene = Scene::open(factory).await;
    scene.publish(1, 5).await;
    let mut view = scene.view(ResumeFrom::Tail).await;
    assert_eq!(view.resume, ResumeResult::From(6));
    assert_silent(&mut view);
    scene.publish(1, 1).await;
    assert_eq!(next_event(&mut view).await.id, id(6, 1));
    scene.end().await;
    let mut late = scene.view(ResumeFrom::Tail).await;
    assert_eq!(rest(&mut late).await, rest(&mut view).await);
}

/// A cursor ahead of all events is neither replayed from the start nor followed live.
pub async fn cursor_ahead_of_tail_is_a_gap(factory: &dyn StreamBridgeFactory) {
    let scene = Scene::open(factory).await;
    scene.publish(1, 3).await;
    for ahead in [4, 1_000, u64::MAX - 1, u64::MAX] {
        assert_only_a_gap(&scene, ResumeFrom::After(id(ahead, 1)), id(1, 1), id(3, 1)).await;
    }
    scene.end().await;
    assert_only_a_gap(&scene, ResumeFrom::After(id(4, 1)), id(1, 1), id(3, 1)).await;
}

/// The attempt never published at this position: the cursor belongs to another run.
pub async fn cursor_of_unknown_attempt_is_a_gap(factory: &dyn StreamBridgeFactory) {
    let scene = Scene::open(factory).await;
    scene.publish(1, 3).await;
    for seq in 1..=3 {
        assert_only_a_gap(&scene, ResumeFrom::After(id(seq, 2)), id(1, 1), id(3, 1)).await;
    }
}

/// Events of the lost attempt are invalid: the viewer receives the newer attempt from its first
/// event.
pub async fn cursor_of_lost_attempt_resumes_at_newer_attempt(factory: &dyn StreamBridgeFactory) {
    let scene = Scene::open(factory).await;
    scene.publish(1, 2).await;
    scene.publish(2, 3).await;
    for seq in 2..=5 {
        let mut view = scene.view(ResumeFrom::After(id(seq, 1))).await;
        assert_eq!(view.resume, ResumeResult::From(3), "after {seq}-1");
        assert_eq!(ids(&mut view, 3).await, [id(3, 2), id(4, 2), id(5, 2)]);
    }
}

/// A stream that was lost with its process restarts with the next attempt, which may have published
/// fewer events so far.
pub async fn cursor_of_vanished_attempt_resumes_at_start(factory: &dyn StreamBridgeFactory) {
    let scene = Scene::open(factory).await;
    scene.publish(2, 3).await;
    for seq in [1, 3, 4, 57] {
        let mut view = scene.view(ResumeFrom::After(id(seq, 1))).await;
        assert_eq!(view.resume, ResumeResult::From(1), "after {seq}-1");
        assert_eq!(ids(&mut view, 3).await, [id(1, 2), id(2, 2), id(3, 2)]);
    }
    assert_only_a_gap(&scene, ResumeFrom::After(id(57, 2)), id(1, 2), id(3, 2)).await;
}

/// A cursor before the oldest retained event, or the start, yields a gap.
pub async fn cursor_before_retained_events_is_a_gap(factory: &dyn StreamBridgeFactory) {
    let scene = Scene::with(
        factory,
        TestLimits {
            max_events: 4,
            ..TestLimits::default()
        },
    )
    .await;
    scene.publish(1, 10).await;
    assert_only_a_gap(&scene, ResumeFrom::Start, id(7, 1), id(10, 1)).await;
    for seq in 1..=5 {
        assert_only_a_gap(&scene, ResumeFrom::After(id(seq, 1)), id(7, 1), id(10, 1)).await;
    }
    let mut view = scene.view(ResumeFrom::After(id(6, 1))).await;
    assert_eq!(
        ids(&mut view, 4).await,
        [id(7, 1), id(8, 1), id(9, 1), id(10, 1)]
    );
}

/// Evicted events are never skipped silently, even for an active viewer.
pub async fn overtaken_reader_gets_gap_and_nothing_else(factory: &dyn StreamBridgeFactory) {
    let scene = Scene::with(
        factory,
        TestLimits {
            max_events: 4,
            ..TestLimits::default()
        },
    )
    .await;
    scene.publish(1, 2).await;
    let mut view = scene.view(ResumeFrom::Start).await;
    assert_eq!(ids(&mut view, 2).await, [id(1, 1), id(2, 1)]);
    scene.publish(1, 10).await;
    let gap = Gap::new(&scene.run, Some(id(2, 1)), id(9, 1), id(12, 1));
    assert_eq!(rest(&mut view).await, [StreamItem::Gap(gap)]);
}

/// The run is unknown, so the caller must read the store.
pub async fn unknown_run_gives_empty_stream(factory: &dyn StreamBridgeFactory) {
    let scene = Scene::open(factory).await;
    for from in [
        ResumeFrom::Start,
        ResumeFrom::Tail,
        ResumeFrom::After(id(3, 1)),
    ] {
        let mut view = scene.view(from).await;
        assert_eq!(view.resume, ResumeResult::Unknown);
        assert_eq!(rest(&mut view).await, []);
    }
}

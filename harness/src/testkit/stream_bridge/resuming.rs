//! Cursors: where a viewer begins, and what it is told when it cannot.

use super::*;
use crate::runtime::stream_bridge::{Gap, ResumeResult};

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

/// After cursor x comes x+1, for every x, on a live and on an ended stream.
pub async fn a_resumed_viewer_gets_what_comes_strictly_after_its_cursor(
    factory: &dyn StreamBridgeFactory,
) {
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

/// The tail replays nothing; on an ended stream only the end is left.
pub async fn a_viewer_at_the_tail_gets_only_what_comes_next(factory: &dyn StreamBridgeFactory) {
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

/// A cursor that no event had yet is neither replayed from the start nor followed live.
pub async fn a_cursor_ahead_of_the_tail_is_a_gap_with_bounds(factory: &dyn StreamBridgeFactory) {
    let scene = Scene::open(factory).await;
    scene.publish(1, 3).await;
    for ahead in [4, 1_000, u64::MAX - 1, u64::MAX] {
        assert_only_a_gap(&scene, ResumeFrom::After(id(ahead, 1)), id(1, 1), id(3, 1)).await;
    }
    scene.end().await;
    assert_only_a_gap(&scene, ResumeFrom::After(id(4, 1)), id(1, 1), id(3, 1)).await;
}

/// An attempt that never published in this place: the cursor belongs to another run.
pub async fn a_cursor_of_an_attempt_yet_unknown_is_a_gap(factory: &dyn StreamBridgeFactory) {
    let scene = Scene::open(factory).await;
    scene.publish(1, 3).await;
    for seq in 1..=3 {
        assert_only_a_gap(&scene, ResumeFrom::After(id(seq, 2)), id(1, 1), id(3, 1)).await;
    }
}

/// What the lost attempt said in this place is void: the newer attempt is seen from its first event.
pub async fn a_cursor_of_a_lost_attempt_resumes_where_the_newer_one_began(
    factory: &dyn StreamBridgeFactory,
) {
    let scene = Scene::open(factory).await;
    scene.publish(1, 2).await;
    scene.publish(2, 3).await;
    for seq in 2..=5 {
        let mut view = scene.view(ResumeFrom::After(id(seq, 1))).await;
        assert_eq!(view.resume, ResumeResult::From(3), "after {seq}-1");
        assert_eq!(ids(&mut view, 3).await, [id(3, 2), id(4, 2), id(5, 2)]);
    }
}

/// A stream that was lost with the process that owned it begins anew with the next attempt, which may not have come as far yet.
pub async fn a_cursor_of_an_attempt_that_is_gone_resumes_at_the_beginning(
    factory: &dyn StreamBridgeFactory,
) {
    let scene = Scene::open(factory).await;
    scene.publish(2, 3).await;
    for seq in [1, 3, 4, 57] {
        let mut view = scene.view(ResumeFrom::After(id(seq, 1))).await;
        assert_eq!(view.resume, ResumeResult::From(1), "after {seq}-1");
        assert_eq!(ids(&mut view, 3).await, [id(1, 2), id(2, 2), id(3, 2)]);
    }
    assert_only_a_gap(&scene, ResumeFrom::After(id(57, 2)), id(1, 2), id(3, 2)).await;
}

/// Neither the start nor a cursor is answered from a log that no longer reaches back to it.
pub async fn a_cursor_below_what_is_kept_is_a_gap(factory: &dyn StreamBridgeFactory) {
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

/// A hole is never skipped in silence, even under a viewer that is reading.
pub async fn a_reader_that_is_overtaken_gets_a_gap_and_nothing_after_it(
    factory: &dyn StreamBridgeFactory,
) {
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

/// Nothing is known of the run: the caller must ask the store.
pub async fn an_unknown_run_gives_an_empty_stream(factory: &dyn StreamBridgeFactory) {
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

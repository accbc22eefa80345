//! Contract of order, equality for all viewers, and attempts.

use super::*;
use crate::stream_bridge::{BridgeError, CANCELLED_SENTINEL, END_SENTINEL, ResumeResult};

/// Ids are 1, 2, 3, ... and viewers see them in order.
pub async fn event_ids_are_consecutive_from_one(factory: &dyn StreamBridgeFactory) {
    let scene = Scene::open(factory).await;
    let published = scene.publish(1, 300).await;
    assert_eq!(
        published,
        (1..=300).map(|seq| id(seq, 1)).collect::<Vec<_>>()
    );
    let mut view = scene.view(ResumeFrom::Start).await;
    assert_eq!(view.resume, ResumeResult::From(1));
    assert_eq!(ids(&mut view, 300).await, published);
}

/// Early, late and very late viewers see the same events, names and data.
pub async fn all_viewers_see_the_same_events(factory: &dyn StreamBridgeFactory) {
    let scene = Scene::open(factory).await;
    scene.publish(1, 1).await;
    let mut early = scene.view(ResumeFrom::Start).await;
    let name = EventName::Owned("messages|tools:1".to_owned());
    scene
        .bridge
        .publish(
            &scene.key(1),
            name.clone(),
            Bytes::from_static(b"{}").into(),
        )
        .await
        .expect("published");
    let mut late = scene.view(ResumeFrom::Start).await;
    scene.publish(1, 100).await;
    scene.end().await;
    let mut very_late = scene.view(ResumeFrom::Start).await;
    let seen = rest(&mut early).await;
    assert_eq!(seen.len(), 103);
    assert_eq!(
        seen[1],
        StreamItem::Event(StreamEvent {
            id: id(2, 1),
            event: name,
            data: Bytes::from_static(b"{}").into()
        })
    );
    assert_eq!(rest(&mut late).await, seen);
    assert_eq!(rest(&mut very_late).await, seen);
}

/// Each run has its own numbering, and its viewers see only its events.
pub async fn runs_are_isolated(factory: &dyn StreamBridgeFactory) {
    let one = Scene::open(factory).await;
    let other = Scene {
        bridge: one.bridge.clone(),
        run: run_id("run-2"),
    };
    one.publish(1, 2).await;
    other.publish(1, 3).await;
    one.end().await;
    let mut view = one.view(ResumeFrom::Start).await;
    assert_eq!(rest(&mut view).await.len(), 3);
    let mut view = other.view(ResumeFrom::Start).await;
    assert_eq!(ids(&mut view, 3).await, [id(1, 1), id(2, 1), id(3, 1)]);
    assert_silent(&mut view);
}

/// The first event of the next attempt has the next sequence number.
pub async fn higher_attempt_continues_numbering(factory: &dyn StreamBridgeFactory) {
    let scene = Scene::open(factory).await;
    scene.publish(1, 2).await;
    assert_eq!(scene.publish(3, 2).await, [id(3, 3), id(4, 3)]);
    let mut view = scene.view(ResumeFrom::Start).await;
    assert_eq!(
        ids(&mut view, 4).await,
        [id(1, 1), id(2, 1), id(3, 3), id(4, 3)]
    );
}

/// A superseded attempt can neither publish nor end, and has no effect.
pub async fn lower_attempt_is_fenced(factory: &dyn StreamBridgeFactory) {
    let scene = Scene::open(factory).await;
    scene.publish(1, 1).await;
    scene.publish(2, 1).await;
    let fenced = BridgeError::Fenced {
        run_id: scene.run.clone(),
        attempt: 1,
        current: 2,
    };
    let published = scene
        .bridge
        .publish(
            &scene.key(1),
            EventName::Borrowed("values"),
            Bytes::from_static(b"1").into(),
        )
        .await;
    assert_eq!(published, Err(fenced.clone()));
    assert_eq!(scene.bridge.publish_end(&scene.key(1)).await, Err(fenced));
    assert_eq!(scene.publish(2, 1).await, [id(3, 2)]);
    let mut view = scene.view(ResumeFrom::Start).await;
    assert_eq!(ids(&mut view, 3).await, [id(1, 1), id(2, 2), id(3, 2)]);
    assert_silent(&mut view);
}

/// A viewer that disconnects does not affect the other viewers.
pub async fn leaving_viewer_does_not_affect_others(factory: &dyn StreamBridgeFactory) {
    let scene = Scene::open(factory).await;
    scene.publish(1, 1).await;
    let mut stays = scene.view(ResumeFrom::Start).await;
    for _ in 0..20 {
        let mut leaving = scene.view(ResumeFrom::Start).await;
        next_event(&mut leaving).await;
        drop(leaving);
        scene.publish(1, 1).await;
    }
    scene.end().await;
    assert_eq!(rest(&mut stays).await.len(), 22);
}

/// Each change wakes waiting viewers, without the help of a heartbeat.
pub async fn waiting_viewer_is_woken_by_every_change(factory: &dyn StreamBridgeFactory) {
    let scene = Scene::open(factory).await;
    scene.publish(1, 1).await;
    let mut view = scene.view(ResumeFrom::Tail).await;
    for seq in 2..=4 {
        let (event, _) = tokio::join!(biased; next_event(&mut view), scene.publish(1, 1));
        assert_eq!(event.id, id(seq, 1));
    }
    let (item, ()) = tokio::join!(biased; next(&mut view), scene.end());
    assert_eq!(item, Some(END_SENTINEL));

    let scene = Scene {
        bridge: scene.bridge,
        run: run_id("cancelled"),
    };
    scene.publish(1, 1).await;
    let mut view = scene.view(ResumeFrom::Tail).await;
    let (item, ()) = tokio::join!(biased; next(&mut view), scene.bridge.cancel(&scene.run));
    assert_eq!(item, Some(CANCELLED_SENTINEL));
}

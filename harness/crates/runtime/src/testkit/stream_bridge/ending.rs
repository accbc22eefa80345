//! Contract of ends: of a stream, of its retention, and of the bridge.

use super::*;
use crate::stream_bridge::{
    BridgeError, CANCELLED_SENTINEL, END_SENTINEL, ResumeResult, TerminalKind,
};
use deerflow_core::tasks::{TaskKind, Tasks};

async fn assert_ended(scene: &Scene, attempt: u32) {
    let ended = BridgeError::Ended(scene.run.clone());
    let published = scene
        .bridge
        .publish(
            &scene.key(attempt),
            EventName::Borrowed("values"),
            Bytes::from_static(b"1").into(),
        )
        .await;
    assert_eq!(published, Err(ended.clone()));
    assert_eq!(
        scene.bridge.publish_end(&scene.key(attempt)).await,
        Err(ended.clone())
    );
    let with_error = scene
        .bridge
        .publish_terminal(
            &scene.key(attempt),
            TerminalKind::Error,
            Some(Bytes::from_static(b"{}")),
        )
        .await;
    assert_eq!(with_error, Err(ended));
}

/// A viewer receives one end, after all events, as its last item.
pub async fn end_is_delivered_once_and_last(factory: &dyn StreamBridgeFactory) {
    let scene = Scene::open(factory).await;
    scene.publish(1, 2).await;
    let mut view = scene.view(ResumeFrom::Start).await;
    scene
        .bridge
        .publish_end(&scene.key(1))
        .await
        .expect("ended");
    assert_eq!(ids(&mut view, 2).await, [id(1, 1), id(2, 1)]);
    assert_eq!(rest(&mut view).await, [END_SENTINEL]);
    assert_eq!(next(&mut view).await, None);
}

/// Waiting viewers, later viewers, and viewers that have seen all events get the kind.
pub async fn every_end_kind_reaches_live_and_late_viewers(factory: &dyn StreamBridgeFactory) {
    for kind in [TerminalKind::End, TerminalKind::Error, TerminalKind::Cancel] {
        let scene = Scene::open(factory).await;
        scene.publish(1, 1).await;
        let mut live = scene.view(ResumeFrom::Tail).await;
        assert_silent(&mut live);
        scene
            .bridge
            .publish_terminal(&scene.key(1), kind, None)
            .await
            .expect("ended");
        assert_eq!(rest(&mut live).await, [StreamItem::End(kind)]);
        let mut late = scene.view(ResumeFrom::Start).await;
        assert_eq!(late.resume, ResumeResult::Ended(kind));
        assert_eq!(ids(&mut late, 1).await, [id(1, 1)]);
        assert_eq!(rest(&mut late).await, [StreamItem::End(kind)]);
        let mut caught_up = scene.view(ResumeFrom::After(id(1, 1))).await;
        assert_eq!(caught_up.resume, ResumeResult::Ended(kind));
        assert_eq!(rest(&mut caught_up).await, [StreamItem::End(kind)]);
    }
}

/// Data passed with the end becomes a numbered `error` event.
pub async fn error_event_precedes_end(factory: &dyn StreamBridgeFactory) {
    let scene = Scene::open(factory).await;
    scene.publish(1, 1).await;
    let data = Bytes::from_static(b"{\"error\":\"ValueError\"}");
    scene
        .bridge
        .publish_terminal(&scene.key(1), TerminalKind::Error, Some(data.clone()))
        .await
        .expect("ended");
    let mut view = scene.view(ResumeFrom::After(id(1, 1))).await;
    let error = StreamEvent {
        id: id(2, 1),
        event: EventName::Borrowed("error"),
        data: data.into(),
    };
    assert_eq!(
        rest(&mut view).await,
        [
            StreamItem::Event(error),
            StreamItem::End(TerminalKind::Error)
        ]
    );
}

/// The publish is rejected for this attempt and a later one, with or without earlier events.
pub async fn nothing_is_published_after_the_end(factory: &dyn StreamBridgeFactory) {
    for before in [0, 2] {
        let scene = Scene::open(factory).await;
        scene.publish(1, before).await;
        scene
            .bridge
            .publish_end(&scene.key(1))
            .await
            .expect("ended");
        assert_ended(&scene, 1).await;
        assert_ended(&scene, 2).await;
        let mut view = scene.view(ResumeFrom::Start).await;
        assert_eq!(rest(&mut view).await.len(), before + 1);
    }
}

/// An open stream ends as cancelled; a second cancel has no effect.
pub async fn cancelled_stream_stays_ended(factory: &dyn StreamBridgeFactory) {
    let scene = Scene::open(factory).await;
    scene.publish(1, 1).await;
    let mut view = scene.view(ResumeFrom::Start).await;
    scene.bridge.cancel(&scene.run).await;
    scene.bridge.cancel(&scene.run).await;
    assert_eq!(ids(&mut view, 1).await, [id(1, 1)]);
    assert_eq!(rest(&mut view).await, [CANCELLED_SENTINEL]);
    assert_ended(&scene, 1).await;
}

/// A run is cancelled while it is queued: its viewers receive an end, and it can no longer start.
pub async fn a_run_that_never_published_can_be_cancelled(factory: &dyn StreamBridgeFactory) {
    let scene = Scene::open(factory).await;
    scene.bridge.cancel(&scene.run).await;
    let mut view = scene.view(ResumeFrom::Start).await;
    assert_eq!(view.resume, ResumeResult::Ended(TerminalKind::Cancel));
    assert_eq!(rest(&mut view).await, [CANCELLED_SENTINEL]);
    assert_ended(&scene, 1).await;
}

/// The kind of the end never changes.
pub async fn cancelling_an_ended_stream_changes_nothing(factory: &dyn StreamBridgeFactory) {
    let scene = Scene::open(factory).await;
    scene.publish(1, 1).await;
    scene.end().await;
    scene.bridge.cancel(&scene.run).await;
    let mut view = scene.view(ResumeFrom::After(id(1, 1))).await;
    assert_eq!(rest(&mut view).await, [END_SENTINEL]);
}

/// All events are available before the delay and none after it; an active viewer continues. A
/// second call has no effect.
pub async fn cleanup_waits_for_delay_and_spares_active_viewers(factory: &dyn StreamBridgeFactory) {
    let scene = Scene::open(factory).await;
    scene.publish(1, 200).await;
    let mut active_view = scene.view(ResumeFrom::Start).await;
    next_event(&mut active_view).await;
    scene.end().await;
    let unit = factory.unit();
    let delay = 2 * unit;
    scene.bridge.cleanup(&scene.run, delay).await;
    scene.bridge.cleanup(&scene.run, delay).await;
    assert_eq!(
        scene.view(ResumeFrom::Start).await.resume,
        ResumeResult::Ended(TerminalKind::End)
    );
    tokio::time::sleep(delay + unit / 10).await;
    let mut late = scene.view(ResumeFrom::Start).await;
    assert_eq!(late.resume, ResumeResult::Unknown);
    assert_eq!(rest(&mut late).await, []);
    assert_eq!(rest(&mut active_view).await.len(), 200);
    scene.bridge.cleanup(&scene.run, Duration::ZERO).await;
    scene
        .bridge
        .cleanup(&run_id("never-seen"), Duration::MAX)
        .await;
}

/// A closed bridge does not end runs: viewers are aborted and reconnect to another process.
pub async fn close_aborts_viewers_and_rejects_calls(factory: &dyn StreamBridgeFactory) {
    let scene = Scene::open(factory).await;
    scene.publish(1, 1).await;
    let mut waiting = scene.view(ResumeFrom::Tail).await;
    // In its own task, so that only the bridge can wake it.
    let waiting = Tasks::new().spawn(TaskKind::Finish, "viewer", async move {
        rest(&mut waiting).await
    });
    tokio::task::yield_now().await;
    scene.bridge.close().await;
    assert_eq!(
        waiting.await.expect("joined"),
        Ok(vec![StreamItem::Aborted])
    );
    scene.bridge.close().await;
    let published = scene
        .bridge
        .publish(
            &scene.key(1),
            EventName::Borrowed("values"),
            Bytes::from_static(b"1").into(),
        )
        .await;
    assert_eq!(published, Err(BridgeError::Closed));
    assert_eq!(
        scene.bridge.publish_end(&scene.key(1)).await,
        Err(BridgeError::Closed)
    );
    assert_eq!(
        scene
            .bridge
            .subscribe(&scene.run, ResumeFrom::Start, NO_HEARTBEAT)
            .await
            .map(|view| view.resume),
        Err(BridgeError::Closed)
    );
    assert_eq!(scene.bridge.start().await, Err(BridgeError::Closed));
    scene.bridge.cancel(&scene.run).await;
    scene.bridge.mark_awaiting_input(&scene.run).await;
    scene.bridge.cleanup(&scene.run, Duration::ZERO).await;
}

//! Tests of bursts: order and grouping of events, and those that are not delayed.

use futures_util::FutureExt;
use futures_util::stream::BoxStream;

use super::*;

const STEP: Duration = Duration::from_micros(100);

struct Scene {
    bridge: InMemoryStreamBridge,
    key: StreamKey,
    items: BoxStream<'static, StreamItem>,
    /// Sequence numbers that the viewer got.
    seen: Vec<u64>,
}

impl Scene {
    async fn open() -> Self {
        let bridge = InMemoryStreamBridge::new(InMemoryOptions::default()).expect("valid options");
        let run_id = RunId::parse("r").expect("a valid id");
        let key = StreamKey { run_id, attempt: 1 };
        publish(&bridge, &key, 1).await;
        let (from, beat) = (ResumeFrom::Start, Duration::from_secs(60));
        let view = bridge.subscribe(&key.run_id, from, beat).await;
        let items = view.expect("an open bridge").items;
        Self {
            bridge,
            key,
            items,
            seen: Vec::new(),
        }
    }

    /// A scene whose viewer pauses within a burst.
    async fn paused() -> Self {
        let mut scene = Self::open().await;
        while scene.read() > 0 {
            tokio::time::advance(STEP).await;
            publish(&scene.bridge, &scene.key, 1).await;
            assert!(scene.seen.len() < 20, "no pause");
        }
        scene
    }

    /// Takes the events that the viewer returns at once, and returns their number.
    fn read(&mut self) -> usize {
        let before = self.seen.len();
        while let Some(Some(StreamItem::Event(event))) = self.items.next().now_or_never() {
            self.seen.push(event.id.seq);
        }
        self.seen.len() - before
    }
}

async fn publish(bridge: &InMemoryStreamBridge, key: &StreamKey, bytes: usize) {
    let data = Bytes::from(vec![b'1'; bytes]);
    let published = bridge.publish(key, "values".into(), data.into()).await;
    published.expect("an open stream takes events");
}

#[tokio::test(start_paused = true)]
async fn events_of_a_burst_are_taken_together_in_order() {
    let mut scene = Scene::open().await;
    let mut reads = 0;
    for _ in 1..1_000 {
        reads += usize::from(scene.read() > 0);
        publish(&scene.bridge, &scene.key, 1).await;
        tokio::time::advance(STEP).await;
    }
    assert!(reads < 100, "{reads}");
    scene.bridge.publish_end(&scene.key).await.expect("an end");
    scene.read();
    assert!(scene.seen.iter().copied().eq(1..=1_000));
}

#[tokio::test(start_paused = true)]
async fn events_that_come_singly_are_not_delayed() {
    let mut scene = Scene::open().await;
    for _ in 0..50 {
        assert_eq!(scene.read(), 1);
        tokio::time::advance(10 * STEP).await;
        publish(&scene.bridge, &scene.key, 1).await;
    }
}

#[tokio::test(start_paused = true)]
async fn first_event_after_a_burst_is_not_delayed() {
    let mut scene = Scene::paused().await;
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(scene.read(), 1);
    publish(&scene.bridge, &scene.key, 1).await;
    assert_eq!(scene.read(), 1);
}

#[tokio::test(start_paused = true)]
async fn pausing_viewer_is_woken_by_the_end() {
    let mut scene = Scene::paused().await;
    let before = Instant::now();
    let rest = scene.items.by_ref().collect::<Vec<_>>();
    let (rest, ended) = tokio::join!(rest, scene.bridge.publish_end(&scene.key));
    ended.expect("an end");
    assert!(matches!(
        &rest[..],
        [StreamItem::Event(_), StreamItem::End(TerminalKind::End)]
    ));
    assert_eq!(before.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn pausing_viewer_gets_a_full_batch_at_once() {
    let mut scene = Scene::paused().await;
    publish(&scene.bridge, &scene.key, 64 * 1024).await;
    assert_eq!(scene.read(), 2);
}

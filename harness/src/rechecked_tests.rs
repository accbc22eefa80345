//! Tests of the interval between checks, of stamps, and of concurrent uses.

use std::convert::Infallible;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Notify;
use tokio::time::advance;

use super::*;

/// Slot with a source that counts its readings.
#[derive(Default)]
struct Rig {
    slot: Arc<Rechecked<u64, u64>>,
    stamp: AtomicU64,
    readings: Arc<AtomicU64>,
}

impl Rig {
    /// Returns the number of the reading that made the value.
    async fn get(&self, tasks: Option<&Tasks>) -> u64 {
        let readings = self.readings.clone();
        let read = |_previous| async move {
            let number = readings.fetch_add(1, Ordering::Relaxed) + 1;
            Ok::<_, Infallible>(Reading::Complete(number))
        };
        let stamp = || self.stamp.load(Ordering::Relaxed);
        let Ok(number) = self.slot.get(stamp, tasks, read).await;
        number
    }
}

#[tokio::test(start_paused = true)]
async fn value_is_read_again_after_the_interval() {
    let rig = Rig::default();
    assert_eq!(rig.get(None).await, 1);
    advance(INTERVAL - Duration::from_millis(1)).await;
    assert_eq!(rig.get(None).await, 1);
    advance(Duration::from_millis(1)).await;
    assert_eq!(rig.get(None).await, 2);
}

#[tokio::test(start_paused = true)]
async fn changed_stamp_reads_at_once() {
    let rig = Rig::default();
    assert_eq!(rig.get(None).await, 1);
    rig.stamp.store(7, Ordering::Relaxed);
    assert_eq!(rig.get(None).await, 2);
    assert_eq!(rig.get(None).await, 2);
}

#[tokio::test(start_paused = true)]
async fn used_value_is_checked_in_the_background() {
    let (rig, tasks) = (Rig::default(), Tasks::new());
    assert_eq!(rig.get(Some(&tasks)).await, 1);
    advance(AHEAD).await;
    assert_eq!(rig.get(Some(&tasks)).await, 1, "the use does not wait");
    tasks.shut_down().await;
    assert_eq!(rig.readings.load(Ordering::Relaxed), 2);
    advance(AHEAD).await;
    assert_eq!(
        rig.get(Some(&tasks)).await,
        2,
        "the check began a new interval"
    );
}

#[tokio::test]
async fn concurrent_first_uses_read_once() {
    let (rig, started, finish) = (
        Rig::default(),
        Arc::new(Notify::new()),
        Arc::new(Notify::new()),
    );
    let first = rig.slot.get(
        || 0,
        None,
        |_previous| {
            let (started, finish) = (started.clone(), finish.clone());
            async move {
                started.notify_one();
                finish.notified().await;
                Ok::<_, Infallible>(Reading::Complete(40))
            }
        },
    );
    let second = async {
        started.notified().await;
        let both = futures_util::future::join(rig.get(None), async { finish.notify_one() });
        both.await.0
    };
    assert_eq!(
        futures_util::future::join(first, second).await,
        (Ok(40), 40)
    );
}

#[tokio::test]
async fn errors_and_substitutes_are_not_stored() {
    let rig = Rig::default();
    let failed = rig
        .slot
        .get(|| 0, None, |_| async { Err::<Reading<u64>, _>("gone") });
    assert_eq!(failed.await, Err("gone"));
    let partial = rig.slot.get(
        || 0,
        None,
        |_| async { Ok::<_, Infallible>(Reading::Substitute(9)) },
    );
    assert_eq!(partial.await, Ok(9));
    assert!(rig.slot.is_empty());
    assert_eq!(rig.get(None).await, 1);
}

#[tokio::test(start_paused = true)]
async fn failed_check_removes_the_value() {
    let rig = Rig::default();
    rig.get(None).await;
    advance(INTERVAL).await;
    let failed = rig.slot.get(
        || 0,
        None,
        |previous| async move { Err::<Reading<u64>, _>(previous) },
    );
    assert_eq!(failed.await, Err(Some(1)));
    assert!(rig.slot.is_empty());
}

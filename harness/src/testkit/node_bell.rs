//! What the bell between processes promises.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::BoxStream;

use super::run;
use crate::runtime::runs::{NodeBell, Ring};

/// One test per promise. What is opened are the bells of two processes over one store.
#[macro_export]
macro_rules! node_bell_suite {
    ($attrs:tt $open:expr) => {
        $crate::promises! { $attrs $open, [$crate::testkit::node_bell]
            a_ring_is_heard_by_every_process
            rings_say_what_they_are_for
            who_listens_late_misses_what_was_rung_before
        }
    };
}

/// The two bells.
pub type Bells = [Arc<dyn NodeBell>; 2];

/// The longest wait for a ring that should come.
const PATIENCE: Duration = Duration::from_secs(20);

/// Rings until `heard` hears it: who begins to listen may need a moment.
async fn connect(bell: &dyn NodeBell, heard: &mut BoxStream<'static, Ring>) {
    let mark = Ring::Ended(run("connected"));
    let wait = async {
        loop {
            bell.ring(mark.clone());
            let next = tokio::time::timeout(Duration::from_millis(100), heard.next()).await;
            if next.is_ok_and(|ring| ring.as_ref() == Some(&mark)) {
                return;
            }
        }
    };
    tokio::time::timeout(PATIENCE, wait)
        .await
        .expect("the bell is heard at last");
}

/// The next ring that is not about the beginning.
async fn next(heard: &mut BoxStream<'static, Ring>) -> Ring {
    let wait = async {
        loop {
            match heard.next().await.expect("the bell is there") {
                Ring::Missed => {}
                Ring::Ended(id) if id == run("connected") => {}
                ring => return ring,
            }
        }
    };
    tokio::time::timeout(PATIENCE, wait)
        .await
        .expect("a ring should have come")
}

/// Its own included.
pub async fn a_ring_is_heard_by_every_process(open: impl AsyncFn() -> Bells) {
    let bells = open().await;
    let mut heard = [bells[0].listen(), bells[1].listen()];
    for (bell, heard) in bells.iter().zip(&mut heard) {
        connect(&**bell, heard).await;
    }
    bells[0].ring(Ring::Cancelled(run("r1")));
    for heard in &mut heard {
        assert_eq!(next(heard).await, Ring::Cancelled(run("r1")));
    }
}

/// Each kind, in order.
pub async fn rings_say_what_they_are_for(open: impl AsyncFn() -> Bells) {
    let bells = open().await;
    let mut heard = bells[1].listen();
    connect(&*bells[0], &mut heard).await;
    let rings = [
        Ring::Waiting,
        Ring::Cancelled(run("r-1")),
        Ring::Ended(run("r_2")),
    ];
    for ring in &rings {
        bells[0].ring(ring.clone());
        assert_eq!(next(&mut heard).await, *ring);
    }
}

/// A bell keeps nothing.
pub async fn who_listens_late_misses_what_was_rung_before(open: impl AsyncFn() -> Bells) {
    let bells = open().await;
    let mut early = bells[0].listen();
    connect(&*bells[0], &mut early).await;
    bells[0].ring(Ring::Cancelled(run("old")));
    assert_eq!(next(&mut early).await, Ring::Cancelled(run("old")));
    let mut late = bells[1].listen();
    connect(&*bells[0], &mut late).await;
    bells[0].ring(Ring::Waiting);
    assert_eq!(next(&mut late).await, Ring::Waiting);
}

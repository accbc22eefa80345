//! Contract of the notifier between nodes.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::BoxStream;

use super::{run, thread};
use crate::runs::{NodeNotifier, WakeSignal};

/// Generates one test per guarantee. The opened notifiers belong to two processes over one store.
#[macro_export]
macro_rules! node_notifier_suite {
    ($attrs:tt $open:expr) => {
        $crate::promises! { $attrs $open, [$crate::testkit::node_notifier]
            signal_reaches_every_process
            signals_carry_their_kind
            late_subscriber_misses_earlier_signals
        }
    };
}

/// The two notifiers.
pub type Notifiers = [Arc<dyn NodeNotifier>; 2];

/// Maximum wait for a signal that should arrive.
const SIGNAL_TIMEOUT: Duration = Duration::from_secs(20);

/// Sends signals until `received` gets one, because a new subscription may take some time to become
/// active.
async fn connect(notifier: &dyn NodeNotifier, received: &mut BoxStream<'static, WakeSignal>) {
    let mark = WakeSignal::Ended(run("connected"));
    let wait = async {
        loop {
            notifier.ring(mark.clone());
            let next = tokio::time::timeout(Duration::from_millis(100), received.next()).await;
            if next.is_ok_and(|signal| signal.as_ref() == Some(&mark)) {
                return;
            }
        }
    };
    tokio::time::timeout(SIGNAL_TIMEOUT, wait)
        .await
        .expect("the subscription is connected");
}

/// Returns the next signal, without those of [`connect`].
async fn next(received: &mut BoxStream<'static, WakeSignal>) -> WakeSignal {
    let wait = async {
        loop {
            match received.next().await.expect("the notifier is open") {
                WakeSignal::Missed => {}
                WakeSignal::Ended(id) if id == run("connected") => {}
                signal => return signal,
            }
        }
    };
    tokio::time::timeout(SIGNAL_TIMEOUT, wait)
        .await
        .expect("a signal should have arrived")
}

/// The sending process receives its own signals too.
pub async fn signal_reaches_every_process(open: impl AsyncFn() -> Notifiers) {
    let notifiers = open().await;
    let mut received = [notifiers[0].listen(), notifiers[1].listen()];
    for (notifier, received) in notifiers.iter().zip(&mut received) {
        connect(&**notifier, received).await;
    }
    notifiers[0].ring(WakeSignal::Cancelled(run("r1")));
    for received in &mut received {
        assert_eq!(next(received).await, WakeSignal::Cancelled(run("r1")));
    }
}

/// Each kind of signal arrives as it was sent, in order.
pub async fn signals_carry_their_kind(open: impl AsyncFn() -> Notifiers) {
    let notifiers = open().await;
    let mut received = notifiers[1].listen();
    connect(&*notifiers[0], &mut received).await;
    let signals = [
        WakeSignal::Waiting,
        WakeSignal::Cancelled(run("r-1")),
        WakeSignal::Ended(run("r_2")),
        WakeSignal::Started(thread("t-3")),
    ];
    for signal in &signals {
        notifiers[0].ring(signal.clone());
        assert_eq!(next(&mut received).await, *signal);
    }
}

/// A notifier stores no signals.
pub async fn late_subscriber_misses_earlier_signals(open: impl AsyncFn() -> Notifiers) {
    let notifiers = open().await;
    let mut early = notifiers[0].listen();
    connect(&*notifiers[0], &mut early).await;
    notifiers[0].ring(WakeSignal::Cancelled(run("old")));
    assert_eq!(next(&mut early).await, WakeSignal::Cancelled(run("old")));
    let mut late = notifiers[1].listen();
    connect(&*notifiers[0], &mut late).await;
    notifiers[0].ring(WakeSignal::Waiting);
    assert_eq!(next(&mut late).await, WakeSignal::Waiting);
}

//! The notifier between nodes meets its contract, and survives a restart of its server.

use std::sync::Arc;
use std::time::{Duration, Instant};

use deerflow_bridges::redis::{RedisNodeNotifier, RedisOptions};
use deerflow_core::tasks::Tasks;
use deerflow_runtime::runs::{NodeNotifier, WakeSignal};
use futures_util::StreamExt;

use crate::rig::{Server, WAIT_TIMEOUT, fresh_prefix, run, shared_url};

fn notifier(url: &str, key_prefix: &str) -> Arc<dyn NodeNotifier> {
    let options = RedisOptions {
        key_prefix: key_prefix.to_owned(),
        ..RedisOptions::at(url)
    };
    Arc::new(RedisNodeNotifier::new(&options, Tasks::new()).expect("an address"))
}

async fn notifiers() -> [Arc<dyn NodeNotifier>; 2] {
    let prefix = fresh_prefix();
    [
        notifier(&shared_url(), &prefix),
        notifier(&shared_url(), &prefix),
    ]
}

deerflow_runtime::node_notifier_suite!(
    [
        #[tokio::test]
        #[ignore = "needs DEERFLOW_TEST_REDIS_URL; make test-external runs it"]
    ]
    notifiers
);

#[tokio::test]
#[ignore = "needs redis-server; make test-external runs it"]
async fn reconnected_notifier_reports_missed_signals() {
    let mut server = Server::start(false).await;
    let (here, there) = (notifier(&server.url(), ""), notifier(&server.url(), ""));
    let mut signals = there.listen();
    assert_eq!(signals.next().await, Some(WakeSignal::Missed));
    server.kill();
    let began = Instant::now();
    here.ring(WakeSignal::Cancelled(run("lost")));
    assert!(
        began.elapsed() < Duration::from_millis(50),
        "publishing a signal does not block"
    );
    server.restart().await;
    let back = tokio::time::timeout(WAIT_TIMEOUT, signals.next())
        .await
        .expect("signals arrive again");
    assert_eq!(back, Some(WakeSignal::Missed));
    // The publisher may still believe that the server is down; then this signal is lost like the
    // one before.
    let until_received = async {
        loop {
            here.ring(WakeSignal::Cancelled(run("r1")));
            if let Ok(signal) =
                tokio::time::timeout(Duration::from_millis(200), signals.next()).await
            {
                return signal;
            }
        }
    };
    let signal = tokio::time::timeout(WAIT_TIMEOUT, until_received)
        .await
        .expect("a signal");
    assert_eq!(signal, Some(WakeSignal::Cancelled(run("r1"))));
}

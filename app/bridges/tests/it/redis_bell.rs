//! The bell between nodes keeps the contract, and survives its server.

use std::sync::Arc;
use std::time::{Duration, Instant};

use deerflow_bridges::redis::{RedisNodeBell, RedisOptions};
use futures_util::StreamExt;
use harness::runtime::runs::{NodeBell, Ring};
use harness::runtime::tasks::Tasks;

use crate::rig::{PATIENCE, Server, fresh_prefix, run, shared_url};

fn bell(url: &str, key_prefix: &str) -> Arc<dyn NodeBell> {
    let options = RedisOptions {
        key_prefix: key_prefix.to_owned(),
        ..RedisOptions::at(url)
    };
    Arc::new(RedisNodeBell::new(&options, Tasks::new()).expect("an address"))
}

async fn bells() -> [Arc<dyn NodeBell>; 2] {
    let prefix = fresh_prefix();
    [bell(&shared_url(), &prefix), bell(&shared_url(), &prefix)]
}

harness::node_bell_suite!(
    [
        #[tokio::test]
        #[ignore = "needs DEERFLOW_TEST_REDIS_URL; make test-external runs it"]
    ]
    bells
);

#[tokio::test]
#[ignore = "needs redis-server; make test-external runs it"]
async fn a_bell_that_was_dead_says_that_rings_may_have_been_missed_and_is_heard_again() {
    let mut server = Server::start(false).await;
    let (here, there) = (bell(&server.url(), ""), bell(&server.url(), ""));
    let mut heard = there.listen();
    assert_eq!(heard.next().await, Some(Ring::Missed));
    server.kill();
    let began = Instant::now();
    here.ring(Ring::Cancelled(run("lost")));
    assert!(
        began.elapsed() < Duration::from_millis(50),
        "who rings does not wait"
    );
    server.restart().await;
    let back = tokio::time::timeout(PATIENCE, heard.next())
        .await
        .expect("heard again");
    assert_eq!(back, Some(Ring::Missed));
    // Who rings may yet take the server for dead, and that ring is lost as the one before.
    let until_heard = async {
        loop {
            here.ring(Ring::Cancelled(run("r1")));
            if let Ok(ring) = tokio::time::timeout(Duration::from_millis(200), heard.next()).await {
                return ring;
            }
        }
    };
    let ring = tokio::time::timeout(PATIENCE, until_heard)
        .await
        .expect("a ring");
    assert_eq!(ring, Some(Ring::Cancelled(run("r1"))));
}

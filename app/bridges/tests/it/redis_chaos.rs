//! Random failures of the server, in an order that a seed decides.

use std::sync::atomic::Ordering;
use std::time::Duration;

use deerflow_core::ids::RunId;
use deerflow_runtime::stream_bridge::{END_SENTINEL, EventId, ResumeFrom, StreamItem};
use futures_util::StreamExt;
use tokio::time::{sleep, timeout};

use crate::rig::{Proxy, Server, WAIT_TIMEOUT, end, fresh_prefix, node, publish, run, view};

const EVENTS: u64 = 1_500;

/// Small random number generator with a seed.
struct SeededRng(u64);

impl SeededRng {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

/// Follows a run to its end, and reconnects when disconnected, as a client does.
async fn follow(url: &str, prefix: &str, run: &RunId, seed: u64) -> Result<(), String> {
    let bridge = node(url, prefix).await;
    let mut rng = SeededRng(seed);
    let mut seen = 0;
    loop {
        let from = if seen == 0 {
            ResumeFrom::Start
        } else {
            ResumeFrom::After(EventId {
                seq: seen,
                attempt: 1,
            })
        };
        let Ok(mut view) = deerflow_runtime::stream_bridge::StreamBridge::subscribe(
            &*bridge,
            run,
            from,
            Duration::ZERO,
        )
        .await
        else {
            sleep(Duration::from_millis(50)).await;
            continue;
        };
        let mut remaining = 20 + rng.below(400);
        while remaining > 0 {
            remaining -= 1;
            match timeout(WAIT_TIMEOUT, view.items.next())
                .await
                .map_err(|_| format!("no event after {seen}"))?
            {
                Some(StreamItem::Event(event))
                    if event.id.seq == seen + 1
                        && event.data.clone().into_bytes() == (seen + 1).to_string() =>
                {
                    seen += 1;
                }
                Some(END_SENTINEL) if seen == EVENTS => return Ok(()),
                None | Some(StreamItem::Aborted) => break,
                other => return Err(format!("after {seen} came {other:?}")),
            }
        }
        sleep(Duration::from_millis(20)).await;
    }
}

async fn run_survives_failures(seed: u64) {
    let mut server = Server::start(false).await;
    let proxy = Proxy::before(server.port).await;
    let (prefix, run) = (fresh_prefix(), run("run-1"));
    let publisher = node(&proxy.url(), &prefix).await;
    publish(&publisher, &run, 1, 1..=1).await;
    drop(view(&publisher, &run, ResumeFrom::Start).await);
    let producer = async {
        let mut rng = SeededRng(seed);
        let mut next = 2;
        while next <= EVENTS {
            let count = (1 + rng.below(40)).min(EVENTS + 1 - next);
            publish(&publisher, &run, 1, next..=next + count - 1).await;
            next += count;
            match rng.below(20) {
                0 => _ = server.send_command(&["FLUSHALL"]).await,
                1 => {
                    _ = server
                        .send_command(&["DEL", &format!("{prefix}r:{{run-1}}:s")])
                        .await
                }
                2 => _ = server.send_command(&["SCRIPT", "FLUSH"]).await,
                3 => {
                    _ = server
                        .send_command(&["CLIENT", "KILL", "TYPE", "normal"])
                        .await
                }
                4 => {
                    _ = server
                        .send_command(&["CLIENT", "KILL", "TYPE", "pubsub"])
                        .await
                }
                5 => server.restart().await,
                6..10 => proxy.drop_replies.store(true, Ordering::Release),
                _ => sleep(Duration::from_millis(rng.below(15))).await,
            }
        }
        end(&publisher, &run, 1).await;
    };
    let url = format!("redis://127.0.0.1:{}", proxy.address.port());
    let followers = futures_util::future::join_all(
        (1..=4).map(|nth| follow(&url, &prefix, &run, seed * 31 + nth)),
    );
    let ((), followed) = tokio::join!(producer, followers);
    for followed in followed {
        assert_eq!(followed, Ok(()), "seed {seed}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs redis-server; make test-external runs it"]
async fn viewers_see_each_event_once_despite_server_failures() {
    for seed in 1..=5 {
        timeout(Duration::from_secs(90), run_survives_failures(seed))
            .await
            .unwrap_or_else(|_| panic!("seed {seed} did not end"));
    }
}

//! The server dies, refuses requests, is slow, or its replies are lost.

use std::ops::RangeInclusive;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use deerflow_core::ids::RunId;
use deerflow_runtime::stream_bridge::{
    BridgeError, END_SENTINEL, EventId, EventName, ResumeFrom, StreamBridge, StreamKey,
};
use futures_util::FutureExt;
use tokio::time::sleep;

use crate::rig::{
    Proxy, Server, end, expect, fresh_prefix, node, node_with, publish, rest, run, until, view,
};
use deerflow_bridges::redis::{RedisOptions, RedisStreamBridge};

/// Calls [`publish`] as the first attempt of a run that has published before: it does not wait.
fn publish_at_once(bridge: &RedisStreamBridge, run_id: &RunId, numbers: RangeInclusive<u64>) {
    let key = StreamKey {
        run_id: run_id.clone(),
        attempt: 1,
    };
    for number in numbers {
        let published = bridge
            .publish(
                &key,
                EventName::Borrowed("values"),
                Bytes::from(number.to_string()).into(),
            )
            .now_or_never();
        assert_eq!(
            published,
            Some(Ok(EventId {
                seq: number,
                attempt: 1
            })),
            "a publisher waits for the server"
        );
    }
}

async fn run_survives_server_kill(persists: bool) {
    let mut server = Server::start(persists).await;
    let prefix = fresh_prefix();
    let (publisher, other) = (
        node(&server.url(), &prefix).await,
        node(&server.url(), &prefix).await,
    );
    let runs: Vec<_> = (0..10).map(|n| run(&format!("run-{n}"))).collect();
    let mut views = Vec::new();
    for run in &runs {
        publish(&publisher, run, 1, 1..=50).await;
        views.push((
            view(&publisher, run, ResumeFrom::Start).await,
            view(&other, run, ResumeFrom::Start).await,
        ));
    }
    for (local, remote) in &mut views {
        expect(local, 1..=50).await;
        expect(remote, 1..=30).await;
    }
    server.kill();
    for run in &runs {
        publish_at_once(&publisher, run, 51..=100);
    }
    for (local, _) in &mut views {
        expect(local, 51..=100).await;
    }
    let mut late = view(
        &publisher,
        &runs[0],
        ResumeFrom::After(EventId {
            seq: 70,
            attempt: 1,
        }),
    )
    .await;
    expect(&mut late, 71..=100).await;
    server.restart().await;
    for run in &runs {
        publish(&publisher, run, 1, 101..=120).await;
    }
    for ((local, remote), run) in views.iter_mut().zip(&runs) {
        expect(local, 101..=120).await;
        expect(remote, 31..=120).await;
        end(&publisher, run, 1).await;
        assert_eq!(
            (rest(local).await, rest(remote).await),
            (vec![END_SENTINEL], vec![END_SENTINEL])
        );
        let mut again = view(&other, run, ResumeFrom::Start).await;
        expect(&mut again, 1..=120).await;
        assert_eq!(rest(&mut again).await, [END_SENTINEL]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs redis-server; make test-external runs it"]
async fn streams_continue_without_gap_after_kill_with_data() {
    run_survives_server_kill(true).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs redis-server; make test-external runs it"]
async fn streams_continue_without_gap_after_kill_without_data() {
    run_survives_server_kill(false).await;
}

#[tokio::test]
#[ignore = "needs redis-server; make test-external runs it"]
async fn run_within_outage_is_stored_afterwards() {
    let mut server = Server::start(false).await;
    let prefix = fresh_prefix();
    let (publisher, other) = (
        node(&server.url(), &prefix).await,
        node(&server.url(), &prefix).await,
    );
    let run = run("run-1");
    server.kill();
    publish(&publisher, &run, 1, 1..=30).await;
    let mut local = view(&publisher, &run, ResumeFrom::Start).await;
    expect(&mut local, 1..=30).await;
    end(&publisher, &run, 1).await;
    assert_eq!(rest(&mut local).await, [END_SENTINEL]);
    server.restart().await;
    until("the event has arrived", async || {
        let mut remote = view(&other, &run, ResumeFrom::Start).await;
        rest(&mut remote).await.len() == 31
    })
    .await;
}

#[tokio::test]
#[ignore = "needs redis-server; make test-external runs it"]
async fn takeover_in_outage_is_numbered_after_recovery() {
    let mut server = Server::start(true).await;
    let prefix = fresh_prefix();
    let (old, new) = (
        node(&server.url(), &prefix).await,
        node(&server.url(), &prefix).await,
    );
    let run = run("run-1");
    publish(&old, &run, 1, 1..=5).await;
    old.close().await;
    server.kill();
    // The stream's position is unknown: these numbers are provisional.
    publish(&new, &run, 2, 1..=1).await;
    server.restart().await;
    until("the event has arrived", async || {
        let mut view = view(
            &new,
            &run,
            ResumeFrom::After(EventId { seq: 5, attempt: 1 }),
        )
        .await;
        view.resume == deerflow_runtime::stream_bridge::ResumeResult::From(6) && {
            let id = match crate::rig::next(&mut view).await {
                Some(deerflow_runtime::stream_bridge::StreamItem::Event(event)) => Some(event.id),
                _ => None,
            };
            id == Some(EventId { seq: 6, attempt: 2 })
        }
    })
    .await;
}

#[tokio::test]
#[ignore = "needs redis-server; make test-external runs it"]
async fn lost_replies_neither_duplicate_nor_lose_events() {
    let server = Server::start(false).await;
    let proxy = Proxy::before(server.port).await;
    let prefix = fresh_prefix();
    let (publisher, other) = (
        node(&proxy.url(), &prefix).await,
        node(&server.url(), &prefix).await,
    );
    let run = run("run-1");
    publish(&publisher, &run, 1, 1..=1).await;
    let mut remote = view(&other, &run, ResumeFrom::Start).await;
    for cut in 0..100 {
        proxy.drop_replies.store(true, Ordering::Release);
        publish(&publisher, &run, 1, 2 + cut * 20..=1 + (cut + 1) * 20).await;
        expect(&mut remote, 1 + cut * 20..=(cut + 1) * 20).await;
    }
    assert!(
        proxy.dropped_replies.load(Ordering::Acquire) > 50,
        "replies were lost"
    );
    proxy.drop_replies.store(false, Ordering::Release);
    end(&publisher, &run, 1).await;
    expect(&mut remote, 2_001..=2_001).await;
    assert_eq!(rest(&mut remote).await, [END_SENTINEL]);
    let mut again = view(&publisher, &run, ResumeFrom::Start).await;
    expect(&mut again, 1..=2_001).await;
}

#[tokio::test]
#[ignore = "needs redis-server; make test-external runs it"]
async fn full_or_demoted_server_is_a_temporary_outage() {
    let server = Server::start(false).await;
    let node = node(&server.url(), &fresh_prefix()).await;
    let run = run("run-1");
    publish(&node, &run, 1, 1..=5).await;
    let mut view = view(&node, &run, ResumeFrom::Start).await;
    server
        .send_command(&["CONFIG", "SET", "maxmemory", "1"])
        .await;
    publish(&node, &run, 1, 6..=10).await;
    expect(&mut view, 1..=10).await;
    server
        .send_command(&["CONFIG", "SET", "maxmemory", "0"])
        .await;
    server.send_command(&["REPLICAOF", "127.0.0.1", "1"]).await;
    publish(&node, &run, 1, 11..=15).await;
    expect(&mut view, 11..=15).await;
    server.send_command(&["REPLICAOF", "NO", "ONE"]).await;
    publish(&node, &run, 1, 16..=20).await;
    end(&node, &run, 1).await;
    expect(&mut view, 16..=20).await;
    assert_eq!(rest(&mut view).await, [END_SENTINEL]);
}

#[tokio::test]
#[ignore = "needs redis-server; make test-external runs it"]
async fn unsent_events_are_bounded_and_dropped_ones_are_a_gap() {
    let mut server = Server::start(false).await;
    let prefix = fresh_prefix();
    let publisher = node_with(RedisOptions {
        key_prefix: prefix.clone(),
        max_owned_bytes: 64 * 1024,
        ..RedisOptions::at(server.url())
    })
    .await;
    let other = node(&server.url(), &prefix).await;
    let run = run("run-1");
    publish(&publisher, &run, 1, 1..=1).await;
    let mut local = view(&publisher, &run, ResumeFrom::Start).await;
    expect(&mut local, 1..=1).await;
    server.kill();
    publish(&publisher, &run, 1, 2..=2_000).await;
    assert!(matches!(
        rest(&mut local).await[..],
        [deerflow_runtime::stream_bridge::StreamItem::Gap(_)]
    ));
    server.restart().await;
    end(&publisher, &run, 1).await;
    until("the event has arrived", async || {
        let after = ResumeFrom::After(EventId {
            seq: 1_999,
            attempt: 1,
        });
        let mut remote = view(&other, &run, after).await;
        rest(&mut remote).await.len() == 2
    })
    .await;
}

#[tokio::test]
#[ignore = "needs redis-server; make test-external runs it"]
async fn evicting_or_denying_server_is_rejected_without_password() {
    let server = Server::start(false).await;
    server
        .send_command(&["CONFIG", "SET", "maxmemory-policy", "allkeys-lru"])
        .await;
    let strict = RedisOptions {
        refuse_eviction: true,
        ..RedisOptions::at(server.url())
    };
    let refused = RedisStreamBridge::new(strict)
        .expect("an address")
        .start()
        .await;
    assert!(
        matches!(refused, Err(BridgeError::Transport(why)) if why.contains("maxmemory-policy allkeys-lru"))
    );
    assert_eq!(
        RedisStreamBridge::new(RedisOptions::at(server.url()))
            .expect("an address")
            .start()
            .await,
        Ok(())
    );
    server
        .send_command(&["ACL", "SETUSER", "ann", "on", ">right", "~*", "&*", "+@all"])
        .await;
    let url = |password: &str| server.url().replace("://", &format!("://ann:{password}@"));
    let stranger = RedisStreamBridge::new(RedisOptions::at(url("hunter2"))).expect("an address");
    let refused = stranger.start().await.expect_err("the password is wrong");
    assert!(
        !format!("{refused} {refused:?} {stranger:?}").contains("hunter2"),
        "{refused}"
    );
    assert_eq!(
        RedisStreamBridge::new(RedisOptions::at(url("right")))
            .expect("an address")
            .start()
            .await,
        Ok(())
    );
    let encrypted = RedisOptions::at(url("right").replace("redis://", "rediss://"));
    let refused = RedisStreamBridge::probe(encrypted)
        .await
        .expect_err("this server speaks no TLS");
    assert!(!refused.contains("right"), "{refused}");
    let nonsense =
        RedisStreamBridge::new(RedisOptions::at("http://:hunter2@x")).expect_err("not an address");
    assert!(!format!("{nonsense} {nonsense:?}").contains("hunter2"));
}

#[tokio::test]
#[ignore = "needs redis-server; make test-external runs it"]
async fn stalled_server_does_not_delay_publisher() {
    let server = Server::start(false).await;
    let node = node(&server.url(), &fresh_prefix()).await;
    let run = run("run-1");
    publish(&node, &run, 1, 1..=1).await;
    server
        .send_command(&["CLIENT", "PAUSE", "3000", "ALL"])
        .await;
    for number in 2..=200 {
        publish_at_once(&node, &run, number..=number);
        // Events arrive like tokens of a model, while the sender retries.
        sleep(Duration::from_millis(1)).await;
    }
    let mut view = view(&node, &run, ResumeFrom::Start).await;
    expect(&mut view, 1..=200).await;
}

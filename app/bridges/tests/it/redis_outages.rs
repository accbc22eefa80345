//! The server dies, refuses, is slow, or its answers are lost.

use std::ops::RangeInclusive;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use harness::ids::RunId;
use harness::runtime::stream_bridge::{
    BridgeError, END_SENTINEL, EventId, EventName, ResumeFrom, StreamBridge, StreamKey,
};
use tokio::time::sleep;

use crate::rig::{
    Proxy, Server, end, expect, fresh_prefix, node, node_with, publish, rest, run, until, view,
};
use deerflow_bridges::redis::{RedisOptions, RedisStreamBridge};

/// As [`publish`], by the first attempt of a run that has published before: it waits for nothing.
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
            "a producer waits for the server"
        );
    }
}

async fn lives_through_a_kill(persists: bool) {
    let mut server = Server::start(persists).await;
    let prefix = fresh_prefix();
    let (owner, other) = (
        node(&server.url(), &prefix).await,
        node(&server.url(), &prefix).await,
    );
    let runs: Vec<_> = (0..10).map(|n| run(&format!("run-{n}"))).collect();
    let mut views = Vec::new();
    for run in &runs {
        publish(&owner, run, 1, 1..=50).await;
        views.push((
            view(&owner, run, ResumeFrom::Start).await,
            view(&other, run, ResumeFrom::Start).await,
        ));
    }
    for (near, far) in &mut views {
        expect(near, 1..=50).await;
        expect(far, 1..=30).await;
    }
    server.kill();
    for run in &runs {
        publish_at_once(&owner, run, 51..=100);
    }
    for (near, _) in &mut views {
        expect(near, 51..=100).await;
    }
    let mut late = view(
        &owner,
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
        publish(&owner, run, 1, 101..=120).await;
    }
    for ((near, far), run) in views.iter_mut().zip(&runs) {
        expect(near, 101..=120).await;
        expect(far, 31..=120).await;
        end(&owner, run, 1).await;
        assert_eq!(
            (rest(near).await, rest(far).await),
            (vec![END_SENTINEL], vec![END_SENTINEL])
        );
        let mut again = view(&other, run, ResumeFrom::Start).await;
        expect(&mut again, 1..=120).await;
        assert_eq!(rest(&mut again).await, [END_SENTINEL]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs redis-server; make test-external runs it"]
async fn streams_go_on_without_a_gap_after_a_kill_that_kept_the_data() {
    lives_through_a_kill(true).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs redis-server; make test-external runs it"]
async fn streams_go_on_without_a_gap_after_a_kill_that_lost_all_data() {
    lives_through_a_kill(false).await;
}

#[tokio::test]
#[ignore = "needs redis-server; make test-external runs it"]
async fn a_run_that_begins_and_ends_during_an_outage_is_there_afterwards() {
    let mut server = Server::start(false).await;
    let prefix = fresh_prefix();
    let (owner, other) = (
        node(&server.url(), &prefix).await,
        node(&server.url(), &prefix).await,
    );
    let run = run("run-1");
    server.kill();
    publish(&owner, &run, 1, 1..=30).await;
    let mut near = view(&owner, &run, ResumeFrom::Start).await;
    expect(&mut near, 1..=30).await;
    end(&owner, &run, 1).await;
    assert_eq!(rest(&mut near).await, [END_SENTINEL]);
    server.restart().await;
    until("it has arrived", async || {
        let mut far = view(&other, &run, ResumeFrom::Start).await;
        rest(&mut far).await.len() == 31
    })
    .await;
}

#[tokio::test]
#[ignore = "needs redis-server; make test-external runs it"]
async fn a_takeover_during_an_outage_is_numbered_once_the_server_is_back() {
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
    // Where the stream stands is not known: these are numbered for the time being.
    publish(&new, &run, 2, 1..=1).await;
    server.restart().await;
    until("it has arrived", async || {
        let mut view = view(
            &new,
            &run,
            ResumeFrom::After(EventId { seq: 5, attempt: 1 }),
        )
        .await;
        view.resume == harness::runtime::stream_bridge::ResumeResult::From(6) && {
            let id = match crate::rig::next(&mut view).await {
                Some(harness::runtime::stream_bridge::StreamItem::Event(event)) => Some(event.id),
                _ => None,
            };
            id == Some(EventId { seq: 6, attempt: 2 })
        }
    })
    .await;
}

#[tokio::test]
#[ignore = "needs redis-server; make test-external runs it"]
async fn answers_that_are_lost_neither_double_nor_lose_an_event() {
    let server = Server::start(false).await;
    let proxy = Proxy::before(server.port).await;
    let prefix = fresh_prefix();
    let (owner, other) = (
        node(&proxy.url(), &prefix).await,
        node(&server.url(), &prefix).await,
    );
    let run = run("run-1");
    publish(&owner, &run, 1, 1..=1).await;
    let mut far = view(&other, &run, ResumeFrom::Start).await;
    for cut in 0..100 {
        proxy.loses_answers.store(true, Ordering::Release);
        publish(&owner, &run, 1, 2 + cut * 20..=1 + (cut + 1) * 20).await;
        expect(&mut far, 1 + cut * 20..=(cut + 1) * 20).await;
    }
    assert!(proxy.lost.load(Ordering::Acquire) > 50, "answers were lost");
    proxy.loses_answers.store(false, Ordering::Release);
    end(&owner, &run, 1).await;
    expect(&mut far, 2_001..=2_001).await;
    assert_eq!(rest(&mut far).await, [END_SENTINEL]);
    let mut again = view(&owner, &run, ResumeFrom::Start).await;
    expect(&mut again, 1..=2_001).await;
}

#[tokio::test]
#[ignore = "needs redis-server; make test-external runs it"]
async fn a_server_without_memory_or_with_another_role_is_an_outage_that_passes() {
    let server = Server::start(false).await;
    let node = node(&server.url(), &fresh_prefix()).await;
    let run = run("run-1");
    publish(&node, &run, 1, 1..=5).await;
    let mut view = view(&node, &run, ResumeFrom::Start).await;
    server.tell(&["CONFIG", "SET", "maxmemory", "1"]).await;
    publish(&node, &run, 1, 6..=10).await;
    expect(&mut view, 1..=10).await;
    server.tell(&["CONFIG", "SET", "maxmemory", "0"]).await;
    server.tell(&["REPLICAOF", "127.0.0.1", "1"]).await;
    publish(&node, &run, 1, 11..=15).await;
    expect(&mut view, 11..=15).await;
    server.tell(&["REPLICAOF", "NO", "ONE"]).await;
    publish(&node, &run, 1, 16..=20).await;
    end(&node, &run, 1).await;
    expect(&mut view, 16..=20).await;
    assert_eq!(rest(&mut view).await, [END_SENTINEL]);
}

#[tokio::test]
#[ignore = "needs redis-server; make test-external runs it"]
async fn what_waits_for_the_server_is_bounded_and_what_was_dropped_is_a_gap() {
    let mut server = Server::start(false).await;
    let prefix = fresh_prefix();
    let owner = node_with(RedisOptions {
        key_prefix: prefix.clone(),
        max_owned_bytes: 64 * 1024,
        ..RedisOptions::at(server.url())
    })
    .await;
    let other = node(&server.url(), &prefix).await;
    let run = run("run-1");
    publish(&owner, &run, 1, 1..=1).await;
    let mut near = view(&owner, &run, ResumeFrom::Start).await;
    expect(&mut near, 1..=1).await;
    server.kill();
    publish(&owner, &run, 1, 2..=2_000).await;
    assert!(matches!(
        rest(&mut near).await[..],
        [harness::runtime::stream_bridge::StreamItem::Gap(_)]
    ));
    server.restart().await;
    end(&owner, &run, 1).await;
    until("it has arrived", async || {
        let after = ResumeFrom::After(EventId {
            seq: 1_999,
            attempt: 1,
        });
        let mut far = view(&other, &run, after).await;
        rest(&mut far).await.len() == 2
    })
    .await;
}

#[tokio::test]
#[ignore = "needs redis-server; make test-external runs it"]
async fn a_server_that_may_evict_or_does_not_know_the_user_is_refused_and_no_password_is_told() {
    let server = Server::start(false).await;
    server
        .tell(&["CONFIG", "SET", "maxmemory-policy", "allkeys-lru"])
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
        .tell(&["ACL", "SETUSER", "ann", "on", ">right", "~*", "&*", "+@all"])
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
        RedisStreamBridge::new(RedisOptions::at("http://:hunter2@x")).expect_err("no address");
    assert!(!format!("{nonsense} {nonsense:?}").contains("hunter2"));
}

#[tokio::test]
#[ignore = "needs redis-server; make test-external runs it"]
async fn a_stalled_server_costs_a_producer_no_time_after_its_first_event() {
    let server = Server::start(false).await;
    let node = node(&server.url(), &fresh_prefix()).await;
    let run = run("run-1");
    publish(&node, &run, 1, 1..=1).await;
    server.tell(&["CLIENT", "PAUSE", "3000", "ALL"]).await;
    for number in 2..=200 {
        publish_at_once(&node, &run, number..=number);
        // As a model's words come: meanwhile the sender tries.
        sleep(Duration::from_millis(1)).await;
    }
    let mut view = view(&node, &run, ResumeFrom::Start).await;
    expect(&mut view, 1..=200).await;
}

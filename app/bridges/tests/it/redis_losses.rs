//! The server answers, but has lost data.

use std::sync::atomic::Ordering;
use std::time::Duration;

use deerflow_bridges::redis::RedisOptions;
use deerflow_runtime::stream_bridge::{
    END_SENTINEL, EventId, Gap, ResumeFrom, StreamBridge, StreamItem,
};

use crate::rig::{Proxy, Server, end, expect, node, node_with, publish, rest, run, until, view};

async fn recovers_from(words: &[&str]) {
    let server = Server::start(false).await;
    let (publisher, other) = (node(&server.url(), "").await, node(&server.url(), "").await);
    let run = run("run-1");
    publish(&publisher, &run, 1, 1..=40).await;
    let (mut local, mut remote) = (
        view(&publisher, &run, ResumeFrom::Start).await,
        view(&other, &run, ResumeFrom::Start).await,
    );
    expect(&mut local, 1..=40).await;
    expect(&mut remote, 1..=20).await;
    server.send_command(words).await;
    // No new event is published: the publisher detects the loss by polling.
    expect(&mut remote, 21..=40).await;
    publish(&publisher, &run, 1, 41..=50).await;
    end(&publisher, &run, 1).await;
    for view in [&mut local, &mut remote] {
        expect(view, 41..=50).await;
        assert_eq!(rest(view).await, [END_SENTINEL]);
    }
    let mut again = view(&other, &run, ResumeFrom::Start).await;
    expect(&mut again, 1..=50).await;
}

#[tokio::test]
#[ignore = "needs redis-server; make test-external runs it"]
async fn publisher_rebuilds_streams_after_flushall() {
    recovers_from(&["FLUSHALL"]).await;
}

#[tokio::test]
#[ignore = "needs redis-server; make test-external runs it"]
async fn deleted_stream_is_rebuilt() {
    recovers_from(&["DEL", "r:{run-1}:s"]).await;
}

#[tokio::test]
#[ignore = "needs redis-server; make test-external runs it"]
async fn deleted_stream_head_is_rebuilt() {
    recovers_from(&["DEL", "r:{run-1}:m"]).await;
}

#[tokio::test]
#[ignore = "needs redis-server; make test-external runs it"]
async fn lost_evicted_start_is_a_gap_and_later_events_continue() {
    let server = Server::start(false).await;
    let publisher = node_with(RedisOptions {
        max_owned_bytes: 8 * 1024,
        ..RedisOptions::at(server.url())
    })
    .await;
    let other = node(&server.url(), "").await;
    let run = run("run-1");
    publish(&publisher, &run, 1, 1..=1).await;
    let mut local = view(&publisher, &run, ResumeFrom::Start).await;
    expect(&mut local, 1..=1).await;
    for number in 2..=500 {
        publish(&publisher, &run, 1, number..=number).await;
        expect(&mut local, number..=number).await;
    }
    server.send_command(&["FLUSHALL"]).await;
    publish(&publisher, &run, 1, 501..=501).await;
    end(&publisher, &run, 1).await;
    let mut tail = view(
        &other,
        &run,
        ResumeFrom::After(EventId {
            seq: 500,
            attempt: 1,
        }),
    )
    .await;
    expect(&mut tail, 501..=501).await;
    let mut start = view(&other, &run, ResumeFrom::Start).await;
    let [StreamItem::Gap(gap)] = &rest(&mut start).await[..] else {
        panic!("the first events are gone")
    };
    assert_eq!(
        (
            gap.requested_event_id.as_deref(),
            gap.latest_available_event_id.as_str()
        ),
        (None, "501-1")
    );
}

#[tokio::test]
#[ignore = "needs redis-server; make test-external runs it"]
async fn lost_stream_without_publisher_is_a_gap() {
    let server = Server::start(false).await;
    let publisher = node(&server.url(), "").await;
    let options = RedisOptions {
        loss_timeout: Duration::from_secs(2),
        ..RedisOptions::at(server.url())
    };
    let other = node_with(options).await;
    let run = run("run-1");
    publish(&publisher, &run, 1, 1..=200).await;
    let mut caught_up = view(&other, &run, ResumeFrom::Start).await;
    expect(&mut caught_up, 1..=200).await;
    let mut behind = view(&other, &run, ResumeFrom::Start).await;
    expect(&mut behind, 1..=10).await;
    publisher.close().await;
    server.send_command(&["FLUSHALL"]).await;
    let last = rest(&mut caught_up).await;
    let gap = |seq| matches!(&last[..], [StreamItem::Gap(Gap { requested_event_id: Some(id), .. })] if *id == format!("{seq}-1"));
    assert!(gap(200), "{last:?}");
    assert!(matches!(
        rest(&mut behind).await.last(),
        Some(StreamItem::Gap(_))
    ));
}

#[tokio::test]
#[ignore = "needs redis-server; make test-external runs it"]
async fn viewer_of_lost_events_replays_later_attempt_from_its_start() {
    let server = Server::start(false).await;
    let (publisher, other) = (node(&server.url(), "").await, node(&server.url(), "").await);
    let run = run("run-1");
    publish(&publisher, &run, 1, 1..=20).await;
    let mut remote = view(&other, &run, ResumeFrom::Start).await;
    expect(&mut remote, 1..=20).await;
    publisher.close().await;
    server.send_command(&["FLUSHALL"]).await;
    let new = node(&server.url(), "").await;
    publish(&new, &run, 2, 1..=30).await;
    assert_eq!(rest(&mut remote).await, [StreamItem::Aborted]);
    let mut back = view(
        &other,
        &run,
        ResumeFrom::After(EventId {
            seq: 20,
            attempt: 1,
        }),
    )
    .await;
    expect(&mut back, 1..=30).await;
    end(&new, &run, 2).await;
    assert_eq!(rest(&mut back).await, [END_SENTINEL]);
}

#[tokio::test]
#[ignore = "needs redis-server; make test-external runs it"]
async fn promoted_replica_gets_missing_events() {
    let (mut primary, replica) = (Server::start(false).await, Server::start(false).await);
    replica
        .send_command(&["REPLICAOF", "127.0.0.1", &primary.port.to_string()])
        .await;
    let proxy = Proxy::before(primary.port).await;
    let (publisher, other) = (node(&proxy.url(), "").await, node(&proxy.url(), "").await);
    let run = run("run-1");
    publish(&publisher, &run, 1, 1..=20).await;
    until("the replica has it", async || {
        replica.send_command(&["XLEN", "r:{run-1}:s"]).await == redis::Value::Int(20)
    })
    .await;
    replica.send_command(&["REPLICAOF", "NO", "ONE"]).await;
    publish(&publisher, &run, 1, 21..=40).await;
    let (mut local, mut remote) = (
        view(&publisher, &run, ResumeFrom::Start).await,
        view(&other, &run, ResumeFrom::Start).await,
    );
    expect(&mut local, 1..=40).await;
    expect(&mut remote, 1..=40).await;
    proxy.target_port.store(replica.port, Ordering::Release);
    primary.kill();
    publish(&publisher, &run, 1, 41..=50).await;
    end(&publisher, &run, 1).await;
    for view in [&mut local, &mut remote] {
        expect(view, 41..=50).await;
        assert_eq!(rest(view).await, [END_SENTINEL]);
    }
    let third = node(&replica.url(), "").await;
    let mut again = view(&third, &run, ResumeFrom::Start).await;
    expect(&mut again, 1..=50).await;
}

//! The server is unavailable, and a durable log takes the events.

use std::sync::Arc;

use deerflow_bridges::redis::{RedisOptions, RedisStreamBridge};
use deerflow_core::ids::RunId;
use deerflow_runtime::in_memory::InMemoryStores;
use deerflow_runtime::runs::store::RunCreateStore;
use deerflow_runtime::stream_bridge::{END_SENTINEL, EventId, ResumeFrom, StreamBridge, StreamLog};
use deerflow_runtime::testkit;

use crate::rig::{
    Proxy, Server, WAIT_TIMEOUT, end, expect, log_of, node_with_log, publish, rest, run, until,
    view,
};

/// A node that treats refusals of the server as an outage, but not slow answers.
async fn log_node(server: &Server, log: &Arc<InMemoryStores>) -> Arc<RedisStreamBridge> {
    node_with_log(
        RedisOptions {
            slow_after: WAIT_TIMEOUT,
            ..RedisOptions::at(server.url())
        },
        log.clone(),
    )
    .await
}

async fn until_logged(log: &InMemoryStores, run: &RunId, tail: u64) {
    until("the log has it", async || {
        log.outline(run).await.expect("read").tail() == tail
    })
    .await;
}

fn after(seq: u64) -> ResumeFrom {
    ResumeFrom::After(EventId { seq, attempt: 1 })
}

async fn is_followed_elsewhere(persists: bool) {
    let mut server = Server::start(persists).await;
    let run = run("run-1");
    let log = log_of(&run).await;
    let (publisher, other) = (log_node(&server, &log).await, log_node(&server, &log).await);
    publish(&publisher, &run, 1, 1..=20).await;
    let (mut local, mut remote) = (
        view(&publisher, &run, ResumeFrom::Start).await,
        view(&other, &run, ResumeFrom::Start).await,
    );
    expect(&mut local, 1..=20).await;
    expect(&mut remote, 1..=20).await;
    assert!(
        log.outline(&run).await.expect("read").is_empty(),
        "nothing is logged without an outage"
    );
    for from in [21, 61] {
        server.kill();
        publish(&publisher, &run, 1, from..=from + 19).await;
        expect(&mut local, from..=from + 19).await;
        expect(&mut remote, from..=from + 19).await;
        let mut late = view(&other, &run, after(from + 9)).await;
        expect(&mut late, from + 10..=from + 19).await;
        server.restart().await;
        publish(&publisher, &run, 1, from + 20..=from + 39).await;
        for view in [&mut local, &mut remote, &mut late] {
            expect(view, from + 20..=from + 39).await;
        }
    }
    end(&publisher, &run, 1).await;
    for view in [&mut local, &mut remote] {
        assert_eq!(rest(view).await, [END_SENTINEL]);
    }
    let mut again = view(&other, &run, ResumeFrom::Start).await;
    expect(&mut again, 1..=100).await;
    assert_eq!(rest(&mut again).await, [END_SENTINEL]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs redis-server; make test-external runs it"]
async fn outage_with_data_is_followed_in_durable_log() {
    is_followed_elsewhere(true).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs redis-server; make test-external runs it"]
async fn outage_without_data_is_followed_in_durable_log() {
    is_followed_elsewhere(false).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs redis-server; make test-external runs it"]
async fn unread_events_of_lost_server_reach_remote_viewers() {
    let mut server = Server::start(true).await;
    let proxy = Proxy::before(server.port).await;
    let run = run("run-1");
    let log = log_of(&run).await;
    let (publisher, other) = (
        log_node(&server, &log).await,
        node_with_log(RedisOptions::at(proxy.url()), log.clone()).await,
    );
    publish(&publisher, &run, 1, 1..=5).await;
    let mut remote = view(&other, &run, ResumeFrom::Start).await;
    expect(&mut remote, 1..=5).await;
    proxy.close().await;
    publish(&publisher, &run, 1, 6..=9).await;
    let mut local = view(&publisher, &run, ResumeFrom::Start).await;
    expect(&mut local, 1..=9).await;
    server.kill();
    publish(&publisher, &run, 1, 10..=12).await;
    expect(&mut remote, 6..=12).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs redis-server; make test-external runs it"]
async fn run_in_outage_replays_without_publisher_and_server_data() {
    let mut server = Server::start(false).await;
    let run = run("run-1");
    let log = log_of(&run).await;
    let (publisher, other) = (log_node(&server, &log).await, log_node(&server, &log).await);
    server.kill();
    publish(&publisher, &run, 1, 1..=30).await;
    end(&publisher, &run, 1).await;
    let mut remote = view(&other, &run, ResumeFrom::Start).await;
    expect(&mut remote, 1..=30).await;
    assert_eq!(rest(&mut remote).await, [END_SENTINEL]);
    publisher.close().await;
    server.restart().await;
    for (from, first) in [(ResumeFrom::Start, 1), (after(17), 18)] {
        let mut late = view(&other, &run, from).await;
        expect(&mut late, first..=30).await;
        assert_eq!(rest(&mut late).await, [END_SENTINEL]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs redis-server; make test-external runs it"]
async fn takeover_continues_after_durable_log() {
    let mut server = Server::start(false).await;
    let run = run("run-1");
    let log = log_of(&run).await;
    let publisher = log_node(&server, &log).await;
    publish(&publisher, &run, 1, 1..=5).await;
    let mut local = view(&publisher, &run, ResumeFrom::Start).await;
    expect(&mut local, 1..=5).await;
    server.kill();
    publish(&publisher, &run, 1, 6..=40).await;
    until_logged(&log, &run, 40).await;
    publisher.close().await;
    server.restart().await;
    log.take_over(&testkit::node("n2"), testkit::at(1))
        .await
        .expect("read")
        .expect("taken");
    let (new, other) = (log_node(&server, &log).await, log_node(&server, &log).await);
    publish(&new, &run, 2, 41..=45).await;
    for node in [&new, &other] {
        let mut view = view(node, &run, after(5)).await;
        expect(&mut view, 6..=45).await;
    }
    server.kill();
    server.restart().await;
    publish(&new, &run, 2, 46..=46).await;
    let mut view = view(&other, &run, after(5)).await;
    expect(&mut view, 6..=46).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs redis-server; make test-external runs it"]
async fn evicted_events_return_to_server_from_durable_log() {
    let mut server = Server::start(true).await;
    let run = run("run-1");
    let log = log_of(&run).await;
    let small = RedisOptions {
        max_owned_bytes: 64 * 1024,
        ..RedisOptions::at(server.url())
    };
    let (publisher, other) = (
        node_with_log(small, log.clone()).await,
        log_node(&server, &log).await,
    );
    publish(&publisher, &run, 1, 1..=1).await;
    let mut remote = view(&other, &run, ResumeFrom::Start).await;
    expect(&mut remote, 1..=1).await;
    server.kill();
    for first in (2..=1_902).step_by(100) {
        publish(&publisher, &run, 1, first..=first + 99).await;
        until_logged(&log, &run, first + 99).await;
    }
    expect(&mut remote, 2..=2_001).await;
    server.restart().await;
    publish(&publisher, &run, 1, 2_002..=2_002).await;
    until("the server has all of it", async || {
        server.send_command(&["XLEN", "r:{run-1}:s"]).await == redis::Value::Int(2_002)
    })
    .await;
    end(&publisher, &run, 1).await;
    expect(&mut remote, 2_002..=2_002).await;
    assert_eq!(rest(&mut remote).await, [END_SENTINEL]);
    // The server has the whole stream again, so the log is no longer needed.
    log.forget(&run).await.expect("forgotten");
    let mut again = view(&other, &run, ResumeFrom::Start).await;
    expect(&mut again, 1..=2_002).await;
}

//! The server is out of order, and a durable log takes its place.

use std::sync::Arc;

use deerflow_bridges::redis::{RedisOptions, RedisStreamBridge};
use harness::ids::RunId;
use harness::runtime::memory::MemoryStores;
use harness::runtime::runs::store::RunCreateStore;
use harness::runtime::stream_bridge::{END_SENTINEL, EventId, ResumeFrom, StreamBridge, StreamLog};
use harness::testkit;

use crate::rig::{
    PATIENCE, Proxy, Server, end, expect, log_of, node_beside, publish, rest, run, until, view,
};

/// A node that takes a server for out of order when it refuses, and not because it is slow.
async fn beside(server: &Server, log: &Arc<MemoryStores>) -> Arc<RedisStreamBridge> {
    node_beside(
        RedisOptions {
            slow_after: PATIENCE,
            ..RedisOptions::at(server.url())
        },
        log.clone(),
    )
    .await
}

async fn until_logged(log: &MemoryStores, run: &RunId, tail: u64) {
    until("the log has it", async || {
        log.outline(run).await.expect("read").tail() == tail
    })
    .await;
}

fn after(seq: u64) -> ResumeFrom {
    ResumeFrom::After(EventId { seq, attempt: 1 })
}

async fn goes_on_elsewhere(persists: bool) {
    let mut server = Server::start(persists).await;
    let run = run("run-1");
    let log = log_of(&run).await;
    let (owner, other) = (beside(&server, &log).await, beside(&server, &log).await);
    publish(&owner, &run, 1, 1..=20).await;
    let (mut near, mut far) = (
        view(&owner, &run, ResumeFrom::Start).await,
        view(&other, &run, ResumeFrom::Start).await,
    );
    expect(&mut near, 1..=20).await;
    expect(&mut far, 1..=20).await;
    assert!(
        log.outline(&run).await.expect("read").is_empty(),
        "nothing is logged while all is well"
    );
    for from in [21, 61] {
        server.kill();
        publish(&owner, &run, 1, from..=from + 19).await;
        expect(&mut near, from..=from + 19).await;
        expect(&mut far, from..=from + 19).await;
        let mut late = view(&other, &run, after(from + 9)).await;
        expect(&mut late, from + 10..=from + 19).await;
        server.restart().await;
        publish(&owner, &run, 1, from + 20..=from + 39).await;
        for view in [&mut near, &mut far, &mut late] {
            expect(view, from + 20..=from + 39).await;
        }
    }
    end(&owner, &run, 1).await;
    for view in [&mut near, &mut far] {
        assert_eq!(rest(view).await, [END_SENTINEL]);
    }
    let mut again = view(&other, &run, ResumeFrom::Start).await;
    expect(&mut again, 1..=100).await;
    assert_eq!(rest(&mut again).await, [END_SENTINEL]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs redis-server; make test-external runs it"]
async fn during_an_outage_that_keeps_the_data_viewers_on_other_nodes_follow_in_the_log() {
    goes_on_elsewhere(true).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs redis-server; make test-external runs it"]
async fn during_an_outage_that_loses_the_data_viewers_on_other_nodes_follow_in_the_log() {
    goes_on_elsewhere(false).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs redis-server; make test-external runs it"]
async fn what_a_lost_server_had_and_nobody_elsewhere_had_read_yet_reaches_viewers_there() {
    let mut server = Server::start(true).await;
    let proxy = Proxy::before(server.port).await;
    let run = run("run-1");
    let log = log_of(&run).await;
    let (owner, other) = (
        beside(&server, &log).await,
        node_beside(RedisOptions::at(proxy.url()), log.clone()).await,
    );
    publish(&owner, &run, 1, 1..=5).await;
    let mut far = view(&other, &run, ResumeFrom::Start).await;
    expect(&mut far, 1..=5).await;
    proxy.close().await;
    publish(&owner, &run, 1, 6..=9).await;
    let mut near = view(&owner, &run, ResumeFrom::Start).await;
    expect(&mut near, 1..=9).await;
    server.kill();
    publish(&owner, &run, 1, 10..=12).await;
    expect(&mut far, 6..=12).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs redis-server; make test-external runs it"]
async fn a_run_of_an_outage_is_replayed_when_its_owner_and_the_servers_data_are_gone() {
    let mut server = Server::start(false).await;
    let run = run("run-1");
    let log = log_of(&run).await;
    let (owner, other) = (beside(&server, &log).await, beside(&server, &log).await);
    server.kill();
    publish(&owner, &run, 1, 1..=30).await;
    end(&owner, &run, 1).await;
    let mut far = view(&other, &run, ResumeFrom::Start).await;
    expect(&mut far, 1..=30).await;
    assert_eq!(rest(&mut far).await, [END_SENTINEL]);
    owner.close().await;
    server.restart().await;
    for (from, first) in [(ResumeFrom::Start, 1), (after(17), 18)] {
        let mut late = view(&other, &run, from).await;
        expect(&mut late, first..=30).await;
        assert_eq!(rest(&mut late).await, [END_SENTINEL]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs redis-server; make test-external runs it"]
async fn who_takes_a_run_over_goes_on_after_what_the_log_has() {
    let mut server = Server::start(false).await;
    let run = run("run-1");
    let log = log_of(&run).await;
    let owner = beside(&server, &log).await;
    publish(&owner, &run, 1, 1..=5).await;
    let mut near = view(&owner, &run, ResumeFrom::Start).await;
    expect(&mut near, 1..=5).await;
    server.kill();
    publish(&owner, &run, 1, 6..=40).await;
    until_logged(&log, &run, 40).await;
    owner.close().await;
    server.restart().await;
    log.take_over(&testkit::node("n2"), testkit::at(1))
        .await
        .expect("looked")
        .expect("taken");
    let (new, other) = (beside(&server, &log).await, beside(&server, &log).await);
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
async fn what_an_owner_had_to_let_go_comes_back_to_the_server_from_the_log() {
    let mut server = Server::start(true).await;
    let run = run("run-1");
    let log = log_of(&run).await;
    let small = RedisOptions {
        max_owned_bytes: 64 * 1024,
        ..RedisOptions::at(server.url())
    };
    let (owner, other) = (
        node_beside(small, log.clone()).await,
        beside(&server, &log).await,
    );
    publish(&owner, &run, 1, 1..=1).await;
    let mut far = view(&other, &run, ResumeFrom::Start).await;
    expect(&mut far, 1..=1).await;
    server.kill();
    for first in (2..=1_902).step_by(100) {
        publish(&owner, &run, 1, first..=first + 99).await;
        until_logged(&log, &run, first + 99).await;
    }
    expect(&mut far, 2..=2_001).await;
    server.restart().await;
    publish(&owner, &run, 1, 2_002..=2_002).await;
    until("the server has all of it", async || {
        server.tell(&["XLEN", "r:{run-1}:s"]).await == redis::Value::Int(2_002)
    })
    .await;
    end(&owner, &run, 1).await;
    expect(&mut far, 2_002..=2_002).await;
    assert_eq!(rest(&mut far).await, [END_SENTINEL]);
    // The log is not needed any more.
    log.forget(&run).await.expect("forgotten");
    let mut again = view(&other, &run, ResumeFrom::Start).await;
    expect(&mut again, 1..=2_002).await;
}

//! The server answers, but no longer has what it was given.

use std::sync::atomic::Ordering;
use std::time::Duration;

use deerflow_bridges::redis::RedisOptions;
use harness::runtime::stream_bridge::{
    END_SENTINEL, EventId, Gap, ResumeFrom, StreamBridge, StreamItem,
};

use crate::rig::{Proxy, Server, end, expect, node, node_with, publish, rest, run, until, view};

async fn loses(words: &[&str]) {
    let server = Server::start(false).await;
    let (owner, other) = (node(&server.url(), "").await, node(&server.url(), "").await);
    let run = run("run-1");
    publish(&owner, &run, 1, 1..=40).await;
    let (mut near, mut far) = (
        view(&owner, &run, ResumeFrom::Start).await,
        view(&other, &run, ResumeFrom::Start).await,
    );
    expect(&mut near, 1..=40).await;
    expect(&mut far, 1..=20).await;
    server.tell(words).await;
    // Nothing more is published: the owner finds out by itself.
    expect(&mut far, 21..=40).await;
    publish(&owner, &run, 1, 41..=50).await;
    end(&owner, &run, 1).await;
    for view in [&mut near, &mut far] {
        expect(view, 41..=50).await;
        assert_eq!(rest(view).await, [END_SENTINEL]);
    }
    let mut again = view(&other, &run, ResumeFrom::Start).await;
    expect(&mut again, 1..=50).await;
}

#[tokio::test]
#[ignore = "needs redis-server; make test-external runs it"]
async fn after_a_flushall_the_owner_makes_its_streams_anew() {
    loses(&["FLUSHALL"]).await;
}

#[tokio::test]
#[ignore = "needs redis-server; make test-external runs it"]
async fn a_deleted_or_evicted_stream_is_made_anew() {
    loses(&["DEL", "r:{run-1}:s"]).await;
}

#[tokio::test]
#[ignore = "needs redis-server; make test-external runs it"]
async fn a_deleted_outline_is_made_anew() {
    loses(&["DEL", "r:{run-1}:m"]).await;
}

#[tokio::test]
#[ignore = "needs redis-server; make test-external runs it"]
async fn a_lost_beginning_that_the_owner_no_longer_holds_is_a_gap_and_the_rest_goes_on() {
    let server = Server::start(false).await;
    let owner = node_with(RedisOptions {
        max_owned_bytes: 8 * 1024,
        ..RedisOptions::at(server.url())
    })
    .await;
    let other = node(&server.url(), "").await;
    let run = run("run-1");
    publish(&owner, &run, 1, 1..=1).await;
    let mut near = view(&owner, &run, ResumeFrom::Start).await;
    expect(&mut near, 1..=1).await;
    for number in 2..=500 {
        publish(&owner, &run, 1, number..=number).await;
        expect(&mut near, number..=number).await;
    }
    server.tell(&["FLUSHALL"]).await;
    publish(&owner, &run, 1, 501..=501).await;
    end(&owner, &run, 1).await;
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
        panic!("the beginning is gone")
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
async fn a_lost_stream_whose_owner_is_gone_is_a_gap_and_never_silence() {
    let server = Server::start(false).await;
    let owner = node(&server.url(), "").await;
    let patience = RedisOptions {
        loss_patience: Duration::from_secs(2),
        ..RedisOptions::at(server.url())
    };
    let other = node_with(patience).await;
    let run = run("run-1");
    publish(&owner, &run, 1, 1..=200).await;
    let mut caught_up = view(&other, &run, ResumeFrom::Start).await;
    expect(&mut caught_up, 1..=200).await;
    let mut behind = view(&other, &run, ResumeFrom::Start).await;
    expect(&mut behind, 1..=10).await;
    owner.close().await;
    server.tell(&["FLUSHALL"]).await;
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
async fn who_saw_events_that_are_lost_with_their_owner_comes_back_for_the_later_attempt_from_its_beginning()
 {
    let server = Server::start(false).await;
    let (owner, other) = (node(&server.url(), "").await, node(&server.url(), "").await);
    let run = run("run-1");
    publish(&owner, &run, 1, 1..=20).await;
    let mut far = view(&other, &run, ResumeFrom::Start).await;
    expect(&mut far, 1..=20).await;
    owner.close().await;
    server.tell(&["FLUSHALL"]).await;
    let new = node(&server.url(), "").await;
    publish(&new, &run, 2, 1..=30).await;
    assert_eq!(rest(&mut far).await, [StreamItem::Aborted]);
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
async fn a_replica_that_is_promoted_with_a_shorter_tail_gets_what_it_missed() {
    let (mut primary, replica) = (Server::start(false).await, Server::start(false).await);
    replica
        .tell(&["REPLICAOF", "127.0.0.1", &primary.port.to_string()])
        .await;
    let proxy = Proxy::before(primary.port).await;
    let (owner, other) = (node(&proxy.url(), "").await, node(&proxy.url(), "").await);
    let run = run("run-1");
    publish(&owner, &run, 1, 1..=20).await;
    until("the replica has it", async || {
        replica.tell(&["XLEN", "r:{run-1}:s"]).await == redis::Value::Int(20)
    })
    .await;
    replica.tell(&["REPLICAOF", "NO", "ONE"]).await;
    publish(&owner, &run, 1, 21..=40).await;
    let (mut near, mut far) = (
        view(&owner, &run, ResumeFrom::Start).await,
        view(&other, &run, ResumeFrom::Start).await,
    );
    expect(&mut near, 1..=40).await;
    expect(&mut far, 1..=40).await;
    proxy.leads_to.store(replica.port, Ordering::Release);
    primary.kill();
    publish(&owner, &run, 1, 41..=50).await;
    end(&owner, &run, 1).await;
    for view in [&mut near, &mut far] {
        expect(view, 41..=50).await;
        assert_eq!(rest(view).await, [END_SENTINEL]);
    }
    let third = node(&replica.url(), "").await;
    let mut again = view(&third, &run, ResumeFrom::Start).await;
    expect(&mut again, 1..=50).await;
}

//! Two nodes with one server.

use std::time::Duration;

use bytes::Bytes;
use deerflow_bridges::redis::RedisOptions;
use deerflow_runtime::stream_bridge::{
    BridgeError, CANCELLED_SENTINEL, END_SENTINEL, EventId, EventName, ResumeFrom, ResumeResult,
    StreamBridge, StreamItem, StreamKey,
};
use futures_util::future::join_all;

use crate::rig::{
    Server, command, end, expect, fresh_prefix, next, node, node_with, publish, rest, run,
    shared_url, until, view,
};

#[tokio::test]
#[ignore = "needs DEERFLOW_TEST_REDIS_URL; make test-external runs it"]
async fn viewers_on_other_node_see_events_promptly_in_order() {
    let (prefix, run) = (fresh_prefix(), run("run-1"));
    // Polling is effectively off: only signals trigger reads.
    let options = RedisOptions {
        key_prefix: prefix.clone(),
        poll_interval: Duration::from_secs(60 * 60),
        ..RedisOptions::at(shared_url())
    };
    let (one, other) = (node_with(options.clone()).await, node_with(options).await);
    let channel = format!("{prefix}r:bell");
    let two_subscribers = redis::Value::Array(vec![
        redis::Value::BulkString(channel.clone().into_bytes()),
        redis::Value::Int(2),
    ]);
    until("both nodes listen", async || {
        command(&shared_url(), &["PUBSUB", "NUMSUB", &channel]).await == two_subscribers
    })
    .await;
    publish(&one, &run, 1, 1..=1).await;
    let mut early = view(&other, &run, ResumeFrom::Start).await;
    expect(&mut early, 1..=1).await;
    publish(&one, &run, 1, 2..=2).await;
    expect(&mut early, 2..=2).await;
    publish(&one, &run, 1, 3..=2_000).await;
    let (mut late, mut tail) = (
        view(&other, &run, ResumeFrom::Start).await,
        view(&one, &run, ResumeFrom::Tail).await,
    );
    expect(&mut early, 3..=2_000).await;
    end(&one, &run, 1).await;
    expect(&mut late, 1..=2_000).await;
    for view in [&mut early, &mut late, &mut tail] {
        assert_eq!(rest(view).await, [END_SENTINEL]);
    }
    let mut resumed = view(
        &other,
        &run,
        ResumeFrom::After(EventId {
            seq: 1_990,
            attempt: 1,
        }),
    )
    .await;
    assert_eq!(
        resumed.resume,
        ResumeResult::Ended(deerflow_runtime::stream_bridge::TerminalKind::End)
    );
    expect(&mut resumed, 1_991..=2_000).await;
}

#[tokio::test]
#[ignore = "needs DEERFLOW_TEST_REDIS_URL; make test-external runs it"]
async fn takeover_continues_numbering_and_fences_old_publisher() {
    let (prefix, run) = (fresh_prefix(), run("run-1"));
    let (old, new) = (
        node(&shared_url(), &prefix).await,
        node(&shared_url(), &prefix).await,
    );
    publish(&old, &run, 1, 1..=3).await;
    let mut on_new = view(&new, &run, ResumeFrom::Start).await;
    let mut on_old = view(&old, &run, ResumeFrom::Start).await;
    expect(&mut on_new, 1..=3).await;
    expect(&mut on_old, 1..=3).await;
    publish(&new, &run, 2, 4..=5).await;
    expect(&mut on_new, 4..=5).await;
    let fenced = BridgeError::Fenced {
        run_id: run.clone(),
        attempt: 1,
        current: 2,
    };
    let key = StreamKey {
        run_id: run.clone(),
        attempt: 1,
    };
    until("the old publisher is fenced off", async || {
        old.publish(
            &key,
            EventName::Borrowed("values"),
            Bytes::from_static(b"\"lost\"").into(),
        )
        .await
            == Err(fenced.clone())
    })
    .await;
    assert_eq!(old.publish_end(&key).await, Err(fenced.clone()));
    assert_eq!(
        rest(&mut on_old).await,
        [StreamItem::Aborted],
        "viewers of the old publisher reconnect"
    );
    let mut back = view(
        &old,
        &run,
        ResumeFrom::After(EventId { seq: 3, attempt: 1 }),
    )
    .await;
    publish(&new, &run, 2, 6..=6).await;
    expect(&mut back, 4..=6).await;
    end(&new, &run, 2).await;
    assert_eq!(rest(&mut back).await, [END_SENTINEL]);
    assert_eq!(
        rest(&mut on_new).await,
        [expected_event(6, 2), END_SENTINEL],
        "no event of the old publisher"
    );
}

fn expected_event(seq: u64, attempt: u32) -> StreamItem {
    StreamItem::Event(deerflow_runtime::stream_bridge::StreamEvent {
        id: EventId { seq, attempt },
        event: EventName::Borrowed("values"),
        data: Bytes::from(seq.to_string()).into(),
    })
}

#[tokio::test]
#[ignore = "needs DEERFLOW_TEST_REDIS_URL; make test-external runs it"]
async fn remote_cancel_ends_stream_for_publisher() {
    let (prefix, run) = (fresh_prefix(), run("run-1"));
    let (publisher, other) = (
        node(&shared_url(), &prefix).await,
        node(&shared_url(), &prefix).await,
    );
    publish(&publisher, &run, 1, 1..=2).await;
    let mut on_owner = view(&publisher, &run, ResumeFrom::Start).await;
    expect(&mut on_owner, 1..=2).await;
    other.cancel(&run).await;
    assert_eq!(rest(&mut on_owner).await, [CANCELLED_SENTINEL]);
    assert_eq!(
        publisher
            .publish_end(&StreamKey {
                run_id: run.clone(),
                attempt: 1
            })
            .await,
        Err(BridgeError::Ended(run.clone()))
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs redis-server; make test-external runs it"]
async fn five_hundred_viewers_use_at_most_eight_connections() {
    let server = Server::start(false).await;
    let prefix = fresh_prefix();
    let (publisher, other) = (
        node(&server.url(), &prefix).await,
        node(&server.url(), &prefix).await,
    );
    let runs: Vec<_> = (0..50).map(|n| run(&format!("run-{n}"))).collect();
    for run in &runs {
        publish(&publisher, run, 1, 1..=20).await;
    }
    let mut views = Vec::new();
    for run in runs.iter().cycle().take(500) {
        views.push(view(&other, run, ResumeFrom::Start).await);
    }
    let read = join_all(views.iter_mut().map(|view| expect(view, 1..=20)));
    read.await;
    let redis::Value::BulkString(clients) = server.send_command(&["CLIENT", "LIST"]).await else {
        panic!("a list of clients")
    };
    let clients = String::from_utf8(clients).expect("text").lines().count();
    // The connections of two nodes, and the one of this test.
    assert!(clients <= 2 * 8 + 1, "{clients} connections");
    for run in &runs {
        end(&publisher, run, 1).await;
    }
    for view in &mut views {
        assert_eq!(next(view).await, Some(END_SENTINEL));
    }
}

#[tokio::test]
#[ignore = "needs DEERFLOW_TEST_REDIS_URL; make test-external runs it"]
async fn closed_node_releases_stream_to_others() {
    let (prefix, run) = (fresh_prefix(), run("run-1"));
    let (old, new) = (
        node(&shared_url(), &prefix).await,
        node(&shared_url(), &prefix).await,
    );
    publish(&old, &run, 1, 1..=40).await;
    old.close().await;
    let mut view = view(&new, &run, ResumeFrom::Start).await;
    expect(&mut view, 1..=40).await;
    publish(&new, &run, 2, 41..=41).await;
    expect(&mut view, 41..=41).await;
}

#[tokio::test]
#[ignore = "needs DEERFLOW_TEST_REDIS_URL; make test-external runs it"]
async fn node_with_refused_claim_can_follow_run() {
    let (prefix, run) = (fresh_prefix(), run("run-1"));
    let (publisher, other) = (
        node(&shared_url(), &prefix).await,
        node(&shared_url(), &prefix).await,
    );
    publish(&publisher, &run, 2, 1..=500).await;
    let refused = other
        .publish(
            &StreamKey {
                run_id: run.clone(),
                attempt: 1,
            },
            EventName::Borrowed("values"),
            Bytes::new().into(),
        )
        .await;
    assert_eq!(
        refused,
        Err(BridgeError::Fenced {
            run_id: run.clone(),
            attempt: 1,
            current: 2
        })
    );
    let mut view = view(&other, &run, ResumeFrom::Start).await;
    expect(&mut view, 1..=500).await;
    publish(&publisher, &run, 2, 501..=501).await;
    expect(&mut view, 501..=501).await;
}

//! Many concurrent users of one gateway with the embedded database, while another program reads the
//! file.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use deerflow_tests::seeded_random::{SeededRandom, setting};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::follower::start_and_follow;
use crate::rig::{Cluster, Gateways, ScriptedReply, text};

const USERS: u64 = 50;
/// Maximum time for which a reader holds its snapshot.
const SNAPSHOT_DURATION: Duration = Duration::from_secs(60);
/// Maximum size of the write-ahead log without an old snapshot. While a reader holds a snapshot,
/// the log grows with all writes.
const MAX_LOG_BYTES: u64 = 64 * 1024 * 1024;
/// Program that reads the database and holds its snapshot until its input ends.
const READER: &str = "import sqlite3, sys
with sqlite3.connect(f'file:{sys.argv[1]}?mode=ro', uri=True, isolation_level=None) as db:
    db.execute('begin')
    db.execute('select count(*) from runs').fetchone()
    sys.stdin.read()";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "slow, and needs Python; tests/cluster/run.sh runs it"]
async fn concurrent_users_never_see_lock_errors() {
    let cluster = Cluster::with(1, "").await;
    let file = database(&cluster.nodes[0].home().join(".deer-flow"));
    let until = Instant::now() + Duration::from_secs(setting("SECONDS", 20));
    let mut using = JoinSet::new();
    for user in 0..USERS {
        using.spawn(uses(cluster.gateways.clone(), user, until));
    }
    tokio::time::sleep(Duration::from_secs(2)).await;
    let mut reader = Command::new("python3")
        .args(["-c", READER])
        .arg(&file)
        .stdin(Stdio::piped())
        .spawn()
        .expect("python3");
    tokio::time::sleep(((until - Instant::now()) / 3).min(SNAPSHOT_DURATION)).await;
    let log = || {
        std::fs::metadata(file.with_extension("db-wal"))
            .expect("the log")
            .len()
    };
    let beside = log();
    end(&mut reader);
    let requests: u64 = using.join_all().await.into_iter().sum();
    let after = log();
    let (beside_kib, after_kib) = (beside / 1024, after / 1024);
    eprintln!(
        "{USERS} users, {requests} requests, none failed; the log: {beside_kib} KiB with a reader, {after_kib} KiB after it"
    );
    assert!(after < MAX_LOG_BYTES, "{after}");
    let printed = cluster.nodes[0].logs();
    assert!(
        !printed.contains("locked") && !printed.contains("busy"),
        "{printed}"
    );
    assert_eq!(cluster.model.rejections(), 0);
}

fn database(folder: &Path) -> PathBuf {
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "db") {
                return path;
            }
        }
    }
    panic!("no database");
}

fn end(reader: &mut Child) {
    drop(reader.stdin.take());
    assert!(
        reader.wait().expect("ended").success(),
        "the reader could not read"
    );
}

/// Sends messages, reads and deletes until `until`; returns the number of requests.
async fn uses(gateways: Gateways, user: u64, until: Instant) -> u64 {
    let mut random = SeededRandom::of(user);
    let mut requests = 0;
    while Instant::now() < until {
        let thread = gateways.thread(0).await;
        for turn in 0..1 + random.below(3) {
            let reply = ScriptedReply::new(
                &format!("u{user}t{turn}"),
                5 + random.below(20),
                random.millis(5, 40),
            );
            let reply = if random.happens(500) {
                reply.after_a_tool()
            } else {
                reply
            };
            let observed = start_and_follow(gateways.clone(), 0, thread.clone(), reply.clone())
                .await
                .expect("acknowledged");
            observed.is_whole(&reply);
            for (method, path, body) in [
                (
                    Method::POST,
                    "/threads/search".to_owned(),
                    json!({"limit": 20}),
                ),
                (
                    Method::PATCH,
                    format!("/threads/{thread}"),
                    json!({"metadata": {"turn": turn}}),
                ),
                (Method::GET, format!("/threads/{thread}/state"), Value::Null),
                (
                    Method::POST,
                    format!("/threads/{thread}/history"),
                    json!({"limit": 3}),
                ),
                (Method::GET, format!("/threads/{thread}/runs"), Value::Null),
                (
                    Method::PUT,
                    "/store/items".to_owned(),
                    json!({"namespace": [format!("u{user}")], "key": "k", "value": {"turn": turn}}),
                ),
            ] {
                let (status, actual) = gateways
                    .try_ask(0, method, &path, &body)
                    .await
                    .expect("answer");
                assert!(status.is_success(), "{path}: {status} {actual}");
                requests += 1;
            }
            requests += 1;
        }
        if random.happens(300) {
            let (status, actual) = gateways
                .try_ask(0, Method::DELETE, &format!("/threads/{thread}"), &json!({}))
                .await
                .expect("answer");
            assert!(status.is_success(), "{status} {actual}");
        } else {
            assert_eq!(
                text(&gateways.get(0, &format!("/threads/{thread}")).await["status"]),
                "idle"
            );
        }
        requests += 2;
    }
    requests
}

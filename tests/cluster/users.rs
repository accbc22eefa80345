//! Many users at once on one gateway with the embedded database, while another program reads the file.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use deerflow_tests::dice::{Dice, setting};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::follower::tell;
use crate::rig::{Cluster, Story, Web, text};

const USERS: u64 = 50;
/// How long a reader keeps its snapshot at most.
const READS_FOR: Duration = Duration::from_secs(60);
/// What the log may hold when nobody stands on an old snapshot: beside a reader it grows by whatever is written meanwhile.
const LOG_AT_MOST: u64 = 64 * 1024 * 1024;
/// Reads the database, and keeps its snapshot until its input ends.
const READER: &str = "import sqlite3, sys
with sqlite3.connect(f'file:{sys.argv[1]}?mode=ro', uri=True, isolation_level=None) as db:
    db.execute('begin')
    db.execute('select count(*) from runs').fetchone()
    sys.stdin.read()";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes its time, and needs Python; tests/cluster/run.sh runs it"]
async fn many_users_at_once_never_hear_of_a_lock() {
    let cluster = Cluster::with(1, "").await;
    let file = database(&cluster.nodes[0].home().join(".deer-flow"));
    let until = Instant::now() + Duration::from_secs(setting("SECONDS", 20));
    let mut using = JoinSet::new();
    for user in 0..USERS {
        using.spawn(uses(cluster.web.clone(), user, until));
    }
    tokio::time::sleep(Duration::from_secs(2)).await;
    let mut reader = Command::new("python3")
        .args(["-c", READER])
        .arg(&file)
        .stdin(Stdio::piped())
        .spawn()
        .expect("python3");
    tokio::time::sleep(((until - Instant::now()) / 3).min(READS_FOR)).await;
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
        "{USERS} users, {requests} requests, none failed; the log: {beside_kib} KiB beside a reader, {after_kib} KiB after it"
    );
    assert!(after < LOG_AT_MOST, "{after}");
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

/// Talks, looks around and tidies up until it is time; gives the number of requests.
async fn uses(web: Web, user: u64, until: Instant) -> u64 {
    let mut dice = Dice::of(user);
    let mut requests = 0;
    while Instant::now() < until {
        let thread = web.thread(0).await;
        for turn in 0..1 + dice.below(3) {
            let story = Story::new(
                &format!("u{user}t{turn}"),
                5 + dice.below(20),
                dice.millis(5, 40),
            );
            let story = if dice.happens(500) {
                story.after_a_tool()
            } else {
                story
            };
            let seen = tell(web.clone(), 0, thread.clone(), story.clone())
                .await
                .expect("acknowledged");
            seen.is_whole(&story);
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
                let (status, told) = web.try_ask(0, method, &path, &body).await.expect("answer");
                assert!(status.is_success(), "{path}: {status} {told}");
                requests += 1;
            }
            requests += 1;
        }
        if dice.happens(300) {
            let (status, told) = web
                .try_ask(0, Method::DELETE, &format!("/threads/{thread}"), &json!({}))
                .await
                .expect("answer");
            assert!(status.is_success(), "{status} {told}");
        } else {
            assert_eq!(
                text(&web.get(0, &format!("/threads/{thread}")).await["status"]),
                "idle"
            );
        }
        requests += 2;
    }
    requests
}

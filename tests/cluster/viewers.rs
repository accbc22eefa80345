//! Many viewers of one run on two nodes: what they cost the stream server, and the run that they watch.

use std::time::Duration;

use deerflow_tests::dice::setting;
use reqwest::Url;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::rig::{Cluster, Story, Web, body};
use crate::servers::Server;

/// Connections to Redis that a node may have, whatever its viewers (reliability, R7).
const CONNECTIONS: u64 = 8;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs two servers; tests/cluster/run.sh starts them"]
async fn viewers_share_a_few_connections_to_the_stream_server() {
    let cluster = Cluster::of(2).await;
    let web = cluster.web.clone();
    let viewers = setting("VIEWERS", 100);
    let story = Story::new("watched", 300, Duration::from_millis(20));
    let thread = web.thread(0).await;
    let run = web.background(0, &thread, &body(&story.prompt)).await;
    let mut watching = JoinSet::new();
    for place in 0..viewers {
        let node = usize::from(place % 2 == 1);
        watching.spawn(watch(
            web.urls[node].clone(),
            format!("/api/threads/{thread}/runs/{run}/stream"),
        ));
    }
    let mut most = 0;
    while !watching.is_empty() {
        tokio::select! {
            seen = watching.join_next() => assert!(seen.expect("one").expect("no panic").contains("event: end")),
            () = tokio::time::sleep(Duration::from_millis(250)) => most = most.max(connections().await),
        }
    }
    assert_eq!(web.run(0, &thread, &run).await["status"], "success");
    // One is that of who counts.
    assert!(most <= 2 * CONNECTIONS + 1, "{most} connections");
    let (quick, all) = publishes(&web).await;
    println!(
        "{viewers} viewers, at most {most} connections to Redis, {quick} of {all} batches there within 5 ms"
    );
}

/// Reads a stream to its end; the last of it.
async fn watch(url: String, path: String) -> String {
    let url = Url::parse(&url).expect("an address");
    let place = format!(
        "{}:{}",
        url.host_str().expect("a host"),
        url.port().expect("a port")
    );
    let mut stream = TcpStream::connect(&place).await.expect("connected");
    let request = format!("GET {path} HTTP/1.1\r\nhost: {place}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("asked");
    let (mut last, mut buffer) = (Vec::new(), vec![0; 16 * 1024]);
    loop {
        match stream.read(&mut buffer).await.expect("read") {
            0 => return String::from_utf8_lossy(&last).into_owned(),
            count => last.extend_from_slice(&buffer[..count]),
        }
        last.drain(..last.len().saturating_sub(256));
    }
}

/// How many clients Redis has.
async fn connections() -> u64 {
    let mut stream = TcpStream::connect(Server::Redis.address())
        .await
        .expect("redis");
    stream
        .write_all(b"INFO clients\r\nQUIT\r\n")
        .await
        .expect("asked");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("read");
    let line = answer
        .lines()
        .find_map(|line| line.strip_prefix("connected_clients:"))
        .expect("the line");
    line.trim().parse().expect("a number")
}

/// How many batches of events Redis had within 5 ms, and how many there were.
async fn publishes(web: &Web) -> (u64, u64) {
    let answer = web
        .client
        .get(format!("{}/metrics", web.urls[0]))
        .send()
        .await
        .expect("an answer");
    let text = answer.text().await.expect("text");
    let count = |name: &str| {
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix(name))
            .unwrap_or_else(|| panic!("{name} in {text}"));
        line.trim().parse().expect("a number")
    };
    (
        count("deerflow_publish_seconds_bucket{le=\"0.005\"}"),
        count("deerflow_publish_seconds_count"),
    )
}

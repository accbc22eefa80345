//! Many viewers of one run on two nodes: their cost for the stream server and for the run.

use std::time::Duration;

use deerflow_tests::seeded_random::setting;
use reqwest::Url;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::rig::{Cluster, Gateways, ScriptedReply, body};
use crate::servers::Server;

/// Maximum number of a node's connections to Redis, independent of its viewers (reliability, R7).
const CONNECTIONS: u64 = 8;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs two servers; tests/cluster/run.sh starts them"]
async fn viewers_share_few_stream_server_connections() {
    let cluster = Cluster::of(2).await;
    let gateways = cluster.gateways.clone();
    let viewers = setting("VIEWERS", 100);
    let reply = ScriptedReply::new("watched", 300, Duration::from_millis(20));
    let thread = gateways.thread(0).await;
    let run = gateways.background(0, &thread, &body(&reply.prompt)).await;
    let mut watching = JoinSet::new();
    for index in 0..viewers {
        let node = usize::from(index % 2 == 1);
        watching.spawn(watch(
            gateways.urls[node].clone(),
            format!("/api/threads/{thread}/runs/{run}/stream"),
        ));
    }
    let mut max_connections = 0;
    while !watching.is_empty() {
        tokio::select! {
            observed = watching.join_next() => assert!(observed.expect("one").expect("no panic").contains("event: end")),
            () = tokio::time::sleep(Duration::from_millis(250)) => max_connections = max_connections.max(connections().await),
        }
    }
    assert_eq!(gateways.run(0, &thread, &run).await["status"], "success");
    // One connection is that of the counter itself.
    assert!(
        max_connections <= 2 * CONNECTIONS + 1,
        "{max_connections} connections"
    );
    let (quick, all) = publishes(&gateways).await;
    println!(
        "{viewers} viewers, at most {max_connections} connections to Redis, {quick} of {all} batches there within 5 ms"
    );
}

/// Reads a stream to its end and returns the last part of it.
async fn watch(url: String, path: String) -> String {
    let url = Url::parse(&url).expect("an address");
    let index = format!(
        "{}:{}",
        url.host_str().expect("a host"),
        url.port().expect("a port")
    );
    let mut stream = TcpStream::connect(&index).await.expect("connected");
    let request = format!("GET {path} HTTP/1.1\r\nhost: {index}\r\nconnection: close\r\n\r\n");
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

/// Returns the number of Redis clients.
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

/// Returns the number of event batches that Redis received within 5 ms, and of all batches.
async fn publishes(gateways: &Gateways) -> (u64, u64) {
    let answer = gateways
        .client
        .get(format!("{}/metrics", gateways.urls[0]))
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

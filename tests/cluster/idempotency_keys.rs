//! One request sent repeatedly with its idempotency key, to several gateways concurrently, while
//! nodes die or responses are lost.

use std::time::Duration;

use deerflow_tests::fault_proxy::Faults;
use deerflow_tests::seeded_random::{SeededRandom, seeds, setting};
use futures_util::future::join_all;
use futures_util::{StreamExt, stream};
use reqwest::{Method, StatusCode};
use serde_json::Value;

use crate::rig::{Cluster, Gateways, ScriptedReply, body, text};
use crate::servers::{Server, ServerProxies};

/// Maximum number of tries of a client, half a second apart.
const TRIES: usize = 120;

#[tokio::test]
#[ignore = "needs two servers; tests/cluster/run.sh starts them"]
async fn idempotency_key_creates_one_run_despite_node_deaths() {
    let mut cluster = Cluster::of(3).await;
    let gateways = cluster.gateways.clone();
    let mut created = 0;
    for seed in seeds(2) {
        eprintln!("seed {seed}");
        let mut random = SeededRandom::of(seed);
        let keys = stream::iter(0..setting("KEYS", 12))
            .map(|key| one_run(&gateways, format!("s{seed}k{key}")));
        let requests = keys.buffer_unordered(at_once()).count();
        let crashing = async {
            tokio::time::sleep(random.millis(100, 1_500)).await;
            let away = random.millis(0, 2_000);
            cluster.cut(random.below(3), away).await;
        };
        created += tokio::join!(requests, crashing).0;
    }
    eprintln!("{created} keys, one run each");
    assert_eq!(cluster.model.rejections(), 0);
}

#[tokio::test]
#[ignore = "needs two servers; tests/cluster/run.sh starts them"]
async fn idempotency_key_creates_one_run_if_db_responses_are_lost() {
    let (proxies, sections) = ServerProxies::of(2, setting("SEED", 1)).await;
    let cluster = Cluster::each(&sections).await;
    let losing = Faults {
        lost_answers: 20,
        ..Faults::default()
    };
    proxies[0].set(&[Server::Postgres], &losing);
    let keys = stream::iter(0..setting("KEYS", 24))
        .map(|key| one_run(&cluster.gateways, format!("lost{key}")));
    let created = keys.buffer_unordered(at_once()).count().await;
    eprintln!(
        "{created} keys, one run each, {} answers lost",
        proxies[0].postgres.lost()
    );
    assert!(proxies[0].postgres.lost() > 0, "no response was lost");
    assert_eq!(cluster.model.rejections(), 0);
}

#[tokio::test]
#[ignore = "needs two servers; tests/cluster/run.sh starts them"]
async fn viewers_see_each_event_once_if_stream_responses_are_lost() {
    let (proxies, sections) = ServerProxies::of(2, setting("SEED", 1)).await;
    let cluster = Cluster::each(&sections).await;
    let gateways = &cluster.gateways;
    for way in &proxies {
        way.set(
            &[Server::Redis],
            &Faults {
                lost_answers: 50,
                ..Faults::default()
            },
        );
    }
    let actual = stream::iter(0..setting("KEYS", 12)).map(|index| async move {
        let reply = ScriptedReply::new(&format!("r{index}"), 100, Duration::from_millis(20));
        let thread = gateways.thread(0).await;
        let run = gateways.background(0, &thread, &body(&reply.prompt)).await;
        let viewers = [0, 1]
            .map(|node| crate::follower::join(gateways.clone(), node, thread.clone(), run.clone()));
        for observed in join_all(viewers).await {
            observed.is_whole(&reply);
        }
    });
    let actual = actual.buffer_unordered(at_once()).count().await;
    let lost: u64 = proxies.iter().map(|way| way.redis.lost()).sum();
    eprintln!("{actual} runs with two viewers each, {lost} answers lost");
    assert!(lost > 0, "no response was lost");
    assert_eq!(cluster.model.rejections(), 0);
}

/// Returns the number of keys that are tested concurrently.
fn at_once() -> usize {
    usize::try_from(setting("AT_ONCE", 6)).expect("few")
}

/// Requests the same run from every gateway concurrently until each has answered: there is one run,
/// and another body is rejected.
async fn one_run(gateways: &Gateways, name: String) {
    let reply = ScriptedReply::new(&name, 10, Duration::from_millis(20));
    let expected = body(&reply.prompt);
    let (_, thread) = answered(gateways, 0, "/threads", &name, &serde_json::json!({})).await;
    let thread = text(&thread["thread_id"]).to_owned();
    let path = format!("/threads/{thread}/runs");
    let everywhere =
        (0..gateways.urls.len()).map(|node| answered(gateways, node, &path, &name, &expected));
    let answers = join_all(everywhere).await;
    let run = text(&answers[0].1["run_id"]).to_owned();
    for (status, answer) in &answers {
        assert_eq!(
            (status.as_u16(), &answer["run_id"]),
            (200, &Value::from(&*run)),
            "{name}: {answers:?}"
        );
    }
    let (status, actual) =
        answered(gateways, 0, &path, &name, &body("then say something else")).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{name}: {actual}");
    let ended = wait_and_read(
        gateways,
        &format!("{path}/{run}/join"),
        &format!("{path}/{run}"),
    )
    .await;
    assert_eq!(ended["status"], "success", "{name}: {ended}");
    let all = read(gateways, &path).await;
    assert_eq!(all.as_array().map(Vec::len), Some(1), "{name}: {all}");
    reply.assert_matches(&crate::rig::messages(
        &read(gateways, &format!("/threads/{thread}/state")).await["values"],
    ));
}

/// Returns a gateway's final response; retries with the same key while the gateway is down or busy.
async fn answered(
    gateways: &Gateways,
    node: usize,
    path: &str,
    key: &str,
    body: &Value,
) -> (StatusCode, Value) {
    for _ in 0..TRIES {
        let request = gateways
            .client
            .post(format!("{}{path}", gateways.urls[node]))
            .header("Idempotency-Key", key);
        let sent = request
            .timeout(Duration::from_secs(30))
            .json(body)
            .send()
            .await;
        if let Ok(answer) = sent
            && !matches!(answer.status().as_u16(), 503 | 504)
        {
            let status = answer.status();
            if let Ok(actual) = answer.json().await {
                return (status, actual);
            }
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    panic!("gateway {node} does not answer {path} with key {key}");
}

/// Waits for the end of a run, then reads it from any gateway that answers.
async fn wait_and_read(gateways: &Gateways, join: &str, path: &str) -> Value {
    for _ in 0..TRIES {
        read(gateways, join).await;
        let stored = read(gateways, path).await;
        if !matches!(text(&stored["status"]), "pending" | "running") {
            return stored;
        }
    }
    panic!("{path} does not end");
}

/// Reads from any gateway that answers.
async fn read(gateways: &Gateways, path: &str) -> Value {
    for attempt in 0..TRIES {
        if let Ok((status, actual)) = gateways
            .try_ask(
                attempt % gateways.urls.len(),
                Method::GET,
                path,
                &Value::Null,
            )
            .await
            && !status.is_server_error()
        {
            assert_eq!(status, 200, "{path}: {actual}");
            return actual;
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    panic!("no gateway answers {path}");
}

//! One request sent again and again under its key, to several gateways at once, while they die or lose answers.

use std::time::Duration;

use deerflow_tests::dice::{Dice, seeds, setting};
use deerflow_tests::fault_proxy::Faults;
use futures_util::future::join_all;
use futures_util::{StreamExt, stream};
use reqwest::{Method, StatusCode};
use serde_json::Value;

use crate::rig::{Cluster, Story, Web, body, text};
use crate::servers::{Server, Ways};

/// How often a client asks before it gives up, half a second apart.
const TRIES: usize = 120;

#[tokio::test]
#[ignore = "needs two servers; tests/cluster/run.sh starts them"]
async fn a_key_makes_one_run_however_many_nodes_are_asked_and_die() {
    let mut cluster = Cluster::of(3).await;
    let web = cluster.web.clone();
    let mut made = 0;
    for seed in seeds(2) {
        eprintln!("seed {seed}");
        let mut dice = Dice::of(seed);
        let keys =
            stream::iter(0..setting("KEYS", 12)).map(|key| one_run(&web, format!("s{seed}k{key}")));
        let asking = keys.buffer_unordered(at_once()).count();
        let dying = async {
            tokio::time::sleep(dice.millis(100, 1_500)).await;
            let away = dice.millis(0, 2_000);
            cluster.cut(dice.below(3), away).await;
        };
        made += tokio::join!(asking, dying).0;
    }
    eprintln!("{made} keys, one run each");
    assert_eq!(cluster.model.rejections(), 0);
}

#[tokio::test]
#[ignore = "needs two servers; tests/cluster/run.sh starts them"]
async fn a_key_makes_one_run_though_the_database_s_answers_are_lost() {
    let (ways, sections) = Ways::of(2, setting("SEED", 1)).await;
    let cluster = Cluster::each(&sections).await;
    let losing = Faults {
        lost_answers: 20,
        ..Faults::default()
    };
    ways[0].set(&[Server::Postgres], &losing);
    let keys =
        stream::iter(0..setting("KEYS", 24)).map(|key| one_run(&cluster.web, format!("lost{key}")));
    let made = keys.buffer_unordered(at_once()).count().await;
    eprintln!(
        "{made} keys, one run each, {} answers lost",
        ways[0].postgres.lost()
    );
    assert!(ways[0].postgres.lost() > 0, "no answer was lost");
    assert_eq!(cluster.model.rejections(), 0);
}

#[tokio::test]
#[ignore = "needs two servers; tests/cluster/run.sh starts them"]
async fn viewers_miss_and_repeat_nothing_though_the_stream_server_s_answers_are_lost() {
    let (ways, sections) = Ways::of(2, setting("SEED", 1)).await;
    let cluster = Cluster::each(&sections).await;
    let web = &cluster.web;
    for way in &ways {
        way.set(
            &[Server::Redis],
            &Faults {
                lost_answers: 50,
                ..Faults::default()
            },
        );
    }
    let told = stream::iter(0..setting("KEYS", 12)).map(|place| async move {
        let story = Story::new(&format!("r{place}"), 100, Duration::from_millis(20));
        let thread = web.thread(0).await;
        let run = web.background(0, &thread, &body(&story.prompt)).await;
        let viewers = [0, 1]
            .map(|node| crate::follower::join(web.clone(), node, thread.clone(), run.clone()));
        for seen in join_all(viewers).await {
            seen.is_whole(&story);
        }
    });
    let told = told.buffer_unordered(at_once()).count().await;
    let lost: u64 = ways.iter().map(|way| way.redis.lost()).sum();
    eprintln!("{told} runs with two viewers each, {lost} answers lost");
    assert!(lost > 0, "no answer was lost");
    assert_eq!(cluster.model.rejections(), 0);
}

/// So many keys are asked with side by side.
fn at_once() -> usize {
    usize::try_from(setting("AT_ONCE", 6)).expect("few")
}

/// Every gateway is asked for the same run at once, until each has answered: there is one run, and another body is refused.
async fn one_run(web: &Web, name: String) {
    let story = Story::new(&name, 10, Duration::from_millis(20));
    let wanted = body(&story.prompt);
    let (_, thread) = answered(web, 0, "/threads", &name, &serde_json::json!({})).await;
    let thread = text(&thread["thread_id"]).to_owned();
    let path = format!("/threads/{thread}/runs");
    let everywhere = (0..web.urls.len()).map(|node| answered(web, node, &path, &name, &wanted));
    let answers = join_all(everywhere).await;
    let run = text(&answers[0].1["run_id"]).to_owned();
    for (status, answer) in &answers {
        assert_eq!(
            (status.as_u16(), &answer["run_id"]),
            (200, &Value::from(&*run)),
            "{name}: {answers:?}"
        );
    }
    let (status, told) = answered(web, 0, &path, &name, &body("then say something else")).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{name}: {told}");
    let ended = patiently(web, &format!("{path}/{run}/join"), &format!("{path}/{run}")).await;
    assert_eq!(ended["status"], "success", "{name}: {ended}");
    let all = read(web, &path).await;
    assert_eq!(all.as_array().map(Vec::len), Some(1), "{name}: {all}");
    story.is_told_by(&crate::rig::messages(
        &read(web, &format!("/threads/{thread}/state")).await["values"],
    ));
}

/// What a gateway answers at last, asked again under the same key while it is gone or busy.
async fn answered(
    web: &Web,
    node: usize,
    path: &str,
    key: &str,
    body: &Value,
) -> (StatusCode, Value) {
    for _ in 0..TRIES {
        let request = web
            .client
            .post(format!("{}{path}", web.urls[node]))
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
            if let Ok(told) = answer.json().await {
                return (status, told);
            }
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    panic!("gateway {node} does not answer {path} under {key}");
}

/// Waits for a run, and reads it when it is over, on whichever gateway answers.
async fn patiently(web: &Web, join: &str, path: &str) -> Value {
    for _ in 0..TRIES {
        read(web, join).await;
        let shown = read(web, path).await;
        if !matches!(text(&shown["status"]), "pending" | "running") {
            return shown;
        }
    }
    panic!("{path} does not end");
}

/// Reads on whichever gateway answers.
async fn read(web: &Web, path: &str) -> Value {
    for attempt in 0..TRIES {
        if let Ok((status, told)) = web
            .try_ask(attempt % web.urls.len(), Method::GET, path, &Value::Null)
            .await
            && !status.is_server_error()
        {
            assert_eq!(status, 200, "{path}: {told}");
            return told;
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    panic!("nobody answers {path}");
}

//! Two runs at once on one thread, made on different nodes.

use std::time::Duration;

use deerflow_tests::dice::setting;
use futures_util::{StreamExt, stream};
use reqwest::Method;

use crate::rig::{Cluster, Story, Web, body, text};

/// So many pairs are made side by side.
const AT_ONCE: usize = 8;

#[tokio::test]
#[ignore = "needs two servers; tests/cluster/run.sh starts them"]
async fn two_runs_made_at_once_on_different_nodes_are_told_apart_by_every_strategy() {
    let cluster = Cluster::of(2).await;
    let pairs = setting("PAIRS", 4);
    let all = ["reject", "enqueue", "interrupt", "rollback"].into_iter().flat_map(|strategy| (0..pairs).map(move |pair| (strategy, pair)));
    let told = stream::iter(all).map(|(strategy, pair)| pair_is_told_apart(&cluster.web, strategy, pair));
    told.buffer_unordered(AT_ONCE).collect::<()>().await;
    eprintln!("{pairs} pairs of each strategy");
    assert_eq!(cluster.model.rejections(), 0);
}

async fn pair_is_told_apart(web: &Web, strategy: &str, pair: u64) {
    let thread = web.thread(0).await;
    let path = format!("/threads/{thread}/runs");
    let stories = [0, 1].map(|node| Story::new(&format!("{strategy}{pair}-{node}"), 60, Duration::from_millis(25)));
    let bodies = stories.each_ref().map(|story| {
        let mut body = body(&story.prompt);
        body["multitask_strategy"] = strategy.into();
        body
    });
    let [first, second] = &bodies;
    let (first, second) = tokio::join!(web.try_ask(0, Method::POST, &path, first), web.try_ask(1, Method::POST, &path, second));
    let answers = [first.expect("answer"), second.expect("answer")];
    let mut taken = Vec::new();
    for ((status, answer), story) in answers.iter().zip(&stories) {
        match status.as_u16() {
            200 => taken.push((text(&answer["run_id"]).to_owned(), story)),
            409 | 422 if strategy == "reject" => {}
            _ => panic!("{strategy}: {status} {answer}"),
        }
    }
    assert_eq!(taken.len(), if strategy == "reject" { 1 } else { 2 }, "{strategy}: {answers:?}");
    let mut ends = Vec::new();
    for (run, story) in &taken {
        let status = web.ended(1, &thread, run).await.map_or_else(|| "gone".to_owned(), |run| text(&run["status"]).to_owned());
        ends.push((status, *story));
    }
    let said = web.talk(0, &thread).await;
    let told = |story: &Story| said.iter().filter(|(_, words)| *words == story.text).count();
    let succeeded: Vec<_> = ends.iter().filter(|(status, _)| status == "success").map(|(_, story)| *story).collect();
    assert!(succeeded.iter().all(|story| told(story) == 1), "{strategy}: {said:?}");
    match strategy {
        "reject" => assert_eq!(succeeded.len(), 1, "{ends:?}"),
        "enqueue" => assert_eq!(succeeded.len(), 2, "{ends:?}"),
        "interrupt" => {
            assert!(ends.iter().all(|(status, _)| matches!(&**status, "success" | "interrupted")), "{ends:?}");
            assert_eq!(succeeded.len(), 1, "{ends:?}");
        }
        _ => {
            assert_eq!(succeeded.len(), 1, "{ends:?}");
            assert_eq!(said, succeeded[0].talk(), "what was rolled back is gone");
        }
    }
    web.goes_on(1, &thread).await;
}

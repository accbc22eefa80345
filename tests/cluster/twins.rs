//! Two runs at once on one thread, made on different nodes.

use std::time::Duration;

use deerflow_tests::dice::setting;
use futures_util::future::join_all;
use reqwest::Method;

use crate::rig::{Cluster, Story, Web, body, text};

#[tokio::test]
#[ignore = "needs two servers; tests/cluster/run.sh starts them"]
async fn two_runs_made_at_once_on_different_nodes_are_told_apart_by_every_strategy() {
    let pairs = setting("PAIRS", 4);
    let at_once = usize::try_from(setting("AT_ONCE", 8)).expect("few");
    let all = ["reject", "enqueue", "interrupt", "rollback"]
        .into_iter()
        .flat_map(|strategy| (0..pairs).map(move |pair| (strategy, pair)));
    for some in all.collect::<Vec<_>>().chunks(at_once) {
        let cluster = Cluster::of(2).await;
        let made = join_all(
            some.iter()
                .map(|&(strategy, pair)| Pair::made(&cluster.web, strategy, pair)),
        )
        .await;
        // No run could end before its twin was there. A model releases once for all, so every cluster has one.
        cluster.model.release();
        join_all(made.iter().map(|pair| pair.is_told_apart(&cluster.web))).await;
        assert_eq!(cluster.model.rejections(), 0);
    }
    eprintln!("{pairs} pairs of each strategy");
}

/// Two runs of one thread that were asked for at once.
struct Pair {
    strategy: &'static str,
    thread: String,
    /// Those that were accepted, with what they tell.
    taken: Vec<(String, Story)>,
}

impl Pair {
    /// Asks a node each for a run that does not end before the model releases it.
    async fn made(web: &Web, strategy: &'static str, pair: u64) -> Self {
        let thread = web.thread(0).await;
        let path = format!("/threads/{thread}/runs");
        let stories = [0, 1].map(|node| {
            Story::new(
                &format!("{strategy}{pair}-{node}"),
                60,
                Duration::from_millis(25),
            )
            .held_after(10)
        });
        let bodies = stories.each_ref().map(|story| {
            let mut body = body(&story.prompt);
            body["multitask_strategy"] = strategy.into();
            body
        });
        let [first, second] = &bodies;
        let (first, second) = tokio::join!(
            web.try_ask(0, Method::POST, &path, first),
            web.try_ask(1, Method::POST, &path, second)
        );
        let answers = [first.expect("answer"), second.expect("answer")];
        let mut taken = Vec::new();
        for ((status, answer), story) in answers.iter().zip(stories) {
            match status.as_u16() {
                200 => taken.push((text(&answer["run_id"]).to_owned(), story)),
                409 | 422 if strategy == "reject" => {}
                _ => panic!("{strategy}: {status} {answer}"),
            }
        }
        assert_eq!(
            taken.len(),
            if strategy == "reject" { 1 } else { 2 },
            "{strategy}: {answers:?}"
        );
        Self {
            strategy,
            thread,
            taken,
        }
    }

    async fn is_told_apart(&self, web: &Web) {
        let Self {
            strategy,
            thread,
            taken,
        } = self;
        let mut ends = Vec::new();
        for (run, story) in taken {
            let status = web
                .ended(1, thread, run)
                .await
                .map_or_else(|| "gone".to_owned(), |run| text(&run["status"]).to_owned());
            ends.push((status, story));
        }
        let said = web.talk(0, thread).await;
        let told = |story: &Story| {
            said.iter()
                .filter(|(_, words)| *words == story.text)
                .count()
        };
        let succeeded: Vec<_> = ends
            .iter()
            .filter(|(status, _)| status == "success")
            .map(|(_, story)| *story)
            .collect();
        assert!(
            succeeded.iter().all(|story| told(story) == 1),
            "{strategy}: {said:?}"
        );
        match *strategy {
            "reject" => assert_eq!(succeeded.len(), 1, "{ends:?}"),
            "enqueue" => assert_eq!(succeeded.len(), 2, "{ends:?}"),
            "interrupt" => {
                assert!(
                    ends.iter()
                        .all(|(status, _)| matches!(&**status, "success" | "interrupted")),
                    "{ends:?}"
                );
                assert_eq!(succeeded.len(), 1, "{ends:?}");
            }
            _ => {
                assert_eq!(succeeded.len(), 1, "{ends:?}");
                assert_eq!(said, succeeded[0].talk(), "what was rolled back is gone");
            }
        }
        web.goes_on(1, thread).await;
    }
}

//! Two concurrent runs on one thread, created on different nodes.

use std::time::Duration;

use deerflow_tests::seeded_random::setting;
use futures_util::future::join_all;
use reqwest::Method;

use crate::rig::{Cluster, Gateways, ScriptedReply, body, text};

#[tokio::test]
#[ignore = "needs two servers; tests/cluster/run.sh starts them"]
async fn concurrent_runs_on_two_nodes_follow_every_strategy() {
    let pairs = setting("PAIRS", 4);
    let at_once = usize::try_from(setting("AT_ONCE", 8)).expect("few");
    let all = ["reject", "enqueue", "interrupt", "rollback"]
        .into_iter()
        .flat_map(|strategy| (0..pairs).map(move |pair| (strategy, pair)));
    for some in all.collect::<Vec<_>>().chunks(at_once) {
        let cluster = Cluster::of(2).await;
        let round = join_all(
            some.iter()
                .map(|&(strategy, pair)| Pair::request(&cluster.gateways, strategy, pair)),
        )
        .await;
        // No run may end before the other of its pair exists. A model's release is permanent, so
        // every cluster has its own model.
        cluster.model.release();
        join_all(
            round
                .iter()
                .map(|pair| pair.assert_strategy_applied(&cluster.gateways)),
        )
        .await;
        assert_eq!(cluster.model.rejections(), 0);
    }
    eprintln!("{pairs} pairs of each strategy");
}

/// Two runs of one thread that were requested concurrently.
struct Pair {
    strategy: &'static str,
    thread: String,
    /// Accepted runs with their expected answers.
    accepted: Vec<(String, ScriptedReply)>,
}

impl Pair {
    /// Requests a run from each of two nodes that does not end before the model is released.
    async fn request(gateways: &Gateways, strategy: &'static str, pair: u64) -> Self {
        let thread = gateways.thread(0).await;
        let path = format!("/threads/{thread}/runs");
        let replies = [0, 1].map(|node| {
            ScriptedReply::new(
                &format!("{strategy}{pair}-{node}"),
                60,
                Duration::from_millis(25),
            )
            .held_after(10)
        });
        let bodies = replies.each_ref().map(|reply| {
            let mut body = body(&reply.prompt);
            body["multitask_strategy"] = strategy.into();
            body
        });
        let [first, second] = &bodies;
        let (first, second) = tokio::join!(
            gateways.try_ask(0, Method::POST, &path, first),
            gateways.try_ask(1, Method::POST, &path, second)
        );
        let answers = [first.expect("answer"), second.expect("answer")];
        let mut accepted = Vec::new();
        for ((status, answer), reply) in answers.iter().zip(replies) {
            match status.as_u16() {
                200 => accepted.push((text(&answer["run_id"]).to_owned(), reply)),
                409 | 422 if strategy == "reject" => {}
                _ => panic!("{strategy}: {status} {answer}"),
            }
        }
        assert_eq!(
            accepted.len(),
            if strategy == "reject" { 1 } else { 2 },
            "{strategy}: {answers:?}"
        );
        Self {
            strategy,
            thread,
            accepted,
        }
    }

    async fn assert_strategy_applied(&self, gateways: &Gateways) {
        let Self {
            strategy,
            thread,
            accepted,
        } = self;
        let mut ends = Vec::new();
        for (run, reply) in accepted {
            let status = gateways
                .ended(1, thread, run)
                .await
                .map_or_else(|| "gone".to_owned(), |run| text(&run["status"]).to_owned());
            ends.push((status, reply));
        }
        let transcript = gateways.visible_messages(0, thread).await;
        let actual = |reply: &ScriptedReply| {
            transcript
                .iter()
                .filter(|(_, words)| *words == reply.text)
                .count()
        };
        let succeeded: Vec<_> = ends
            .iter()
            .filter(|(status, _)| status == "success")
            .map(|(_, reply)| *reply)
            .collect();
        assert!(
            succeeded.iter().all(|reply| actual(reply) == 1),
            "{strategy}: {transcript:?}"
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
                assert_eq!(
                    transcript,
                    succeeded[0].visible_messages(),
                    "the rolled-back run is gone"
                );
            }
        }
        gateways.accepts_new_run(1, thread).await;
    }
}

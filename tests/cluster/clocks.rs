//! Gateways whose clocks are a day apart, jump, and run too fast.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use chrono::{DateTime, TimeDelta, Utc};
use deerflow_tests::seeded_random::{SeededRandom, seeds, setting};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::task::JoinSet;

use crate::follower::{join, start_and_follow};
use crate::rig::{Cluster, ScriptedReply, body, limit, on_postgres, setting_of, through_redis};
use crate::takeover::TAKEN_OVER_WITHIN;

/// Maximum time until a changed clock takes effect.
pub(crate) const APPLIED_WITHIN: Duration = Duration::from_secs(2);

/// Clock of one gateway.
pub(crate) struct NodeClock {
    offset: PathBuf,
    /// If `true`, only the wall clock is wrong, as after a manual change; otherwise durations are
    /// wrong too, as with a bad crystal.
    keeps_durations: bool,
}

impl NodeClock {
    pub(crate) fn new(folder: &TempDir, name: &str, offset: &str, keeps_durations: bool) -> Self {
        let clock = Self {
            offset: folder.path().join(name),
            keeps_durations,
        };
        clock.set(offset);
        clock
    }

    /// Sets the clock's offset from now on, in libfaketime's format. The write is atomic because
    /// the file is read all the time.
    pub(crate) fn set(&self, offset: &str) {
        let new = self.offset.with_extension("new");
        std::fs::write(&new, offset).expect("written");
        std::fs::rename(&new, &self.offset).expect("renamed");
    }

    pub(crate) fn environment(&self) -> Vec<(String, String)> {
        let mut environment = vec![
            (
                "LD_PRELOAD".to_owned(),
                setting_of("DEERFLOW_TEST_FAKETIME"),
            ),
            (
                "FAKETIME_TIMESTAMP_FILE".to_owned(),
                self.offset.display().to_string(),
            ),
            ("FAKETIME_CACHE_DURATION".to_owned(), "1".to_owned()),
        ];
        if self.keeps_durations {
            environment.push(("FAKETIME_DONT_FAKE_MONOTONIC".to_owned(), "1".to_owned()));
        }
        environment
    }
}

/// Reports whether a gateway's responses carry another date than this machine's.
async fn is_off(url: &str) -> bool {
    let answer = reqwest::get(format!("{url}/health"))
        .await
        .expect("an answer");
    let date = DateTime::parse_from_rfc2822(answer.headers()["date"].to_str().expect("text"))
        .expect("a date");
    #[expect(
        clippy::disallowed_methods,
        reason = "the machine's clock is the reference"
    )]
    let now = Utc::now();
    (date.to_utc() - now).abs() > TimeDelta::hours(23)
}

#[tokio::test]
#[ignore = "needs two servers and libfaketime; tests/cluster/run.sh has them"]
async fn wrong_clocks_neither_end_nor_take_over_live_runs() {
    let folder = TempDir::new().expect("a folder");
    let clocks = [
        NodeClock::new(&folder, "ahead", "+1d", true),
        NodeClock::new(&folder, "behind", "-1d", true),
        NodeClock::new(&folder, "fast", "+0 x1.05", false),
    ];
    let cluster = Cluster::under(
        &(on_postgres() + &through_redis()),
        &clocks.each_ref().map(NodeClock::environment),
    )
    .await;
    let gateways = &cluster.gateways;
    let runs = usize::try_from(setting("RUNS", 12)).expect("few");
    for seed in seeds(1) {
        eprintln!("seed {seed}");
        let mut random = SeededRandom::of(seed);
        let mut following = JoinSet::new();
        let mut replies = Vec::new();
        for index in 0..runs {
            let reply = ScriptedReply::new(
                &format!("c{seed}r{index}"),
                60 + random.below(60),
                Duration::from_millis(80),
            );
            let reply = if index % 2 == 0 {
                reply
            } else {
                reply.after_a_tool()
            };
            let thread = gateways.thread(random.below(3)).await;
            following.spawn(start_and_follow(
                gateways.clone(),
                index % 3,
                thread.clone(),
                reply.clone(),
            ));
            replies.push((thread, reply));
        }
        for (ahead, behind) in [("-1h", "+1h"), ("+1d", "-1d")] {
            tokio::time::sleep(APPLIED_WITHIN).await;
            clocks[0].set(ahead);
            clocks[1].set(behind);
        }
        while let Some(observed) = following.join_next().await {
            let observed = observed.expect("no panic").expect("acknowledged");
            let reply = &replies
                .iter()
                .find(|(thread, _)| *thread == observed.thread)
                .expect("known")
                .1;
            observed.is_whole(reply);
            assert_eq!(
                observed.attempts.keys().copied().collect::<Vec<_>>(),
                [1],
                "no other node executed it"
            );
            let node = random.below(3);
            assert_eq!(
                gateways.run(node, &observed.thread, &observed.run).await["status"],
                "success"
            );
            reply.assert_matches(&gateways.visible_messages(node, &observed.thread).await);
        }
        for (thread, _) in &replies {
            gateways.accepts_new_run(random.below(3), thread).await;
        }
    }
    assert_eq!(cluster.model.rejections(), 0);
}

#[tokio::test]
#[ignore = "needs two servers and libfaketime; tests/cluster/run.sh has them"]
async fn dead_owner_with_wrong_clock_is_taken_over_in_time() {
    let folder = TempDir::new().expect("a folder");
    for (owner, heir) in [("+1d", "-1d"), ("-1d", "+1d")] {
        let clocks = [owner, heir].map(|offset| NodeClock::new(&folder, offset, offset, true));
        let mut cluster = Cluster::under(
            &(on_postgres() + &through_redis()),
            &clocks.each_ref().map(NodeClock::environment),
        )
        .await;
        let gateways = cluster.gateways.clone();
        let reply = ScriptedReply::new("off", 150, Duration::from_millis(100));
        let thread = gateways.thread(0).await;
        assert!(is_off(&gateways.urls[0]).await, "the clock is not set");
        let run = gateways.background(0, &thread, &body(&reply.prompt)).await;
        let mut viewers = JoinSet::new();
        viewers.spawn(join(gateways.clone(), 1, thread.clone(), run.clone()));
        tokio::time::sleep(APPLIED_WITHIN).await;
        let killed = Instant::now();
        cluster.nodes[0].kill9().await.expect("killed");
        let observed = viewers.join_next().await.expect("one").expect("no panic");
        observed.is_whole(&reply);
        let after = observed.taken_over_after(killed).expect("another attempt");
        eprintln!("{owner}, {heir}: taken over after {after:.1?}");
        assert!(after < limit(TAKEN_OVER_WITHIN), "{after:?}");
        assert_eq!(gateways.run(1, &thread, &run).await["status"], "success");
        cluster.nodes[0].restart().await.expect("healthy again");
        assert_eq!(
            gateways.visible_messages(0, &thread).await,
            reply.visible_messages()
        );
        gateways.accepts_new_run(0, &thread).await;
        gateways.accepts_new_run(1, &thread).await;
    }
}

#[tokio::test]
#[ignore = "needs libfaketime; tests/cluster/run.sh has it"]
async fn pending_interrupt_survives_crash_and_clock_jump() {
    let folder = TempDir::new().expect("a folder");
    let clock = NodeClock::new(&folder, "clock", "+0", true);
    let mut cluster = Cluster::under("", &[clock.environment()]).await;
    let gateways = cluster.gateways.clone();
    let reply = ScriptedReply::new("tomorrow", 5, Duration::ZERO).after_a_tool();
    let thread = gateways.thread(0).await;
    let mut request = body(&reply.prompt);
    request["interrupt_before"] = json!(["tools"]);
    let run = gateways.background(0, &thread, &request).await;
    gateways.ended(0, &thread, &run).await.expect("a run");
    let waiting = gateways.get(0, &format!("/threads/{thread}")).await;
    assert_eq!(waiting["status"], "interrupted");
    cluster.nodes[0].kill9().await.expect("killed");
    clock.set("+1d");
    cluster.nodes[0].restart().await.expect("healthy again");
    let still = gateways.get(0, &format!("/threads/{thread}")).await;
    assert_eq!(
        (&still["status"], &still["interrupts"]),
        (&waiting["status"], &waiting["interrupts"])
    );
    let mut run_all = body("");
    run_all["input"] = Value::Null;
    gateways
        .post(0, &format!("/threads/{thread}/runs/wait"), &run_all)
        .await;
    reply.assert_matches(&gateways.visible_messages(0, &thread).await);
    assert_eq!(
        cluster.model.requests().len(),
        2,
        "the model was not called again"
    );
    gateways.accepts_new_run(0, &thread).await;
}

//! Gateways whose clocks are a day apart, jump, and run too fast.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use chrono::{DateTime, TimeDelta, Utc};
use deerflow_tests::dice::{Dice, seeds, setting};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::task::JoinSet;

use crate::follower::{join, tell};
use crate::rig::{Cluster, Story, body, limit, on_postgres, setting_of, through_redis};
use crate::takeover::TAKEN_OVER_WITHIN;

/// How long a clock that was set may go on as before.
const HEEDED_WITHIN: Duration = Duration::from_secs(2);

/// The clock of one gateway.
struct Clock {
    says: PathBuf,
    /// Only the time of day is off, as a clock is that somebody sets; otherwise durations are, too, as with a bad crystal.
    keeps_durations: bool,
}

impl Clock {
    fn new(folder: &TempDir, name: &str, says: &str, keeps_durations: bool) -> Self {
        let clock = Self {
            says: folder.path().join(name),
            keeps_durations,
        };
        clock.set(says);
        clock
    }

    /// How far it is off from now on, as libfaketime writes it. Written in one step: it is read all the time.
    fn set(&self, says: &str) {
        let new = self.says.with_extension("new");
        std::fs::write(&new, says).expect("written");
        std::fs::rename(&new, &self.says).expect("renamed");
    }

    fn environment(&self) -> Vec<(String, String)> {
        let mut environment = vec![
            (
                "LD_PRELOAD".to_owned(),
                setting_of("DEERFLOW_TEST_FAKETIME"),
            ),
            (
                "FAKETIME_TIMESTAMP_FILE".to_owned(),
                self.says.display().to_string(),
            ),
            ("FAKETIME_CACHE_DURATION".to_owned(), "1".to_owned()),
        ];
        if self.keeps_durations {
            environment.push(("FAKETIME_DONT_FAKE_MONOTONIC".to_owned(), "1".to_owned()));
        }
        environment
    }
}

/// Whether a gateway dates its answers another day.
async fn is_off(url: &str) -> bool {
    let answer = reqwest::get(format!("{url}/health"))
        .await
        .expect("an answer");
    let date = DateTime::parse_from_rfc2822(answer.headers()["date"].to_str().expect("text"))
        .expect("a date");
    #[expect(
        clippy::disallowed_methods,
        reason = "the clock to compare with is the machine's"
    )]
    let now = Utc::now();
    (date.to_utc() - now).abs() > TimeDelta::hours(23)
}

#[tokio::test]
#[ignore = "needs two servers and libfaketime; tests/cluster/run.sh has them"]
async fn clocks_that_are_off_end_no_run_early_and_take_none_from_its_owner() {
    let folder = TempDir::new().expect("a folder");
    let clocks = [
        Clock::new(&folder, "ahead", "+1d", true),
        Clock::new(&folder, "behind", "-1d", true),
        Clock::new(&folder, "fast", "+0 x1.05", false),
    ];
    let cluster = Cluster::under(
        &(on_postgres() + &through_redis()),
        &clocks.each_ref().map(Clock::environment),
    )
    .await;
    let web = &cluster.web;
    let runs = usize::try_from(setting("RUNS", 12)).expect("few");
    for seed in seeds(1) {
        eprintln!("seed {seed}");
        let mut dice = Dice::of(seed);
        let mut telling = JoinSet::new();
        let mut stories = Vec::new();
        for place in 0..runs {
            let story = Story::new(
                &format!("c{seed}r{place}"),
                60 + dice.below(60),
                Duration::from_millis(80),
            );
            let story = if place % 2 == 0 {
                story
            } else {
                story.after_a_tool()
            };
            let thread = web.thread(dice.below(3)).await;
            telling.spawn(tell(web.clone(), place % 3, thread.clone(), story.clone()));
            stories.push((thread, story));
        }
        for (ahead, behind) in [("-1h", "+1h"), ("+1d", "-1d")] {
            tokio::time::sleep(HEEDED_WITHIN).await;
            clocks[0].set(ahead);
            clocks[1].set(behind);
        }
        while let Some(seen) = telling.join_next().await {
            let seen = seen.expect("no panic").expect("acknowledged");
            let story = &stories
                .iter()
                .find(|(thread, _)| *thread == seen.thread)
                .expect("known")
                .1;
            seen.is_whole(story);
            assert_eq!(
                seen.attempts.keys().copied().collect::<Vec<_>>(),
                [1],
                "nobody else had it"
            );
            let node = dice.below(3);
            assert_eq!(
                web.run(node, &seen.thread, &seen.run).await["status"],
                "success"
            );
            story.is_told_by(&web.talk(node, &seen.thread).await);
        }
        for (thread, _) in &stories {
            web.goes_on(dice.below(3), thread).await;
        }
    }
    assert_eq!(cluster.model.rejections(), 0);
}

#[tokio::test]
#[ignore = "needs two servers and libfaketime; tests/cluster/run.sh has them"]
async fn a_dead_owner_whose_clock_was_off_is_followed_as_any_other() {
    let folder = TempDir::new().expect("a folder");
    for (owner, heir) in [("+1d", "-1d"), ("-1d", "+1d")] {
        let clocks = [owner, heir].map(|says| Clock::new(&folder, says, says, true));
        let mut cluster = Cluster::under(
            &(on_postgres() + &through_redis()),
            &clocks.each_ref().map(Clock::environment),
        )
        .await;
        let web = cluster.web.clone();
        let story = Story::new("off", 150, Duration::from_millis(100));
        let thread = web.thread(0).await;
        assert!(is_off(&web.urls[0]).await, "the clock is not set");
        let run = web.background(0, &thread, &body(&story.prompt)).await;
        let mut viewers = JoinSet::new();
        viewers.spawn(join(web.clone(), 1, thread.clone(), run.clone()));
        tokio::time::sleep(HEEDED_WITHIN).await;
        let killed = Instant::now();
        cluster.nodes[0].kill9().await.expect("killed");
        let seen = viewers.join_next().await.expect("one").expect("no panic");
        seen.is_whole(&story);
        let after = seen.taken_over_after(killed).expect("another attempt");
        eprintln!("{owner}, {heir}: taken over after {after:.1?}");
        assert!(after < limit(TAKEN_OVER_WITHIN), "{after:?}");
        assert_eq!(web.run(1, &thread, &run).await["status"], "success");
        cluster.nodes[0].restart().await.expect("healthy again");
        assert_eq!(web.talk(0, &thread).await, story.talk());
        web.goes_on(0, &thread).await;
        web.goes_on(1, &thread).await;
    }
}

#[tokio::test]
#[ignore = "needs libfaketime; tests/cluster/run.sh has it"]
async fn what_waits_for_a_person_waits_through_a_crash_and_a_day() {
    let folder = TempDir::new().expect("a folder");
    let clock = Clock::new(&folder, "clock", "+0", true);
    let mut cluster = Cluster::under("", &[clock.environment()]).await;
    let web = cluster.web.clone();
    let story = Story::new("tomorrow", 5, Duration::ZERO).after_a_tool();
    let thread = web.thread(0).await;
    let mut asked = body(&story.prompt);
    asked["interrupt_before"] = json!(["tools"]);
    let run = web.background(0, &thread, &asked).await;
    web.ended(0, &thread, &run).await.expect("a run");
    let waiting = web.get(0, &format!("/threads/{thread}")).await;
    assert_eq!(waiting["status"], "interrupted");
    cluster.nodes[0].kill9().await.expect("killed");
    clock.set("+1d");
    cluster.nodes[0].restart().await.expect("healthy again");
    let still = web.get(0, &format!("/threads/{thread}")).await;
    assert_eq!(
        (&still["status"], &still["interrupts"]),
        (&waiting["status"], &waiting["interrupts"])
    );
    let mut go_on = body("");
    go_on["input"] = Value::Null;
    web.post(0, &format!("/threads/{thread}/runs/wait"), &go_on)
        .await;
    story.is_told_by(&web.talk(0, &thread).await);
    assert_eq!(cluster.model.requests().len(), 2, "nothing was asked again");
    web.goes_on(0, &thread).await;
}

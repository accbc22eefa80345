//! Death of a single gateway on SQLite at each fail point of a message, of a cursor and of a lease.
//!
//! `CHANNEL_POINT` selects one of the points by its number, from zero.

use std::sync::Arc;

use deerflow_tests::chat_fakes::PLATFORMS;
use deerflow_tests::seeded_random::{SeededRandom, setting};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::channels::ask::{answered, say_all};
use crate::channels::rig::{ChannelRig, LIMIT, POLL};
use crate::channels::tally::{Report, Tally};

/// Fail points of a message, from its receipt to its delivery, and of the lease.
const POINTS: [&str; 13] = [
    "channel.leased",
    "channel.cursor-read",
    "channel.received",
    "channel.accepted",
    "channel.begun",
    "channel.run-created",
    "channel.run-ended",
    "channel.decided",
    "channel.ended",
    "channel.sending",
    "channel.sent",
    "channel.delivered",
    "channel.renewed",
];
/// Fail point of a lease that a stopping process has released.
const AT_STOP: &str = "channel.released";
/// Chats per platform.
const CHATS: u32 = 2;
/// Fail points that are tested at the same time: a round mostly waits for the lease of the process
/// that died.
const AT_ONCE: usize = 4;
/// Highest number of the pass at which a process dies.
const PASSES: usize = 6;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes half an hour; make cluster-channels runs it"]
async fn death_at_any_point_loses_and_repeats_nothing() {
    let rounds = usize::try_from(setting("CHANNEL_POINT_ROUNDS", 20)).expect("rounds");
    let seed = setting("SEED", 1);
    let permits = Arc::new(Semaphore::new(AT_ONCE));
    let mut dying = JoinSet::new();
    let only = setting("CHANNEL_POINT", u64::MAX);
    let points = (0..).zip(POINTS.into_iter().chain([AT_STOP]));
    for (number, point) in points.filter(|(number, _)| only == u64::MAX || *number == only) {
        let permits = permits.clone();
        dying.spawn(async move {
            let _permit = permits.acquire_owned().await.expect("never closed");
            let random = SeededRandom::of(seed * 100 + number);
            (point, die_at(point, rounds, random).await)
        });
    }
    // All points are tested before one fails.
    let mut reports = Vec::new();
    while let Some(outcome) = dying.join_next().await {
        reports.push(outcome.expect("no panic"));
    }
    for (point, report) in reports {
        eprintln!("{point}, killed {rounds} times");
        report.assert_exact();
    }
}

/// Kills a gateway at a point in several rounds, in which persons write on all platforms.
async fn die_at(point: &str, rounds: usize, mut random: SeededRandom) -> Report {
    let mut rig = ChannelRig::on_sqlite().await;
    let mut tally = Tally::default();
    for round in 0..rounds {
        rig.nodes[0].terminate().await.expect("stopped");
        let dies_at = format!("{point}:{}", 1 + random.below(PASSES));
        rig.nodes[0].set_env("DEERFLOW_DIES_AT", Some(&dies_at));
        say_all(&rig, &mut tally, round, 1..=CHATS, "[[slow 5x20ms]]");
        // The process may die before it is healthy.
        if rig.nodes[0].restart().await.is_ok() {
            if point == AT_STOP {
                rig.all_connected().await;
                rig.nodes[0].ask_to_stop().expect("running");
            }
            ended(&mut rig, &dies_at).await;
            rig.nodes[0].kill9().await.expect("ended");
        }
        let records = rig.records().await;
        tally.died(&records.unrecorded(&PLATFORMS).await);
        rig.nodes[0].set_env("DEERFLOW_DIES_AT", None);
        rig.nodes[0].restart().await.expect("healthy again");
        answered(&rig, &tally, round).await;
        for asked in tally.repeated(&rig.fakes, round) {
            rig.show_calls(&asked);
        }
        rig.fakes.forget();
    }
    let report = tally.count(&rig.fakes);
    let duplicates = rig.records().await.duplicate_runs().await;
    eprintln!("{point}, killed {rounds} times: {duplicates} duplicate runs\n{report}");
    assert_eq!(duplicates, 0, "{point}");
    report
}

/// Waits until the process has died at its fail point.
async fn ended(rig: &mut ChannelRig, dies_at: &str) {
    let dead = async {
        while !rig.nodes[0].has_ended() {
            tokio::time::sleep(POLL).await;
        }
    };
    let in_time = tokio::time::timeout(LIMIT, dead).await;
    assert!(in_time.is_ok(), "{dies_at} was not reached");
}

//! Time until another node serves the bots of a node that died or stopped.

use std::time::{Duration, Instant};

use deerflow_tests::seeded_random::setting;

use super::percentiles;
use crate::channels::ask::{answered, say};
use crate::channels::rig::ChannelRig;
use crate::channels::tally::{Asked, Tally};
use crate::rig::p99;

/// Number of takeovers that are measured.
const TAKEOVERS: u64 = 30;
/// Maximum times after a death and after a stop.
const AFTER_DEATH: Duration = Duration::from_secs(20);
const AFTER_STOP: Duration = Duration::from_secs(3);

/// End of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Death,
    Stop,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes minutes and needs two servers; make cluster-channels runs it"]
async fn dead_holder_is_replaced_within_twenty_seconds() {
    let times = takeovers(End::Death).await;
    assert!(p99(times.clone()) < AFTER_DEATH, "{times:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes minutes and needs two servers; make cluster-channels runs it"]
async fn stopping_holder_is_replaced_within_three_seconds() {
    let times = takeovers(End::Stop).await;
    assert!(p99(times.clone()) < AFTER_STOP, "{times:?}");
}

/// Ends the node with the most bots until there are enough takeovers. Returns the times until the
/// bots were connected elsewhere.
async fn takeovers(end: End) -> Vec<Duration> {
    let wanted = usize::try_from(setting("CHANNEL_TAKEOVERS", TAKEOVERS)).expect("few");
    let mut rig = ChannelRig::of_three().await;
    let records = rig.records().await;
    let mut tally = Tally::default();
    let (mut times, mut answers, mut round) = (Vec::new(), Vec::new(), 0);
    while times.len() < wanted {
        let (node, platforms) = rig.busiest().await;
        let others = rig.others(node);
        let ended = Instant::now();
        match end {
            End::Death => drop(rig.kill(node, &records, &mut tally).await),
            End::Stop => rig.nodes[node].ask_to_stop().expect("running"),
        }
        for platform in &platforms {
            let asked = Asked {
                platform,
                chat: 1,
                round,
            };
            say(&rig, &mut tally, asked, "");
        }
        let before = ended.elapsed();
        let connected = rig.connected_among(&others, &platforms).await;
        times.extend(connected.iter().map(|(_, took)| before + *took));
        answered(&rig, &tally, round).await;
        answers.push(ended.elapsed());
        match end {
            End::Death => {}
            // Ends the wait for the stopped process.
            End::Stop => drop(rig.nodes[node].terminate().await),
        }
        rig.nodes[node].restart().await.expect("healthy again");
        round += 1;
    }
    let report = tally.count(&rig.fakes);
    eprintln!(
        "{end:?}: connected elsewhere after {}; all answers of a round after {}\n{report}",
        percentiles(&times),
        percentiles(&answers)
    );
    report.assert_exact();
    times
}

//! Holder whose clock jumps by a day: it stays the holder, and its death is noticed in time.

use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::channels::ask::{answered, say_all};
use crate::channels::rig::ChannelRig;
use crate::channels::tally::Tally;
use crate::clocks::{APPLIED_WITHIN, NodeClock};

/// Maximum time of a takeover after a death.
const TAKEN_OVER_WITHIN: Duration = Duration::from_secs(20);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs two servers and libfaketime; make cluster-channels runs it"]
async fn clock_that_jumps_by_a_day_neither_ends_nor_steals_a_lease() {
    let folder = TempDir::new().expect("folder");
    let clocks: Vec<NodeClock> = ["first", "second", "third"]
        .iter()
        .map(|name| NodeClock::new(&folder, name, "+0", true))
        .collect();
    let environments: Vec<_> = clocks.iter().map(NodeClock::environment).collect();
    let mut rig = ChannelRig::on_postgres(&environments).await;
    let records = rig.records().await;
    let mut tally = Tally::default();
    let claims = records.claims().await;
    let (mut round, mut jumps) = (0, 0);
    for clock in &clocks {
        for offset in ["+1d", "-1d", "+0"] {
            say_all(&rig, &mut tally, round, 1..=2, "[[slow 5x300ms]]");
            clock.set(offset);
            tokio::time::sleep(APPLIED_WITHIN).await;
            say_all(&rig, &mut tally, round, 3..=4, "");
            let open = answered(&rig, &tally, round).await;
            assert!(open.is_empty(), "{open:?}");
            assert_eq!(records.claims().await, claims, "no lease changed its node");
            (round, jumps) = (round + 1, jumps + 1);
        }
    }
    for (clock, offset) in clocks.iter().zip(["+1d", "-1d", "+0"]) {
        clock.set(offset);
    }
    tokio::time::sleep(APPLIED_WITHIN).await;
    for _ in 0..clocks.len() {
        let (holder, _) = rig.busiest().await;
        say_all(&rig, &mut tally, round, 1..=3, "[[slow 5x300ms]]");
        let killed = Instant::now();
        let platforms = rig.kill(holder, &records, &mut tally).await;
        rig.connected_among(&rig.others(holder), &platforms).await;
        let took = killed.elapsed();
        eprintln!("taken over after {took:.1?}");
        assert!(took < TAKEN_OVER_WITHIN, "{took:?}");
        let open = answered(&rig, &tally, round).await;
        assert!(open.is_empty(), "{open:?}");
        rig.nodes[holder].restart().await.expect("healthy again");
        round += 1;
    }
    let report = tally.count(&rig.fakes);
    let duplicates = records.duplicate_runs().await;
    eprintln!("{jumps} jumps of clocks, {duplicates} duplicate runs\n{report}");
    report.assert_exact();
    assert_eq!(duplicates, 0);
}

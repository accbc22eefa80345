//! Holder that is frozen for a minute, with answers in progress: after it wakes it writes nothing.

use std::time::Duration;

use deerflow_tests::seeded_random::setting;

use crate::channels::ask::{answered, say_all};
use crate::channels::rig::ChannelRig;
use crate::channels::tally::Tally;

/// Duration of a freeze, in seconds.
const FROZEN_SECONDS: u64 = 60;
/// Time in which a thawed holder would write, in which several renewals, polls and retries are due.
const OBSERVED: Duration = Duration::from_secs(15);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes minutes and needs two servers; make cluster-channels runs it"]
async fn holder_frozen_for_a_minute_writes_nothing_after_it_wakes() {
    let rounds = usize::try_from(setting("CHANNEL_FREEZES", 3)).expect("rounds");
    let frozen = Duration::from_secs(setting("FROZEN_SECONDS", FROZEN_SECONDS));
    let rig = ChannelRig::of_three().await;
    let records = rig.records().await;
    let mut tally = Tally::default();
    let (mut stale, mut quiet) = (0, 0);
    for round in 0..rounds {
        let (holder, _) = rig.busiest().await;
        let platforms = rig.served_by(holder).await;
        // At the freeze some answers are sent, some are in progress, and some are not begun.
        say_all(&rig, &mut tally, round, 1..=3, "");
        say_all(&rig, &mut tally, round, 4..=6, "[[slow 5x600ms]]");
        tokio::time::sleep(Duration::from_millis(1_500)).await;
        rig.nodes[holder].freeze().expect("frozen");
        let thawing = tokio::time::Instant::now() + frozen;
        tally.died(&records.unrecorded(&platforms).await);
        rig.connected_among(&rig.others(holder), &platforms).await;
        // A platform may deliver to the open connection of the frozen node until it wakes.
        let in_time = tokio::time::timeout_at(thawing, answered(&rig, &tally, round)).await;
        let is_quiet = in_time.is_ok();
        tokio::time::sleep_until(thawing).await;
        let before = records.written().await;
        rig.nodes[holder].thaw().expect("thawed");
        // Nothing happens, so nothing can be waited for.
        tokio::time::sleep(OBSERVED).await;
        let after = records.written().await;
        quiet += usize::from(is_quiet);
        for (what, is_same) in [
            ("inbox", before.inbox == after.inbox),
            ("outbox", before.outbox == after.outbox),
            ("cursors", before.cursors == after.cursors),
            ("claims", before.claims == after.claims),
        ] {
            if is_quiet && !is_same {
                stale += 1;
                eprintln!("the {what} changed after the holder woke");
            }
        }
        say_all(&rig, &mut tally, round, 7..=8, "");
        let open = answered(&rig, &tally, round).await;
        assert!(open.is_empty(), "{open:?}");
    }
    let report = tally.count(&rig.fakes);
    let duplicates = records.duplicate_runs().await;
    eprintln!(
        "{rounds} freezes of {frozen:?}, {quiet} observed without other writes: {stale} stale writes, {duplicates} duplicate runs\n{report}"
    );
    report.assert_exact();
    assert!(quiet > 0, "messages were open at every thaw");
    assert_eq!((stale, duplicates), (0, 0));
}

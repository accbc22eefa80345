//! Death of a node that serves bots: another node answers what the bots received and what arrives
//! meanwhile.

use super::ask::{answered, say_all};
use super::rig::ChannelRig;
use super::tally::Tally;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs two servers; tests/cluster/run.sh starts them"]
async fn death_of_a_holder_loses_no_message_of_any_platform() {
    let mut rig = ChannelRig::of_three().await;
    let records = rig.records().await;
    let mut tally = Tally::default();
    let (holder, _) = rig.busiest().await;
    say_all(&rig, &mut tally, 0, 1..=2, "[[slow 5x20ms]]");
    rig.kill(holder, &records, &mut tally).await;
    say_all(&rig, &mut tally, 0, 3..=3, "");
    answered(&rig, &tally, 0).await;
    tally.count(&rig.fakes).assert_exact();
    assert_eq!(records.duplicate_runs().await, 0);
}

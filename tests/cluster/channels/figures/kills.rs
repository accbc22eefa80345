//! Random deaths of holders while people write on all platforms.

use deerflow_tests::chat_fakes::PLATFORMS;
use deerflow_tests::seeded_random::{SeededRandom, setting};

use crate::channels::ask::{answered, say_all};
use crate::channels::rig::ChannelRig;
use crate::channels::tally::Tally;

/// Rounds after which other chats are used, so that threads remain short.
const CHAT_GROUPS: usize = 2;
/// Every so many rounds platforms swallow replies, and a second node dies.
const SWALLOWING_ROUNDS: usize = 4;
const SECOND_DEATH_ROUNDS: usize = 5;
/// Replies that a platform swallows in such a round.
const SWALLOWED: usize = 2;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes an hour and needs two servers; make cluster-channels runs it"]
async fn random_deaths_of_holders_lose_and_repeat_nothing() {
    let rounds = usize::try_from(setting("CHANNEL_KILL_ROUNDS", 100)).expect("rounds");
    let chats = u32::try_from(setting("CHANNEL_CHATS", 30)).expect("chats");
    let mut random = SeededRandom::of(setting("SEED", 1));
    let mut rig = ChannelRig::of_three().await;
    let records = rig.records().await;
    let mut tally = Tally::default();
    let mut kills = 0;
    for round in 0..rounds {
        if round % SWALLOWING_ROUNDS == 1 {
            for platform in PLATFORMS {
                rig.fakes.lose_replies(platform, SWALLOWED);
            }
        }
        let first = u32::try_from(round % CHAT_GROUPS).expect("few") * chats + 1;
        let middle = first + chats / 2;
        let holder = rig.holder(PLATFORMS[round % PLATFORMS.len()]).await;
        say_all(
            &rig,
            &mut tally,
            round,
            first..=middle - 1,
            "[[slow 5x20ms]]",
        );
        tokio::time::sleep(random.millis(0, 3_000)).await;
        rig.kill(holder, &records, &mut tally).await;
        kills += 1;
        say_all(
            &rig,
            &mut tally,
            round,
            middle..=first + chats - 1,
            "[[slow 5x20ms]]",
        );
        rig.nodes[holder].restart().await.expect("healthy again");
        if round % SECOND_DEATH_ROUNDS == 3 {
            let second = rig.holder(PLATFORMS[random.below(PLATFORMS.len())]).await;
            rig.kill(second, &records, &mut tally).await;
            kills += 1;
            rig.nodes[second].restart().await.expect("healthy again");
        }
        let open = answered(&rig, &tally, round).await;
        for asked in open {
            eprintln!("not answered in time: {}", asked.answer());
        }
        for platform in PLATFORMS {
            if round % SWALLOWING_ROUNDS == 1 {
                let swallowed = SWALLOWED - rig.fakes.replies_to_lose(platform);
                tally.swallowed(platform, swallowed);
            }
        }
        for asked in tally.repeated(&rig.fakes, round) {
            rig.show_calls(&asked);
        }
        rig.fakes.forget();
        if round % 10 == 9 {
            eprintln!("{kills} kills\n{}", tally.count(&rig.fakes));
        }
    }
    let duplicates = records.duplicate_runs().await;
    let report = tally.count(&rig.fakes);
    eprintln!("{kills} kills of three nodes, {duplicates} duplicate runs\n{report}");
    report.assert_exact();
    assert_eq!(duplicates, 0);
}

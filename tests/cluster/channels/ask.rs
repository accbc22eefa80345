//! Messages of persons on all platforms, and their answers.

use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

use deerflow_tests::chat_fakes::PLATFORMS;

use super::rig::{ChannelRig, LIMIT};
use super::tally::{Asked, Tally};

/// Interval of counts of the answers, which cost time of the processor.
const COUNT_INTERVAL: Duration = Duration::from_millis(200);

/// Says one message per chat on each platform. `pace` is a directive of the scripted model, such
/// as `[[slow 5x5ms]]`.
pub(super) fn say_all(
    rig: &ChannelRig,
    tally: &mut Tally,
    round: usize,
    chats: RangeInclusive<u32>,
    pace: &str,
) {
    for chat in chats {
        for platform in PLATFORMS {
            say(
                rig,
                tally,
                Asked {
                    platform,
                    chat,
                    round,
                },
                pace,
            );
        }
    }
}

/// Says one message.
pub(super) fn say(rig: &ChannelRig, tally: &mut Tally, asked: Asked, pace: &str) {
    let text = format!("{pace} then say {}", asked.answer());
    let said = rig.fakes.say(asked.platform, asked.chat, &text);
    assert!(said, "{} delivers nothing", asked.platform);
    tally.add(asked);
}

/// Waits until all messages of a round are answered. Returns those that are not after [`LIMIT`].
pub(super) async fn answered(rig: &ChannelRig, tally: &Tally, round: usize) -> Vec<Asked> {
    let started = Instant::now();
    let mut open = tally.of_round(round);
    while !open.is_empty() && started.elapsed() < LIMIT {
        // A fake of each platform would have to notify this task.
        tokio::time::sleep(COUNT_INTERVAL).await;
        open = tally.unanswered(&rig.fakes, &open);
    }
    open
}

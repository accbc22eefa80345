//! Kills of the process: nothing is lost, and nothing is answered twice.

use std::time::Duration;

use deerflow_chat_platforms::telegram::TelegramOptions;
use deerflow_tests::seeded_random::{SeededRandom, setting};

use super::rig::ChannelRig;

/// Fail points of a message, from its receipt to its delivery.
const POINTS: [&str; 9] = [
    "channel.leased",
    "channel.accepted",
    "channel.begun",
    "channel.run-created",
    "channel.decided",
    "channel.ended",
    "channel.sending",
    "channel.sent",
    "channel.delivered",
];
/// Time in which all messages of a round are answered.
const LIMIT: Duration = Duration::from_secs(120);

async fn start() -> ChannelRig {
    let options = TelegramOptions {
        rate_limits: false,
        ..TelegramOptions::default()
    };
    ChannelRig::start(options, "    max_exchanges_per_minute: 0\n").await
}

/// Says one message per chat.
fn say_all(rig: &ChannelRig, round: usize, chats: i64) {
    for chat in 1..=chats {
        let text = format!("[[slow 5x5ms]] then say {}.", name(round, chat));
        rig.telegram.say(chat, chat, &text);
    }
}

fn name(round: usize, chat: i64) -> String {
    format!("round {round} chat {chat}")
}

/// Waits until each chat has all answers, and checks that they are in order and that at most
/// `repeated` of them are repeated.
async fn check(rig: &ChannelRig, rounds: usize, chats: i64, repeated: usize) {
    let mut repetitions = 0;
    for chat in 1..=chats {
        let expected: Vec<String> = (0..rounds)
            .map(|round| format!("{}.", name(round, chat)))
            .collect();
        let complete = rig.telegram.wait_for_answers(chat, |answers| {
            let mut texts: Vec<&str> = answers
                .iter()
                .map(|answer| answer.text.as_str())
                .filter(|text| text.starts_with("round"))
                .collect();
            let count = texts.len();
            texts.dedup();
            (texts == expected).then_some(count)
        });
        let count = tokio::time::timeout(LIMIT, complete)
            .await
            .unwrap_or_else(|_| {
                let texts: Vec<String> = rig
                    .telegram
                    .answers(chat)
                    .into_iter()
                    .map(|answer| answer.text)
                    .collect();
                panic!(
                    "chat {chat} has {texts:?}, not {expected:?}\n{}",
                    rig.gateway.logs()
                )
            });
        repetitions += count - rounds;
    }
    assert!(repetitions <= repeated, "{repetitions} repeated answers");
}

/// Kills the gateway at the first pass of a point, in several rounds, and checks the answers at the end.
async fn die_at(point: &str, rounds: usize) {
    let mut rig = start().await;
    for round in 0..rounds {
        let dies_at = format!("{point}:1");
        rig.gateway.set_env("DEERFLOW_DIES_AT", Some(&dies_at));
        rig.gateway.kill9().await.expect("killed");
        say_all(&rig, round, 2);
        // The process may die before it is healthy.
        if rig.gateway.restart().await.is_ok() {
            let dead = async {
                while !rig.gateway.has_ended() {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            };
            tokio::time::timeout(LIMIT, dead).await.expect(point);
            rig.gateway.kill9().await.expect("ended");
        }
        rig.gateway.set_env("DEERFLOW_DIES_AT", None);
        rig.gateway.restart().await.expect("started");
    }
    // A message that was sent without its answer being recorded has no key on Telegram: that of the
    // point, or that of the other chat, which is sent at the same time.
    let repeated = if point == "channel.sent" {
        2 * rounds
    } else {
        rounds
    };
    check(&rig, rounds, 2, repeated).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn death_at_any_point_of_a_message_loses_and_repeats_nothing() {
    let rounds = usize::try_from(setting("CHANNEL_POINT_ROUNDS", 1)).expect("rounds");
    // Each waits most of the time for the lease of the process that died.
    let deaths = POINTS.map(|point| die_at(point, rounds));
    futures_util::future::join_all(deaths).await;
}

#[tokio::test]
async fn random_kills_lose_and_repeat_nothing() {
    let mut rig = start().await;
    let rounds = usize::try_from(setting("CHANNEL_KILL_ROUNDS", 3)).expect("rounds");
    let mut random = SeededRandom::of(setting("SEED", 1));
    let chats = 8;
    for round in 0..rounds {
        say_all(&rig, round, chats);
        tokio::time::sleep(random.millis(0, 600)).await;
        rig.gateway.kill9().await.expect("killed");
        rig.gateway.restart().await.expect("started");
    }
    check(&rig, rounds, chats, rounds * 2).await;
}

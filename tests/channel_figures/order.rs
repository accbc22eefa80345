//! Interleaved messages of many conversations: their answers have the same order.

use std::time::{Duration, Instant};

use deerflow_tests::seeded_random::SeededRandom;

use crate::arguments::Arguments;
use crate::report;
use crate::rig::{Gateway, Model, PlatformName, Platforms, Reply, Setup, asked};

/// Number of conversations.
const CONVERSATIONS: usize = 200;
/// Messages of one conversation that wait at most. The product refuses more than 100.
const MAX_WAITING: usize = 20;
/// Interval at which answers are read.
const POLL: Duration = Duration::from_millis(500);
/// Time without a new answer after which the case fails.
const STALLED: Duration = Duration::from_secs(180);

/// Conversation with the messages that were written and answered.
#[derive(Debug)]
struct Talk {
    platform: PlatformName,
    conversation: usize,
    written: Vec<u64>,
    answered: Vec<u64>,
}

pub(crate) async fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let mut platforms = Platforms::start(false).await?;
    // The fake does not know the order of cards and messages.
    platforms.cards = false;
    let model = Model::start(|_, question| Reply {
        text: format!("Answer {question}."),
        ..Reply::default()
    })
    .await?;
    let names = arguments.platforms();
    let setup = Setup {
        model: Some(model.base()),
        channel: "    max_exchanges_per_minute: 0\n".to_owned(),
        sections: "memory: {enabled: false}\n".to_owned(),
        ..Setup::default()
    };
    let gateway = Gateway::start(arguments, &platforms, &names, setup).await?;
    let mut talks: Vec<Talk> = (0..CONVERSATIONS)
        .map(|conversation| Talk {
            platform: names[conversation % names.len()],
            conversation,
            written: Vec::new(),
            answered: Vec::new(),
        })
        .collect();
    let started = Instant::now();
    exchange(&platforms, &gateway, &mut talks, arguments).await?;
    let inversions: usize = talks.iter().map(inversions).sum();
    let count: usize = talks.iter().map(|talk| talk.answered.len()).sum();
    let different = talks
        .iter()
        .filter(|talk| talk.written != talk.answered)
        .count();
    report::line(&format!(
        "{count} answers in {CONVERSATIONS} conversations of {} platforms within {:.0} s: \
         {inversions} inversions, {different} conversations with a lost or repeated answer",
        names.len(),
        started.elapsed().as_secs_f64()
    ))?;
    for talk in talks
        .iter()
        .filter(|talk| talk.written != talk.answered)
        .take(5)
    {
        let texts = platforms.texts(talk.platform, talk.conversation);
        report::line(&format!("{talk:?} shows {texts:?}"))?;
    }
    anyhow::ensure!(inversions == 0 && different == 0, "order or number differs");
    Ok(())
}

/// Writes messages in a random order of conversations and reads all answers.
async fn exchange(
    platforms: &Platforms,
    gateway: &Gateway,
    talks: &mut [Talk],
    arguments: &Arguments,
) -> anyhow::Result<()> {
    let mut random = SeededRandom::of(arguments.seed);
    let (mut written, mut last) = (0, (0, Instant::now()));
    loop {
        let mut waiting = 0;
        for talk in talks.iter_mut() {
            let texts = platforms.texts(talk.platform, talk.conversation);
            talk.answered = texts.iter().filter_map(|text| number_of(text)).collect();
            waiting += talk.written.len() - talk.answered.len().min(talk.written.len());
        }
        if waiting == 0 && written == arguments.messages {
            return Ok(());
        }
        let progress = arguments.messages - written + waiting;
        if progress != last.0 {
            last = (progress, Instant::now());
        }
        anyhow::ensure!(
            last.1.elapsed() < STALLED,
            "{waiting} messages are not answered\n{}",
            unanswered(platforms, gateway, talks)
        );
        if all_accepted(platforms, talks) {
            written += round(platforms, talks, &mut random, written, arguments.messages);
        }
        tokio::time::sleep(POLL).await;
    }
}

/// Reports whether the bot has accepted everything that was written. Slack and Feishu deliver
/// messages that are written at once in any order.
fn all_accepted(platforms: &Platforms, talks: &[Talk]) -> bool {
    let of_slack = talks
        .iter()
        .filter(|talk| talk.platform == PlatformName::Slack);
    let written: usize = of_slack.map(|talk| talk.written.len()).sum();
    platforms.slack.calls().of("ack").len() >= written
        && platforms.feishu.unacknowledged() == 0
        && platforms.dingtalk.controls().waiting() == 0
}

/// Writes at most one message in each conversation, and returns their number.
fn round(
    platforms: &Platforms,
    talks: &mut [Talk],
    random: &mut SeededRandom,
    written: usize,
    most: usize,
) -> usize {
    let mut order: Vec<usize> = (0..talks.len()).collect();
    for at in (1..order.len()).rev() {
        order.swap(at, random.below(at + 1));
    }
    let mut count = 0;
    for talk in order {
        let talk = &mut talks[talk];
        let is_full = talk.written.len() >= talk.answered.len() + MAX_WAITING;
        if written + count == most || is_full || random.happens(300) {
            continue;
        }
        let question = (written + count) as u64 + 1;
        if platforms.say(talk.platform, talk.conversation, &asked(question)) {
            talk.written.push(question);
            count += 1;
        }
    }
    count
}

fn number_of(text: &str) -> Option<u64> {
    text.trim()
        .strip_prefix("Answer ")?
        .strip_suffix('.')?
        .parse()
        .ok()
}

/// Returns the number of adjacent answers in the wrong order.
fn inversions(talk: &Talk) -> usize {
    let is_inverted = |pair: &&[u64]| pair[0] > pair[1];
    talk.answered.windows(2).filter(is_inverted).count()
}

fn unanswered(platforms: &Platforms, gateway: &Gateway, talks: &[Talk]) -> String {
    let found = talks.iter().find(|talk| talk.written != talk.answered);
    let texts = found.map(|talk| {
        let texts = platforms.texts(talk.platform, talk.conversation);
        format!("{talk:?}\n{texts:?}")
    });
    let logs = gateway.process.logs();
    let warnings: Vec<&str> = logs
        .lines()
        .filter(|line| line.contains("WARN") || line.contains("ERROR"))
        .take(20)
        .collect();
    format!("{}\n{}", texts.unwrap_or_default(), warnings.join("\n"))
}

//! Very many messages to one chat: memory, and the answers of another chat.

use std::time::{Duration, Instant};

use deerflow_tests::spread::Spread;
use tokio::time::interval;

use crate::arguments::Arguments;
use crate::report::{self, mebibytes};
use crate::rig::{Gateway, Model, PlatformName, Platforms, Reply, Setup, asked};

/// Time in which all messages are written.
const FLOOD: Duration = Duration::from_secs(10);
/// Time for which the other chat continues after the flood.
const AFTER: Duration = Duration::from_secs(10);
/// Interval between the pieces of the flood.
const STEP: Duration = Duration::from_millis(50);
/// Chat that is flooded.
const FLOODED: usize = 0;
/// Chat of another person.
const OTHER: usize = 1;
/// First question of the other chat.
const FIRST: u64 = 1_000_000;
/// Time within which each question of the other chat must be answered.
const LIMIT: Duration = Duration::from_secs(120);
/// Exchanges before the measurement.
const WARM_UP: u64 = 10;

pub(crate) async fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let names = [PlatformName::Telegram, PlatformName::Slack];
    let selected = arguments.platforms();
    for name in names.into_iter().filter(|name| selected.contains(name)) {
        of_platform(arguments, name).await?;
    }
    Ok(())
}

async fn of_platform(arguments: &Arguments, name: PlatformName) -> anyhow::Result<()> {
    let platforms = Platforms::start(false).await?;
    let model = Model::start(|_, question| Reply {
        text: format!("Answer {question} is complete now."),
        pieces: 10,
        gap: Duration::from_millis(30),
        ..Reply::default()
    })
    .await?;
    let setup = Setup {
        model: Some(model.base()),
        channel: "    max_exchanges_per_minute: 0\n".to_owned(),
        sections: "memory: {enabled: false}\n".to_owned(),
        ..Setup::default()
    };
    let gateway = Gateway::start(arguments, &platforms, &[name], setup).await?;
    let mut other = Other {
        platforms: &platforms,
        model: &model,
        name,
        next: FIRST,
        after_model: Vec::new(),
        after_message: Vec::new(),
    };
    let quiet = async {
        for _ in 0..WARM_UP {
            other.ask().await?;
        }
        anyhow::Ok(())
    };
    quiet.await?;
    let alone = Spread::of(std::mem::take(&mut other.after_model));
    other.after_message.clear();
    let before = gateway.resident()?;
    let mut most = before;
    let asking = async {
        let started = Instant::now();
        while started.elapsed() < FLOOD + AFTER {
            other.ask().await?;
        }
        anyhow::Ok(())
    };
    let flooding = flood(&platforms, name, arguments.messages);
    let sampling = async {
        let mut clock = interval(Duration::from_millis(50));
        loop {
            clock.tick().await;
            most = most.max(gateway.resident()?);
        }
        #[expect(unreachable_code, reason = "names the type of errors")]
        anyhow::Ok(())
    };
    tokio::select! {
        done = async { let (asked, ()) = tokio::join!(asking, flooding); asked } => done?,
        failed = sampling => failed?,
    }
    accepted(&platforms, &gateway, name).await?;
    most = most.max(gateway.resident()?);
    report::line(&format!(
        "{}: {} messages in {} s: {:.1} MiB before, {:.1} MiB more at most; other chat: {} answers, \
         after the model {} (without the flood {alone}), after the message {}; load average {}",
        name.key(),
        arguments.messages,
        FLOOD.as_secs(),
        mebibytes(before),
        mebibytes(most - before),
        other.after_model.len(),
        Spread::of(other.after_model.iter().copied()),
        Spread::of(other.after_message.iter().copied()),
        report::load()
    ))
}

/// The person who is not part of the flood.
#[derive(Debug)]
struct Other<'a> {
    platforms: &'a Platforms,
    model: &'a Model,
    name: PlatformName,
    next: u64,
    after_model: Vec<Duration>,
    after_message: Vec<Duration>,
}

impl Other<'_> {
    /// Asks a question and waits for its answer.
    async fn ask(&mut self) -> anyhow::Result<()> {
        let question = self.next;
        self.next += 1;
        let asked_at = Instant::now();
        self.platforms.say(self.name, OTHER, &asked(question));
        let expected = format!("Answer {question} is complete now.");
        let count = || {
            let texts = self.platforms.texts(self.name, OTHER);
            texts.iter().filter(|text| text.contains(&expected)).count()
        };
        while count() == 0 {
            anyhow::ensure!(
                asked_at.elapsed() < LIMIT,
                "question {question} has no answer"
            );
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        anyhow::ensure!(count() == 1, "question {question} has two answers");
        let ended = self.model.ended(question).unwrap_or(asked_at);
        self.after_model.push(ended.elapsed());
        self.after_message.push(asked_at.elapsed());
        Ok(())
    }
}

async fn flood(platforms: &Platforms, name: PlatformName, messages: usize) {
    let steps = (FLOOD.as_millis() / STEP.as_millis()) as usize;
    let mut clock = interval(STEP);
    for step in 0..steps {
        clock.tick().await;
        for number in messages * step / steps..messages * (step + 1) / steps {
            platforms.say(name, FLOODED, &asked(number as u64));
        }
    }
}

/// Waits until the platform has the acknowledgements of all messages.
async fn accepted(
    platforms: &Platforms,
    gateway: &Gateway,
    name: PlatformName,
) -> anyhow::Result<()> {
    let calls = platforms.calls(name);
    let is_accepted = async || match name {
        PlatformName::Telegram => platforms.telegram.unconfirmed() == 0,
        _ => {
            let acknowledged = calls
                .of("ack")
                .iter()
                .filter(|call| call.error == 0)
                .count();
            let messages = platforms.slack.messages(&name.chat(FLOODED)).len();
            acknowledged >= messages - platforms.slack.answers(&name.chat(FLOODED)).len()
        }
    };
    gateway
        .until("all messages are accepted", LIMIT, is_accepted)
        .await
}

//! Answers through a gateway and the fakes, which refuse texts over the limit.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use deerflow_channels::markup::Dialect;

use super::letters::{letters, of_markdown, visible};
use super::rendered::{abilities, is_equal};
use super::samples::{MAX_CHARACTERS, Sample, of_length, sample};
use crate::arguments::Arguments;
use crate::report;
use crate::rig::{Gateway, Model, PlatformName, Platforms, Reply, Setup, asked};

/// Every answer whose number is a multiple has the maximum length.
const LONG_EVERY: u64 = 20;
/// Answers that are in progress at the same time.
const CONCURRENT: usize = 24;
/// Time within which an answer arrives.
const LIMIT: Duration = Duration::from_secs(300);
const POLL: Duration = Duration::from_millis(500);

/// Answer that is expected in a conversation of its own.
#[derive(Debug)]
struct Expected {
    number: u64,
    platform: PlatformName,
    since: Instant,
}

/// State of an expected answer.
#[derive(Debug, PartialEq, Eq)]
enum Arrival {
    Incomplete,
    InParts,
    AsFile,
}

pub(super) async fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let platforms = Platforms::start(false).await?;
    let samples: Arc<HashMap<u64, Sample>> = Arc::new(
        (1..=arguments.delivered)
            .map(|number| (number, sample_of(number)))
            .collect(),
    );
    let of_model = samples.clone();
    let model = Model::start(move |_, question| Reply {
        text: of_model
            .get(&question)
            .map(|sample| sample.markdown.clone())
            .unwrap_or_default(),
        pieces: 20,
        gap: Duration::from_millis(100),
        ..Reply::default()
    })
    .await?;
    let setup = Setup {
        model: Some(model.base()),
        sections: "memory: {enabled: false}\n".to_owned(),
        ..Setup::default()
    };
    let names = arguments.platforms();
    let gateway = Gateway::start(arguments, &platforms, &names, setup).await?;
    let dialects: HashMap<&str, Dialect> = abilities()?
        .into_iter()
        .map(|(name, abilities)| (name, abilities.dialect))
        .collect();
    let started = Instant::now();
    let (mut next, mut open) = (1, Vec::<Expected>::new());
    let (mut in_parts, mut files, mut incomplete) = (0, 0, Vec::new());
    while next <= arguments.delivered || !open.is_empty() {
        while next <= arguments.delivered && open.len() < CONCURRENT {
            let platform = names[next as usize % names.len()];
            if platforms.say(platform, next as usize, &asked(next)) {
                open.push(Expected {
                    number: next,
                    platform,
                    since: Instant::now(),
                });
                next += 1;
            }
        }
        let mut waiting = Vec::new();
        for expected in open {
            let sample = &samples[&expected.number];
            let dialect = dialects[expected.platform.key()];
            match arrival(&platforms, &expected, sample, dialect).await? {
                Arrival::InParts => in_parts += 1,
                Arrival::AsFile => files += 1,
                Arrival::Incomplete if expected.since.elapsed() < LIMIT => waiting.push(expected),
                Arrival::Incomplete => incomplete.push((expected.platform, expected.number)),
            }
        }
        open = waiting;
        tokio::time::sleep(POLL).await;
    }
    report::line(&format!(
        "{} answers through a gateway within {:.0} s: {in_parts} in parts, {files} as a file, {} \
         incomplete {incomplete:?}; refused calls: {:?}",
        arguments.delivered,
        started.elapsed().as_secs_f64(),
        incomplete.len(),
        refused(&platforms, &names)
    ))?;
    drop(gateway);
    anyhow::ensure!(incomplete.is_empty(), "answers are incomplete");
    Ok(())
}

fn sample_of(number: u64) -> Sample {
    if number.is_multiple_of(LONG_EVERY) {
        of_length(number, MAX_CHARACTERS)
    } else {
        sample(number)
    }
}

async fn arrival(
    platforms: &Platforms,
    expected: &Expected,
    sample: &Sample,
    dialect: Dialect,
) -> anyhow::Result<Arrival> {
    let conversation = expected.number as usize;
    let files = platforms.files(expected.platform, conversation).await?;
    if files.iter().any(|file| file == sample.markdown.as_bytes()) {
        return Ok(Arrival::AsFile);
    }
    let texts = platforms.texts(expected.platform, conversation);
    if texts.is_empty() {
        return Ok(Arrival::Incomplete);
    }
    // Telegram's texts have no tags any more, because the fake has parsed them.
    let dialect_shown = match dialect {
        Dialect::TelegramHtml => Dialect::Plain,
        other => other,
    };
    let shown: String = texts
        .iter()
        .map(|text| visible(text, dialect_shown) + "\n")
        .collect();
    let wanted = of_markdown(&sample.markdown, dialect);
    Ok(if is_equal(&wanted, &letters(&shown), sample) {
        Arrival::InParts
    } else {
        Arrival::Incomplete
    })
}

/// Returns the calls that platforms refused, with their numbers.
fn refused(platforms: &Platforms, names: &[PlatformName]) -> Vec<(String, usize)> {
    let mut refused: HashMap<String, usize> = HashMap::new();
    for name in names {
        for call in platforms.calls(*name).all() {
            if call.error != 0 {
                let what = format!("{} {} {}", name.key(), call.method, call.error);
                *refused.entry(what).or_default() += 1;
            }
        }
    }
    refused.into_iter().collect()
}

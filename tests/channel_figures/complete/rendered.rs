//! Rendering and splitting for each platform.

use std::sync::Arc;
use std::time::Instant;

use deerflow_channels::markup::{counted_length, parts};
use deerflow_channels::platform::{Abilities, PlatformContext, Settings};
use harness::clock::SystemClock;
use serde_json::json;

use super::letters::{is_within, letters, of_markdown, visible};
use super::samples::{Sample, sample};
use crate::arguments::Arguments;
use crate::report;

/// Number of parts beyond which an answer is sent as a file.
const MAX_PARTS: usize = 40;
/// Letters before and after a difference that are shown.
const CONTEXT: usize = 40;

/// Counts of one platform.
#[derive(Debug, Default)]
struct Counts {
    parts: usize,
    files: usize,
    incomplete: Vec<u64>,
    /// First difference of the first incomplete answer.
    difference: String,
    too_long: Vec<u64>,
}

/// Returns the abilities of all platforms.
pub(super) fn abilities() -> anyhow::Result<Vec<(&'static str, Abilities)>> {
    let context = PlatformContext {
        http: reqwest::Client::builder().no_proxy().build()?,
        clock: Arc::new(SystemClock),
    };
    deerflow_channels::platforms()
        .iter()
        .map(|factory| {
            let fields = factory.fields().iter();
            let values = fields
                .map(|field| (field.name.to_owned(), json!("1:x")))
                .collect();
            let platform = factory.build(&Settings(values), &context)?;
            Ok((factory.provider(), platform.abilities().clone()))
        })
        .collect()
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let platforms = abilities()?;
    let started = Instant::now();
    let mut counts: Vec<Counts> = platforms.iter().map(|_| Counts::default()).collect();
    let mut characters = 0;
    for seed in 0..arguments.answers {
        let sample = sample(seed);
        characters += sample.markdown.chars().count();
        for ((_, abilities), counts) in platforms.iter().zip(&mut counts) {
            check(seed, &sample, abilities, counts);
        }
    }
    report::line(&format!(
        "{} answers, {characters} characters, rendered for six platforms within {:.0} s",
        arguments.answers,
        started.elapsed().as_secs_f64()
    ))?;
    let mut wrong = 0;
    for ((name, _), counts) in platforms.iter().zip(&counts) {
        wrong += counts.incomplete.len() + counts.too_long.len();
        report::line(&format!(
            "{name}: {} parts and {} files; {} answers incomplete {:?}, {} with a part over the \
             limit {:?}",
            counts.parts,
            counts.files,
            counts.incomplete.len(),
            first(&counts.incomplete),
            counts.too_long.len(),
            first(&counts.too_long)
        ))?;
        if !counts.difference.is_empty() {
            report::line(&counts.difference)?;
        }
    }
    anyhow::ensure!(wrong == 0, "{wrong} answers are wrong");
    Ok(())
}

/// Returns the first seeds.
fn first(seeds: &[u64]) -> &[u64] {
    &seeds[..seeds.len().min(3)]
}

fn check(seed: u64, sample: &Sample, abilities: &Abilities, counts: &mut Counts) {
    let (dialect, limit) = (abilities.dialect, abilities.text);
    let parts = parts(&sample.markdown, dialect, limit);
    let is_too_long = |part: &deerflow_channels::markup::Part| {
        counted_length(&part.markup, dialect, limit.unit) > limit.max
            || limit.unit.length(&part.plain) > limit.max
    };
    if parts.iter().any(is_too_long) {
        counts.too_long.push(seed);
    }
    let wanted = of_markdown(&sample.markdown, dialect);
    let markup: String = parts
        .iter()
        .map(|part| visible(&part.markup, dialect) + "\n")
        .collect();
    let plain: String = parts.iter().map(|part| part.plain.clone() + "\n").collect();
    for text in [markup, plain] {
        let found = letters(&text);
        if !is_equal(&wanted, &found, sample) {
            if counts.incomplete.is_empty() {
                counts.difference = first_difference(&wanted, &found);
            }
            counts.incomplete.push(seed);
            break;
        }
    }
    if parts.len() > MAX_PARTS {
        counts.files += 1;
    } else {
        counts.parts += parts.len();
    }
}

/// Describes the first letter of an answer that a text does not have.
fn first_difference(wanted: &[char], found: &[char]) -> String {
    let mut rest = found.iter();
    let is_missing = |wanted: &char| !rest.any(|found| found == wanted);
    let at = wanted.iter().position(is_missing).unwrap_or_else(|| {
        let equal = wanted.iter().zip(found).take_while(|(a, b)| a == b);
        equal.count()
    });
    let around = |letters: &[char]| -> String {
        let from = at.saturating_sub(CONTEXT).min(letters.len());
        letters[from..].iter().take(2 * CONTEXT).collect()
    };
    format!(
        "letter {at} of {}: {:?} instead of {:?}",
        wanted.len(),
        around(found),
        around(wanted)
    )
}

/// Returns whether a text has the letters of an answer. The head of a table is repeated where its
/// rows continue in another part.
pub(super) fn is_equal(wanted: &[char], text: &[char], sample: &Sample) -> bool {
    if sample.has_tables {
        is_within(wanted, text)
    } else {
        wanted == text
    }
}

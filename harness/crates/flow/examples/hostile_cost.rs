//! Measures the validation of hostile documents: prints the slowest ones, and fails if one takes
//! more than 100 ms of processor time.
//!
//! `cargo run --release -p deerflow-flow --features testkit --example hostile_cost`

#![expect(
    clippy::print_stdout,
    reason = "the output of an example is what it measured"
)]

use std::process::ExitCode;
use std::time::Duration;

use deerflow_flow::assets::PromptAssetManifest;
use deerflow_flow::binding::AdapterList;
use deerflow_flow::testkit::hostile_documents;
use deerflow_flow::validate::{Options, validate_text};

const LIMIT: Duration = Duration::from_millis(100);

/// Returns the processor time of this process.
fn used() -> Duration {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let nanoseconds = text.split(' ').next().and_then(|first| first.parse().ok());
    Duration::from_nanos(nanoseconds.unwrap_or_default())
}

fn main() -> ExitCode {
    let (manifest, adapters) = (PromptAssetManifest::default(), AdapterList::new(["fake"]));
    let documents = hostile_documents();
    let mut times: Vec<(Duration, &str)> = documents
        .iter()
        .filter_map(|document| {
            let text = std::str::from_utf8(&document.bytes).ok()?;
            let begin = used();
            let validation = validate_text(text, &manifest, &adapters, &Options::default());
            std::hint::black_box(validation);
            Some((used().saturating_sub(begin), &*document.name))
        })
        .collect();
    times.sort();
    println!("{} documents, the slowest:", documents.len());
    for (time, name) in times.iter().rev().take(10) {
        println!("{time:>12.2?}  {name}");
    }
    let is_fast = times.last().is_none_or(|(time, _)| *time < LIMIT);
    if is_fast {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

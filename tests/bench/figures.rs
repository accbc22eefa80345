//! Aggregates samples into the numbers of the report.

use std::time::Duration;

use deerflow_tests::{spread::Spread, usage::Usage};

use super::{load::Outcome, meter::Measured, threads::ThreadFigures};

/// Results of one server under one load.
#[derive(Debug, Clone, Default)]
pub(super) struct Figures {
    pub(super) runs: usize,
    pub(super) failed: usize,
    pub(super) fault: Option<String>,
    pub(super) took: Duration,
    pub(super) runs_per_second: f64,
    pub(super) events_per_second: f64,
    pub(super) first_token: Spread,
    pub(super) end: Spread,
    /// Consumption of the server by all runs.
    pub(super) usage: Usage,
    /// Cost of the threads, which were made before.
    pub(super) threads: Option<ThreadFigures>,
    /// Bytes that a client received per run.
    pub(super) bytes_per_run: u64,
    /// CPU time of the server per run.
    pub(super) cpu_per_run: Duration,
    /// Highest resident memory seen, in bytes.
    pub(super) resident: u64,
}

impl Figures {
    pub(super) fn of(outcome: &Outcome, measured: Measured) -> Self {
        let samples = &outcome.samples;
        let runs = samples.len();
        let bytes: u64 = samples.iter().map(|sample| sample.bytes).sum();
        let frames: u64 = samples.iter().map(|sample| sample.frames).sum();
        let per_second = |count: f64| {
            if outcome.took.is_zero() {
                0.0
            } else {
                count / outcome.took.as_secs_f64()
            }
        };
        Self {
            runs,
            failed: outcome.failed,
            fault: outcome.fault.clone(),
            took: outcome.took,
            runs_per_second: per_second(runs as f64),
            events_per_second: per_second(frames as f64),
            first_token: Spread::of(samples.iter().map(|sample| sample.first_token)),
            end: Spread::of(samples.iter().map(|sample| sample.end)),
            usage: measured.usage,
            threads: None,
            bytes_per_run: bytes / runs.max(1) as u64,
            cpu_per_run: measured.usage.cpu / u32::try_from(runs.max(1)).unwrap_or(u32::MAX),
            resident: measured.resident,
        }
    }
}

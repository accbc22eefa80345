//! Aggregates samples into the numbers of the report.

use std::time::Duration;

use super::load::Outcome;

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
    /// CPU time of the server per run.
    pub(super) cpu_per_run: Duration,
    /// Highest resident memory seen, in bytes.
    pub(super) resident: u64,
}

/// Median and 99th percentile.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Spread {
    pub(super) p50: Duration,
    pub(super) p99: Duration,
}

impl Figures {
    pub(super) fn of(outcome: &Outcome, cpu: Duration, resident: u64) -> Self {
        let samples = &outcome.samples;
        let runs = samples.len();
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
            cpu_per_run: cpu / u32::try_from(runs.max(1)).unwrap_or(u32::MAX),
            resident,
        }
    }
}

impl Spread {
    fn of(times: impl Iterator<Item = Duration>) -> Self {
        let mut times: Vec<Duration> = times.collect();
        times.sort_unstable();
        Self {
            p50: percentile(&times, 50),
            p99: percentile(&times, 99),
        }
    }
}

/// The nearest rank in sorted times; zero when there are none.
pub(super) fn percentile(sorted: &[Duration], percent: usize) -> Duration {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_take_the_nearest_rank() {
        let times: Vec<Duration> = (1..=200).map(Duration::from_millis).collect();
        assert_eq!(percentile(&times, 50), Duration::from_millis(100));
        assert_eq!(percentile(&times, 99), Duration::from_millis(198));
        assert_eq!(percentile(&times[..1], 99), Duration::from_millis(1));
        assert_eq!(percentile(&[], 50), Duration::ZERO);
    }
}

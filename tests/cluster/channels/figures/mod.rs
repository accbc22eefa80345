//! Figures of chat channels, which take minutes: `make cluster-channels` runs them.

mod clocks;
mod freezes;
mod kills;
mod points;
mod takeovers;

use std::time::Duration;

/// Formats the median, the 99th percentile and the maximum of some times.
fn percentiles(times: &[Duration]) -> String {
    let mut times = times.to_vec();
    times.sort();
    let at = |percent: usize| times[(times.len() * percent).div_ceil(100).max(1) - 1];
    format!(
        "{} times, p50 {:.1?}, p99 {:.1?}, longest {:.1?}",
        times.len(),
        at(50),
        at(99),
        at(100)
    )
}

//! Statistics of measured times, and the limits that they are compared with.

use std::time::Duration;

use deerflow_tests::seeded_random::setting;

use super::TIMEOUT;

/// Number of `ROUNDS` from which times are asserted, as with `make chaos`.
const ROUNDS_OF_FIGURES: u64 = 10;

/// Reports whether there are enough rounds to assert times. With fewer rounds one stall of the
/// machine would decide.
pub(crate) fn measures_times() -> bool {
    setting("ROUNDS", 0) >= ROUNDS_OF_FIGURES
}

/// Returns the limit of a time: `figure` if times are asserted, else [`TIMEOUT`].
pub(crate) fn limit(figure: Duration) -> Duration {
    if measures_times() { figure } else { TIMEOUT }
}

/// Returns the 99th percentile.
pub(crate) fn p99(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[(times.len() * 99).div_ceil(100) - 1]
}

/// Formats the median and the maximum of some times.
pub(crate) fn spread(mut times: Vec<Duration>) -> String {
    times.sort();
    match times.last() {
        Some(longest) => format!(
            "{} times, median {:.1?}, longest {longest:.1?}",
            times.len(),
            times[times.len() / 2]
        ),
        None => "none".to_owned(),
    }
}

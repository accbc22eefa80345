//! Percentiles of measured times.

use std::fmt;
use std::time::Duration;

/// Median, 99th percentile and maximum.
#[derive(Debug, Clone, Copy, Default)]
pub struct Spread {
    /// Median.
    pub p50: Duration,
    /// 99th percentile.
    pub p99: Duration,
    /// Maximum.
    pub max: Duration,
}

impl Spread {
    /// Computes the percentiles of times in any order; zero without times.
    pub fn of(times: impl IntoIterator<Item = Duration>) -> Self {
        let mut times: Vec<Duration> = times.into_iter().collect();
        times.sort_unstable();
        Self {
            p50: percentile(&times, 50),
            p99: percentile(&times, 99),
            max: times.last().copied().unwrap_or_default(),
        }
    }
}

impl fmt::Display for Spread {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = |time: Duration| time.as_secs_f64() * 1_000.0;
        let (p50, p99, max) = (millis(self.p50), millis(self.p99), millis(self.max));
        write!(
            formatter,
            "p50 {p50:.1} ms, p99 {p99:.1} ms, max {max:.1} ms"
        )
    }
}

/// Returns the nearest rank in sorted times; zero if there are none.
#[must_use]
pub fn percentile(sorted: &[Duration], percent: usize) -> Duration {
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
        assert_eq!(Spread::of(times).max, Duration::from_millis(200));
    }
}

//! Table of ceilings, and the comparison with measured costs.
//!
//! Each figure is the lowest of several batches of runs, because other load on the machine mostly
//! adds to it. A ceiling is the value that was measured plus an allowance:
//!
//! - allocations are steady within 2 %, for all kinds of runs;
//! - voluntary switches are steady within 8 % with one client and one worker thread. They are a fifth
//!   higher on an idle machine, where threads wait more often, so the value is that of an idle one.
//!   With more workers their number depends on which of them are idle. Runs with tools have no
//!   ceiling: they vary by 20 %;
//! - written bytes and jobs of the writer are steady within 6 % on a new thread. A run that lasts
//!   longer than 25 ms commits once more, and every 1,000 pages SQLite copies its log, so longer runs
//!   have no ceiling of bytes or jobs;
//! - CPU time as a multiple of a fixed computation on the same machine varies by 30 %, so its
//!   allowance is wider and only a large regression is caught.
//!
//! Memory is enabled, as it is by default: each run reads the user's memory, and its last write
//! registers an update of it.
//!
//! Times by the clock and bytes on the disk have no ceiling: they depend on the machine. SQL
//! statements are not counted by the server. After a change that lowers a cost, run the test with
//! `--nocapture` and enter the new values.

use std::fmt;

use crate::scenarios::{Costs, Scenario};

/// Cost that has a ceiling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Figure {
    /// CPU time of a run as a multiple of the calibration.
    Cpu,
    Switches,
    /// Bytes of write calls.
    Written,
    Allocations,
    /// Jobs of SQLite's writer.
    Writes,
}

/// Ceiling of one cost per run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ceiling {
    pub(crate) scenario: Scenario,
    pub(crate) figure: Figure,
    /// Value of a debug build.
    pub(crate) measured: f64,
}

/// All ceilings.
pub(crate) const CEILINGS: [Ceiling; 10] = [
    of(Scenario::NewThread, Figure::Allocations, 1_380.0),
    of(Scenario::NewThread, Figure::Switches, 5.5),
    of(Scenario::NewThread, Figure::Written, 220_000.0),
    of(Scenario::NewThread, Figure::Writes, 2.0),
    of(Scenario::NewThread, Figure::Cpu, 0.30),
    of(Scenario::LongThread, Figure::Allocations, 2_430.0),
    of(Scenario::LongThread, Figure::Switches, 7.5),
    of(Scenario::LongThread, Figure::Cpu, 0.47),
    of(Scenario::Tools, Figure::Allocations, 4_250.0),
    of(Scenario::Tools, Figure::Cpu, 0.78),
];

const fn of(scenario: Scenario, figure: Figure, measured: f64) -> Ceiling {
    Ceiling {
        scenario,
        figure,
        measured,
    }
}

impl Figure {
    /// Returns this cost.
    pub(crate) fn of(self, costs: &Costs) -> f64 {
        match self {
            Self::Cpu => costs.cpu,
            Self::Switches => costs.switches,
            Self::Written => costs.written,
            Self::Allocations => costs.allocations,
            Self::Writes => costs.writes,
        }
    }

    /// Returns the ceiling as a multiple of the measured value.
    fn allowance(self) -> f64 {
        match self {
            Self::Cpu => 1.6,
            Self::Switches | Self::Written | Self::Allocations | Self::Writes => 1.15,
        }
    }
}

impl fmt::Display for Ceiling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} of {:?}", self.figure, self.scenario)
    }
}

/// Returns a message if the lowest cost of these batches is above the ceiling.
pub(crate) fn exceeded(ceiling: &Ceiling, batches: &[Costs]) -> Option<String> {
    let costs = batches.iter().map(|batch| ceiling.figure.of(batch));
    let cost = costs.fold(f64::INFINITY, f64::min);
    let limit = ceiling.measured * ceiling.figure.allowance();
    (cost > limit).then(|| format!("{ceiling}: {cost:.2} per run, at most {limit:.2}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns batches in which the cost of a ceiling is `factor` times the measured value, and
    /// other load adds to all but one.
    fn batches(ceiling: &Ceiling, factor: f64) -> Vec<Costs> {
        let batch = |load: f64| {
            let cost = ceiling.measured * factor * load;
            Costs {
                cpu: cost,
                switches: cost,
                written: cost,
                allocations: cost,
                writes: cost,
            }
        };
        [1.4, 1.0, 1.1].map(batch).to_vec()
    }

    #[test]
    fn regression_of_a_fifth_is_caught() {
        for ceiling in &CEILINGS {
            let caught = |factor| exceeded(ceiling, &batches(ceiling, factor)).is_some();
            assert!(!caught(1.0) && !caught(1.1), "{ceiling}");
            assert_eq!(caught(1.2), ceiling.figure != Figure::Cpu, "{ceiling}");
            assert!(caught(1.7), "{ceiling}");
        }
    }

    #[test]
    fn every_scenario_has_a_ceiling_of_allocations() {
        for scenario in Scenario::ALL {
            let mut rows = CEILINGS.iter().filter(|row| row.scenario == scenario);
            assert!(
                rows.any(|row| row.figure == Figure::Allocations),
                "{scenario:?}"
            );
        }
    }
}

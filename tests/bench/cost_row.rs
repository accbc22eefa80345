//! One line of the table of costs: what a server consumed per run.

use std::{fmt, time::Duration};

use deerflow_tests::usage::Usage;

use super::{
    figures::Figures,
    text::{count, megabytes, time},
    threads::ThreadFigures,
};

/// Cost of one kind of request.
#[derive(Debug, Clone)]
pub(super) struct CostRow {
    pub(super) scenario: String,
    /// Number of runs, or of threads that were made.
    number: usize,
    failed: usize,
    fault: Option<String>,
    per_second: f64,
    end: Duration,
    usage: Usage,
    resident: Option<u64>,
    /// Bytes that a client received per run.
    received: Option<u64>,
}

impl CostRow {
    /// Returns the row of the runs of a load.
    pub(super) fn of(scenario: &str, figures: &Figures) -> Self {
        Self {
            scenario: scenario.to_owned(),
            number: figures.runs,
            failed: figures.failed,
            fault: figures.fault.clone(),
            per_second: figures.runs_per_second,
            end: figures.end.p50,
            usage: figures.usage,
            resident: Some(figures.resident),
            received: Some(figures.bytes_per_run),
        }
    }

    /// Returns the row of the runs of a load, and that of the threads which were made for them.
    pub(super) fn with_threads(scenario: &str, figures: &Figures) -> Vec<Self> {
        let threads = figures
            .threads
            .map(|threads| Self::of_threads(scenario, threads));
        [Self::of(scenario, figures)]
            .into_iter()
            .chain(threads)
            .collect()
    }

    fn of_threads(scenario: &str, figures: ThreadFigures) -> Self {
        Self {
            scenario: format!("{scenario}: POST /threads"),
            number: figures.threads,
            failed: 0,
            fault: None,
            per_second: 0.0,
            end: figures.time.p50,
            usage: figures.usage,
            resident: None,
            received: None,
        }
    }

    /// Returns the CPU time per run in milliseconds.
    pub(super) fn cpu_ms(&self) -> f64 {
        self.usage.cpu.as_secs_f64() * 1e3 / self.number.max(1) as f64
    }

    /// Returns the number of failed runs and the first error.
    pub(super) fn failures(&self) -> (usize, Option<&str>) {
        (self.failed, self.fault.as_deref())
    }

    fn per_run(&self, sum: u64) -> f64 {
        sum as f64 / self.number.max(1) as f64
    }
}

/// Head of the table whose lines are rows.
pub(super) const HEAD: &str = "| scenario | runs | runs/s | end p50 | CPU ms per run | voluntary switches per run | KB written per run | KB to disk per run | allocations per run | writer jobs per run | KB received per run | resident at most |
|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|";

impl fmt::Display for CostRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let usage = &self.usage;
        let none = || "-".to_owned();
        let optional = |sum: Option<u64>, digits: usize| {
            sum.map_or_else(none, |sum| format!("{:.digits$}", self.per_run(sum)))
        };
        let per_second = Some(self.per_second).filter(|rate| *rate > 0.0);
        let cells = [
            self.scenario.clone(),
            self.number.to_string(),
            per_second.map_or_else(none, count),
            time(self.end),
            format!("{:.3}", self.cpu_ms()),
            format!("{:.1}", self.per_run(usage.switches)),
            format!("{:.1}", self.per_run(usage.written) / 1e3),
            format!("{:.1}", self.per_run(usage.to_disk) / 1e3),
            optional(usage.allocations, 0),
            optional(usage.writes, 2),
            self.received
                .map_or_else(none, |bytes| format!("{:.1}", bytes as f64 / 1e3)),
            self.resident.map_or_else(none, megabytes),
        ];
        writeln!(f, "| {} |", cells.join(" | "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_state_costs_per_run() {
        let figures = Figures {
            runs: 4,
            usage: Usage {
                cpu: Duration::from_millis(6),
                switches: 10,
                written: 40_000,
                to_disk: 0,
                allocations: Some(4_000),
                writes: None,
            },
            ..Figures::default()
        };
        let row = CostRow::of("some runs", &figures).to_string();
        assert_eq!(
            row,
            "| some runs | 4 | - | 0.0 µs | 1.500 | 2.5 | 10.0 | 0.0 | 1000 | - | 0.0 | 0.0 MB |\n"
        );
    }
}

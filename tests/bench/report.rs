//! The report in Markdown: absolute values, and values relative to the relay and the disk.

use std::{
    fmt,
    io::{self, Write as _},
    path::PathBuf,
    time::Duration,
};

use deerflow_tests::spread::Spread;

use super::{
    cost_row::{self, CostRow},
    costs::Costs,
    figures::Figures,
    flows::{FlowFigures, StepFigures},
    load::Load,
    protocol::ProtocolFigures,
    sign_in::SignInFigures,
    subject::StartFigures,
    text::{count, megabytes, ratio, time},
    viewers::ViewerFigures,
};

/// All measurements.
#[derive(Debug, Default)]
pub(super) struct Report {
    pub(super) steps: Option<StepFigures>,
    pub(super) storages: Vec<StorageReport>,
}

/// Measurements with the data in one folder.
#[derive(Debug)]
pub(super) struct StorageReport {
    pub(super) name: &'static str,
    pub(super) folder: PathBuf,
    /// Median of a 4 KiB append and fdatasync.
    pub(super) fdatasync: Duration,
    pub(super) start: Option<StartFigures>,
    pub(super) viewers: Option<ViewerFigures>,
    pub(super) flows: Option<FlowFigures>,
    pub(super) sign_in: Option<SignInFigures>,
    pub(super) protocol: Option<ProtocolFigures>,
    pub(super) comparisons: Vec<Comparison>,
    pub(super) costs: Costs,
}

/// One load on the gateway, if there is one, and on the relay.
#[derive(Debug)]
pub(super) struct Comparison {
    pub(super) load: Load,
    pub(super) gateway: Option<Figures>,
    pub(super) relay: Figures,
}

impl Report {
    /// Returns the CPU time per run in milliseconds of each row, for a chart.
    pub(super) fn bars(&self) -> Vec<(String, f64)> {
        let bar = |name: &str, row: &CostRow| (format!("{}, {name}", row.scenario), row.cpu_ms());
        let rows = |storage: &StorageReport| -> Vec<_> {
            let rows = storage.rows();
            rows.iter().map(|row| bar(storage.name, row)).collect()
        };
        self.storages.iter().flat_map(rows).collect()
    }

    pub(super) fn print(&self) -> io::Result<()> {
        io::stdout().write_all(self.to_string().as_bytes())
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        writeln!(f, "# Gateway benchmark\n")?;
        writeln!(
            f,
            "{processors} processors, shared by load generator, provider, relay and gateway; all on 127.0.0.1."
        )?;
        writeln!(
            f,
            "Times count from the request that streams the run. Threads are made before, so no figure of runs contains POST /threads."
        )?;
        if let Some(steps) = &self.steps {
            write!(f, "{steps}")?;
        }
        self.storages
            .iter()
            .try_for_each(|storage| storage.write(f))
    }
}

impl StorageReport {
    pub(super) fn failed_runs(&self) -> usize {
        let failed = |both: &Comparison| {
            both.relay.failed + both.gateway.as_ref().map_or(0, |gateway| gateway.failed)
        };
        let flows = self.flows.as_ref().map_or(0, FlowFigures::failed_runs);
        let costs = self.costs.rows.iter().map(|row| row.failures().0);
        self.comparisons.iter().map(failed).sum::<usize>() + flows + costs.sum::<usize>()
    }

    /// Returns the costs of all loads on the gateway and of all scenarios.
    pub(super) fn rows(&self) -> Vec<CostRow> {
        let mut rows = Vec::new();
        for both in &self.comparisons {
            let load = both.load.to_string();
            if let Some(gateway) = &both.gateway {
                rows.extend(CostRow::with_threads(&load, gateway));
            }
            rows.push(CostRow::of(&format!("{load}: relay"), &both.relay));
        }
        rows.extend(self.costs.rows.iter().cloned());
        rows
    }

    /// Writes what a server consumed per run.
    fn write_costs(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows = self.rows();
        if rows.is_empty() {
            return Ok(());
        }
        writeln!(f, "\n{}", cost_row::HEAD)?;
        rows.iter().try_for_each(|row| write!(f, "{row}"))?;
        writeln!(f)?;
        for note in &self.costs.notes {
            writeln!(f, "- {note}")?;
        }
        for row in &self.costs.rows {
            if let (failed, Some(fault)) = row.failures() {
                writeln!(f, "\n**{failed} runs failed** ({}): {fault}", row.scenario)?;
            }
        }
        Ok(())
    }

    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "\n## Data on {} ({})\n",
            self.name,
            self.folder.display()
        )?;
        writeln!(
            f,
            "- 4 KiB append and fdatasync, p50: {}",
            time(self.fdatasync)
        )?;
        if let Some(start) = self.start {
            writeln!(f, "- start to ready, fresh database: {}", time(start.fresh))?;
            writeln!(
                f,
                "- start to ready, existing database: {}",
                time(start.existing)
            )?;
            writeln!(f, "- resident when ready: {}", megabytes(start.idle))?;
            writeln!(f, "- size of the binary: {}", megabytes(start.binary))?;
        }
        if let Some(viewers) = &self.viewers {
            write!(f, "{viewers}")?;
        }
        if let Some(flows) = &self.flows {
            write!(f, "{flows}")?;
        }
        if let Some(sign_in) = &self.sign_in {
            write!(f, "{sign_in}")?;
        }
        if let Some(protocol) = &self.protocol {
            write!(f, "{protocol}")?;
        }
        self.write_comparisons(f)?;
        self.write_costs(f)
    }

    fn write_comparisons(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.comparisons.is_empty() {
            return Ok(());
        }
        writeln!(
            f,
            "\n| load | server | runs/s | first token p50 | p99 | end p50 | p99 | events/s | all ended after | CPU per run | resident at most |"
        )?;
        writeln!(f, "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|")?;
        self.comparisons.iter().try_for_each(|both| both.write(f))?;
        self.write_floors(f)?;
        self.comparisons
            .iter()
            .try_for_each(|both| both.write_faults(f))
    }

    /// Writes runs per second next to the limits of relay and disk.
    fn write_floors(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "\n| load | disk allows runs/s | relay runs/s | gateway runs/s | of the lower |"
        )?;
        writeln!(f, "|---|--:|--:|--:|--:|")?;
        for Comparison {
            load,
            gateway,
            relay,
        } in &self.comparisons
        {
            let disk = self.disk_allows(load.clients);
            let (runs, share) = match gateway {
                Some(gateway) => {
                    let runs = gateway.runs_per_second;
                    (count(runs), ratio(runs, disk.min(relay.runs_per_second)))
                }
                None => Default::default(),
            };
            writeln!(
                f,
                "| {load} | {} | {} | {runs} | {share} |",
                count(disk),
                count(relay.runs_per_second)
            )?;
        }
        Ok(())
    }

    /// Returns the disk's limit of runs per second: each run waits for the disk twice, accepted and
    /// ended; clients wait concurrently.
    fn disk_allows(&self, clients: usize) -> f64 {
        clients as f64 / (2.0 * self.fdatasync.as_secs_f64()).max(f64::MIN_POSITIVE)
    }
}

impl Comparison {
    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let relay = &self.relay;
        match &self.gateway {
            Some(gateway) => {
                writeln!(f, "| {} | gateway | {} |", self.load, absolute(gateway))?;
                writeln!(f, "| | relay | {} |", absolute(relay))?;
                writeln!(f, "| | gateway / relay | {} |", relative(gateway, relay))
            }
            None => writeln!(f, "| {} | relay | {} |", self.load, absolute(relay)),
        }
    }

    fn write_faults(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (server, figures) in [
            ("gateway", self.gateway.as_ref()),
            ("relay", Some(&self.relay)),
        ] {
            if let Some(Figures {
                runs,
                failed,
                fault: Some(fault),
                ..
            }) = figures
            {
                let of = runs + failed;
                writeln!(
                    f,
                    "\n**{failed} of {of} runs failed** ({}, {server}): {fault}",
                    self.load
                )?;
            }
        }
        Ok(())
    }
}

fn absolute(figures: &Figures) -> String {
    row([
        count(figures.runs_per_second),
        time(figures.first_token.p50),
        time(figures.first_token.p99),
        time(figures.end.p50),
        time(figures.end.p99),
        count(figures.events_per_second),
        time(figures.took),
        time(figures.cpu_per_run),
        megabytes(figures.resident),
    ])
}

fn relative(gateway: &Figures, relay: &Figures) -> String {
    let times =
        |of: fn(&Figures) -> Duration| ratio(of(gateway).as_secs_f64(), of(relay).as_secs_f64());
    let spreads = |of: fn(&Figures) -> Spread, at: fn(Spread) -> Duration| {
        ratio(at(of(gateway)).as_secs_f64(), at(of(relay)).as_secs_f64())
    };
    row([
        ratio(gateway.runs_per_second, relay.runs_per_second),
        spreads(|figures| figures.first_token, |spread| spread.p50),
        spreads(|figures| figures.first_token, |spread| spread.p99),
        spreads(|figures| figures.end, |spread| spread.p50),
        spreads(|figures| figures.end, |spread| spread.p99),
        ratio(gateway.events_per_second, relay.events_per_second),
        times(|figures| figures.took),
        times(|figures| figures.cpu_per_run),
        ratio(gateway.resident as f64, relay.resident as f64),
    ])
}

fn row(cells: [String; 9]) -> String {
    cells.join(" | ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disk_limit_counts_two_waits_per_run_and_client() {
        let fdatasync = Duration::from_millis(2);
        let storage = StorageReport {
            name: "disk",
            folder: PathBuf::new(),
            fdatasync,
            start: None,
            viewers: None,
            flows: None,
            sign_in: None,
            protocol: None,
            comparisons: vec![],
            costs: Costs::default(),
        };
        assert_eq!(storage.disk_allows(16).round(), 4000.0);
    }
}

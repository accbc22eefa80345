//! The report in Markdown: absolute values, and values relative to the relay and the disk.

use std::{
    fmt,
    io::{self, Write as _},
    path::PathBuf,
    time::Duration,
};

use deerflow_tests::spread::Spread;

use super::{
    figures::Figures,
    flows::{FlowFigures, StepFigures},
    load::Load,
    protocol::ProtocolFigures,
    sign_in::SignInFigures,
    subject::StartFigures,
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
}

/// One load on the gateway, if there is one, and on the relay.
#[derive(Debug)]
pub(super) struct Comparison {
    pub(super) load: Load,
    pub(super) gateway: Option<Figures>,
    pub(super) relay: Figures,
}

impl Report {
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
            "Times to first token and to the end count from the request that streams the run; runs/s also pay for the thread."
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
        self.comparisons.iter().map(failed).sum::<usize>() + flows
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

fn count(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut grouped = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

fn ratio(ours: f64, theirs: f64) -> String {
    if theirs > 0.0 {
        format!("x {:.2}", ours / theirs)
    } else {
        "-".to_owned()
    }
}

fn time(time: Duration) -> String {
    let milliseconds = time.as_secs_f64() * 1000.0;
    match milliseconds {
        0.0..0.1 => format!("{:.1} µs", milliseconds * 1000.0),
        0.1..10.0 => format!("{milliseconds:.2} ms"),
        10.0..1000.0 => format!("{milliseconds:.0} ms"),
        _ => format!("{:.2} s", milliseconds / 1000.0),
    }
}

fn megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_formatted_for_reading() {
        assert_eq!(count(1_234_567.4), "1,234,567");
        assert_eq!(count(999.0), "999");
        assert_eq!(time(Duration::from_micros(42)), "42.0 µs");
        assert_eq!(time(Duration::from_micros(1234)), "1.23 ms");
        assert_eq!(time(Duration::from_millis(45)), "45 ms");
        assert_eq!(time(Duration::from_millis(2040)), "2.04 s");
        assert_eq!(ratio(1.0, 4.0), "x 0.25");
        assert_eq!(ratio(1.0, 0.0), "-");
    }

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
        };
        assert_eq!(storage.disk_allows(16).round(), 4000.0);
    }
}

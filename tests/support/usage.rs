//! Consumption of a server process between two moments: CPU time, context switches, written bytes,
//! allocations.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Context as _;

use crate::process::{self, ThreadCounts};

/// Metric with the allocations and reallocations of the process; only some builds have it.
const ALLOCATIONS: &str = "deerflow_allocations_total ";
/// Metric with the number of jobs that SQLite's writer has executed.
const WRITES: &str = "deerflow_write_queue_seconds_count ";

/// Consumption of a process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// CPU time, user and system.
    pub cpu: Duration,
    /// Voluntary context switches of all threads: how often a thread had to wait.
    pub switches: u64,
    /// Bytes of `write` calls and their relatives, to files and pipes; `writev` to sockets
    /// included, `send` not.
    pub written: u64,
    /// Bytes of pages that were written to a disk; 0 in memory file systems.
    pub to_disk: u64,
    /// Allocations and reallocations, if the program counts them.
    pub allocations: Option<u64>,
    /// Jobs of SQLite's writer, if the program has one.
    pub writes: Option<u64>,
}

/// Measures the consumption of one process from its creation on.
#[derive(Debug)]
pub struct UsageMeter {
    pid: u32,
    metrics: Option<Scraper>,
    threads: ThreadTotals,
    io: process::Written,
    /// Counters at the start.
    scraped: Scraped,
    /// Growth of the counters by one reading of them.
    reading: Scraped,
}

impl UsageMeter {
    /// Starts a measurement. `metrics` is the address whose `/metrics` the process serves.
    ///
    /// # Errors
    /// Returns an error if the process has ended or the metrics cannot be read.
    pub async fn start(pid: u32, metrics: Option<SocketAddr>) -> anyhow::Result<Self> {
        let metrics = metrics.map(Scraper::new).transpose()?;
        let (mut scraped, mut reading) = (Scraped::default(), Scraped::default());
        if let Some(metrics) = &metrics {
            // The first request also opens the connection.
            metrics.read().await?;
            let first = metrics.read().await?;
            scraped = metrics.read().await?;
            reading = scraped.since(first);
        }
        let mut threads = ThreadTotals::default();
        threads.begin(process::threads(pid)?);
        Ok(Self {
            pid,
            metrics,
            threads,
            io: process::written(pid)?,
            scraped,
            reading,
        })
    }

    /// Reads the counters of the threads, so that those of a thread that ends later are included. A
    /// caller samples several times per second.
    ///
    /// # Errors
    /// Returns an error if the process has ended.
    pub fn sample(&mut self) -> anyhow::Result<()> {
        self.threads.observe(process::threads(self.pid)?);
        Ok(())
    }

    /// Ends the measurement.
    ///
    /// # Errors
    /// Returns an error if the process has ended or the metrics cannot be read.
    pub async fn finish(mut self) -> anyhow::Result<Usage> {
        self.sample()?;
        let io = process::written(self.pid)?;
        let scraped = match &self.metrics {
            Some(metrics) => metrics.read().await?.since(self.scraped),
            None => Scraped::default(),
        };
        let scraped = scraped.since(self.reading);
        let ThreadCounts { cpu, switches } = self.threads.total();
        Ok(Usage {
            cpu,
            switches,
            written: io.calls.saturating_sub(self.io.calls),
            to_disk: io.pages.saturating_sub(self.io.pages),
            allocations: scraped.allocations,
            writes: scraped.writes,
        })
    }
}

/// Sums over threads that begin and end while they are observed.
#[derive(Debug, Default)]
struct ThreadTotals {
    /// Newest counts of each living thread, and its counts when the measurement began.
    threads: HashMap<u32, (ThreadCounts, ThreadCounts)>,
    /// Counts of threads whose id another thread has now.
    ended: ThreadCounts,
}

impl ThreadTotals {
    fn begin(&mut self, threads: Vec<(u32, ThreadCounts)>) {
        let threads = threads.into_iter();
        self.threads = threads.map(|(id, now)| (id, (now, now))).collect();
    }

    fn observe(&mut self, threads: Vec<(u32, ThreadCounts)>) {
        for (id, now) in threads {
            let (newest, base) = self.threads.entry(id).or_default();
            if now.switches < newest.switches || now.cpu < newest.cpu {
                self.ended = self.ended.plus(newest.since(*base));
                *base = ThreadCounts::default();
            }
            *newest = now;
        }
    }

    fn total(&self) -> ThreadCounts {
        let threads = self.threads.values();
        threads.fold(self.ended, |sum, (newest, base)| {
            sum.plus(newest.since(*base))
        })
    }
}

impl ThreadCounts {
    fn plus(self, other: Self) -> Self {
        Self {
            cpu: self.cpu + other.cpu,
            switches: self.switches + other.switches,
        }
    }

    fn since(self, before: Self) -> Self {
        Self {
            cpu: self.cpu.saturating_sub(before.cpu),
            switches: self.switches.saturating_sub(before.switches),
        }
    }
}

/// Reads the metrics of one server over one connection.
#[derive(Debug)]
struct Scraper {
    client: reqwest::Client,
    url: String,
}

/// Counters of the metrics.
#[derive(Debug, Clone, Copy, Default)]
struct Scraped {
    allocations: Option<u64>,
    writes: Option<u64>,
}

impl Scraper {
    fn new(address: SocketAddr) -> anyhow::Result<Self> {
        Ok(Self {
            client: reqwest::Client::builder().no_proxy().build()?,
            url: format!("http://{address}/metrics"),
        })
    }

    async fn read(&self) -> anyhow::Result<Scraped> {
        let answer = self.client.get(&self.url).send().await?;
        let text = answer.error_for_status()?.text().await?;
        Scraped::parse(&text).with_context(|| format!("counters of {}", self.url))
    }
}

impl Scraped {
    fn parse(text: &str) -> anyhow::Result<Self> {
        let counter = |name: &str| {
            let mut lines = text.lines();
            let value = lines.find_map(|line| line.strip_prefix(name));
            value.map(|value| value.trim().parse::<u64>()).transpose()
        };
        Ok(Self {
            allocations: counter(ALLOCATIONS)?,
            writes: counter(WRITES)?,
        })
    }

    /// Returns the growth since `before`; a counter that did not exist was 0.
    fn since(self, before: Self) -> Self {
        let growth = |now: Option<u64>, before: Option<u64>| {
            now.map(|now| now.saturating_sub(before.unwrap_or_default()))
        };
        Self {
            allocations: growth(self.allocations, before.allocations),
            writes: growth(self.writes, before.writes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(switches: u64) -> ThreadCounts {
        ThreadCounts {
            cpu: Duration::from_millis(switches),
            switches,
        }
    }

    #[test]
    fn totals_include_new_and_ended_threads() {
        let mut totals = ThreadTotals::default();
        totals.begin(vec![(1, counts(100)), (2, counts(50))]);
        totals.observe(vec![(1, counts(110)), (2, counts(60)), (3, counts(5))]);
        // Thread 2 ended, and its id was reused.
        totals.observe(vec![(1, counts(120)), (2, counts(7))]);
        assert_eq!(totals.total(), counts(20 + 10 + 7 + 5));
    }

    #[test]
    fn counters_are_read_by_their_whole_name() {
        let text = "# TYPE deerflow_allocations_total counter\ndeerflow_allocations_total 42\n";
        let scraped = Scraped::parse(text).expect("counters");
        assert_eq!((scraped.allocations, scraped.writes), (Some(42), None));
        let later = Scraped {
            allocations: Some(50),
            writes: Some(3),
        };
        let growth = later.since(scraped);
        assert_eq!((growth.allocations, growth.writes), (Some(8), Some(3)));
    }

    #[tokio::test]
    async fn meter_measures_this_process() {
        let pid = std::process::id();
        let meter = UsageMeter::start(pid, None).await.expect("a meter");
        let before = process::cpu_time(pid).expect("CPU time");
        let spent = || process::cpu_time(pid).expect("CPU time") - before;
        while spent() < Duration::from_millis(50) {
            std::hint::black_box("x".repeat(1 << 16));
        }
        let usage = meter.finish().await.expect("usage");
        assert!(usage.cpu >= Duration::from_millis(20), "{usage:?}");
        assert_eq!(usage.allocations, None);
    }
}

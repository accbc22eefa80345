//! Process statistics of the kernel, and this process's limit of open files.

use std::{fs, time::Duration};

use anyhow::Context as _;
use rustix::process::{Resource, getrlimit, setrlimit};

/// Enough for a thousand streams through three processes.
const MIN_OPEN_FILES: u64 = 16_384;

/// `/proc` counts CPU time in hundredths of a second on every Linux that Rust runs on.
const TICK: Duration = Duration::from_millis(10);

/// Returns the CPU time that the process has used so far, user and system.
///
/// # Errors
/// Returns an error if the process has ended.
pub fn cpu_time(pid: u32) -> anyhow::Result<Duration> {
    let stat = read(pid, "stat")?;
    // The program's name is in parentheses and may contain anything; the fields are counted from
    // behind it.
    let fields: Vec<&str> = stat
        .rsplit(')')
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .collect();
    let ticks = |field: usize| {
        fields
            .get(field)
            .and_then(|ticks| ticks.parse::<u32>().ok())
    };
    let (user, system) = ticks(11)
        .zip(ticks(12))
        .with_context(|| format!("/proc/{pid}/stat: {stat}"))?;
    Ok(TICK * user.saturating_add(system))
}

/// Counts of one thread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ThreadCounts {
    /// Time on a processor.
    pub cpu: Duration,
    /// Voluntary context switches.
    pub switches: u64,
}

/// Returns the counts of each living thread of the process, by thread id.
///
/// # Errors
/// Returns an error if the process has ended.
pub fn threads(pid: u32) -> anyhow::Result<Vec<(u32, ThreadCounts)>> {
    let folder = format!("/proc/{pid}/task");
    let entries = fs::read_dir(&folder).with_context(|| format!("process {pid} has ended"))?;
    let ids = entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect::<Vec<u32>>();
    // A thread may end between the two calls.
    let read = |id: u32, file: &str| fs::read_to_string(format!("{folder}/{id}/{file}")).ok();
    let counts = |id: u32| {
        let run = read(id, "schedstat")?;
        let cpu = Duration::from_nanos(run.split_whitespace().next()?.parse().ok()?);
        let status = read(id, "status")?;
        let switches = field(&status, "voluntary_ctxt_switches:")?;
        Some((id, ThreadCounts { cpu, switches }))
    };
    let all: Vec<_> = ids.into_iter().filter_map(counts).collect();
    anyhow::ensure!(
        !all.is_empty(),
        "process {pid} has ended, or the kernel has no scheduler statistics"
    );
    Ok(all)
}

/// Bytes that a process has written so far.
#[derive(Debug, Clone, Copy, Default)]
pub struct Written {
    /// By system calls, to anything.
    pub calls: u64,
    /// In pages that went to a disk.
    pub pages: u64,
}

/// Returns the bytes that the process has written so far.
///
/// # Errors
/// Returns an error if the process has ended.
pub fn written(pid: u32) -> anyhow::Result<Written> {
    let io = read(pid, "io")?;
    let counters = field(&io, "wchar:").zip(field(&io, "write_bytes:"));
    let (calls, pages) = counters.with_context(|| format!("/proc/{pid}/io: {io}"))?;
    Ok(Written { calls, pages })
}

/// Returns the number after `name` at the start of a line.
fn field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line?.trim().parse().ok()
}

/// Returns the resident memory in bytes.
///
/// # Errors
/// Returns an error if the process has ended.
pub fn resident(pid: u32) -> anyhow::Result<u64> {
    let status = read(pid, "status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes =
        line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    // A process that has ended but was not waited for has no memory.
    Ok(kilobytes.with_context(|| format!("process {pid} has ended"))? * 1024)
}

fn read(pid: u32, file: &str) -> anyhow::Result<String> {
    fs::read_to_string(format!("/proc/{pid}/{file}"))
        .with_context(|| format!("process {pid} has ended"))
}

/// Raises the soft limit of open files as far as needed and allowed; children inherit it.
///
/// # Errors
/// Returns an error if the limit cannot be changed.
pub fn raise_file_limit() -> anyhow::Result<()> {
    let mut limit = getrlimit(Resource::Nofile);
    if limit
        .current
        .is_some_and(|current| current < MIN_OPEN_FILES)
    {
        limit.current = Some(
            limit
                .maximum
                .map_or(MIN_OPEN_FILES, |maximum| maximum.min(MIN_OPEN_FILES)),
        );
        setrlimit(Resource::Nofile, limit).context("raising the limit of open files")?;
    }
    Ok(())
}

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

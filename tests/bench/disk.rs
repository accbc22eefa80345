//! Baseline of the disk: the time of one small durable append.

use std::{
    io::{self, Write as _},
    path::Path,
    time::{Duration, Instant},
};

use deerflow_tests::spread::percentile;

const APPENDS: usize = 300;
const MAX_DURATION: Duration = Duration::from_secs(3);

/// Median time of appending 4 KiB and `fdatasync` in `folder`.
pub(super) fn fdatasync_p50(folder: &Path) -> io::Result<Duration> {
    let mut file = tempfile::tempfile_in(folder)?;
    let page = [b'd'; 4096];
    let started = Instant::now();
    let mut times = Vec::with_capacity(APPENDS);
    while times.len() < APPENDS && started.elapsed() < MAX_DURATION {
        let before = Instant::now();
        file.write_all(&page)?;
        file.sync_data()?;
        times.push(before.elapsed());
    }
    times.sort_unstable();
    Ok(percentile(&times, 50))
}

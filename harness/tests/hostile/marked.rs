//! Finds processes by a mark in their arguments or environment, from outside of any sandbox.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use deerflow_harness::sandbox::CommandLimits;
use deerflow_harness::sandbox::command::bubblewrap::{BubblewrapCommandSandbox, BubblewrapOptions};

/// Time after which a remaining process counts as escaped: a busy machine is slow to reap.
const ESCAPE_TIMEOUT: Duration = Duration::from_secs(30);

/// Text that no unrelated process of this machine has.
#[derive(Debug, Clone)]
pub(crate) struct Mark(pub(crate) String);

impl Mark {
    /// Returns the mark of a temporary folder, for the environment of everything that is started
    /// for it.
    pub(crate) fn of(folder: &Path) -> Self {
        Self(format!(
            "mark{}",
            folder
                .file_name()
                .expect("a name")
                .to_string_lossy()
                .replace('.', "")
        ))
    }

    /// Returns the arguments of the processes with the mark.
    pub(crate) fn carriers(&self) -> Vec<String> {
        let own = std::process::id().to_string();
        let processes = fs::read_dir("/proc")
            .expect("/proc")
            .flatten()
            .map(|entry| entry.path());
        let ids = processes.filter(|path| {
            path.file_name()
                .is_some_and(|id| id.to_string_lossy().parse::<u32>().is_ok() && *id != *own)
        });
        let texts = ids.map(|path| {
            ["cmdline", "environ"].map(|file| fs::read(path.join(file)).unwrap_or_default())
        });
        let marked = texts.filter(|texts| texts.iter().any(|text| self.is_in(text)));
        marked
            .map(|[arguments, _]| String::from_utf8_lossy(&arguments).replace('\0', " "))
            .collect()
    }

    fn is_in(&self, text: &[u8]) -> bool {
        text.windows(self.0.len())
            .any(|window| window == self.0.as_bytes())
    }

    /// Counts the processes of one kind.
    pub(crate) fn count(&self, kind: &str) -> usize {
        let name = format!("{}-{kind}", self.0);
        self.carriers()
            .iter()
            .filter(|arguments| arguments.starts_with(&name))
            .count()
    }

    /// Waits until no process has the mark and returns the time since `ended`.
    ///
    /// # Panics
    /// Panics if a process still has it after [`ESCAPE_TIMEOUT`].
    pub(crate) fn gone_since(&self, ended: Instant) -> Duration {
        loop {
            let left = self.carriers();
            if left.is_empty() {
                return ended.elapsed();
            }
            assert!(
                ended.elapsed() < ESCAPE_TIMEOUT,
                "these outlived their sandbox: {left:#?}"
            );
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Opens a sandbox that sets `MARK` to the mark of a folder for all its commands.
pub(crate) async fn marking_sandbox(
    base: &Path,
    limits: CommandLimits,
) -> BubblewrapCommandSandbox {
    let environment = vec![("MARK".to_owned(), Mark::of(base).0)];
    let options = BubblewrapOptions {
        limits,
        environment,
        ..BubblewrapOptions::new(base.join("support"))
    };
    let (sandbox, report) = BubblewrapCommandSandbox::open(options).await;
    sandbox.unwrap_or_else(|| {
        panic!(
            "the sandbox is not effective here: {}",
            report.missing_text()
        )
    })
}

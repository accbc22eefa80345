//! Where the measured gateways store their data: SQLite on a disk or in memory, or Postgres.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::Context as _;

use super::arguments::Arguments;

/// Place of the data.
#[derive(Clone)]
pub(super) struct Storage {
    pub(super) name: &'static str,
    /// Parent of the data folders.
    pub(super) folder: PathBuf,
    /// Address of a Postgres server that stores the rows. Each new gateway has its own schema
    /// there, which is not deleted.
    postgres: Option<String>,
}

impl Storage {
    /// Returns the places to measure: the Postgres server of the arguments, else SQLite on a disk
    /// and, if there is one, in a folder in memory.
    pub(super) fn all(arguments: &Arguments) -> anyhow::Result<Vec<Self>> {
        let sqlite = |name, folder: &Path| Self {
            name,
            folder: folder.to_owned(),
            postgres: None,
        };
        let disk = match &arguments.storage_dir {
            Some(folder) => folder.clone(),
            None => std::env::current_exe()?
                .parent()
                .context("folder of this program")?
                .to_owned(),
        };
        if let Some(url) = &arguments.postgres {
            return Ok(vec![Self {
                name: "postgres",
                folder: disk,
                postgres: Some(url.clone()),
            }]);
        }
        let memory = Path::new("/dev/shm");
        let memory = memory.is_dir().then(|| sqlite("memory", memory));
        Ok([sqlite("disk", &disk)].into_iter().chain(memory).collect())
    }

    /// Returns the database section of a new gateway's configuration.
    pub(super) fn database_section(&self) -> String {
        static SCHEMAS: AtomicU32 = AtomicU32::new(0);
        let Some(url) = &self.postgres else {
            return "database:\n  backend: sqlite\n  sqlite_dir: .deer-flow/data\n".to_owned();
        };
        let number = SCHEMAS.fetch_add(1, Ordering::Relaxed);
        let schema = format!("bench_{}_{number}", std::process::id());
        format!(
            "database:\n  backend: postgres\n  postgres_url: {url}\n  postgres_schema: {schema}\n"
        )
    }
}

//! The gateway under test: its configuration, its data folder, its start-up time.

use std::{net::SocketAddr, path::Path, time::Duration};

use anyhow::Context as _;
use deerflow_tests::gateway::{AUTH_DISABLED, GatewayOptions, GatewayProcess};
use deerflow_tests::process;
use deerflow_tests::spread::percentile;
use tempfile::TempDir;

use super::{meter::Server, storage::Storage};

/// Running gateway with its data under a storage folder.
pub(super) struct Subject {
    gateway: GatewayProcess,
    options: GatewayOptions,
    storage: Storage,
    home: TempDir,
}

/// Start-up measurements of the gateway.
#[derive(Debug, Clone, Copy)]
pub(super) struct StartFigures {
    pub(super) fresh: Duration,
    pub(super) existing: Duration,
    /// Resident bytes when ready, before the first run.
    pub(super) idle: u64,
    /// Size of the program's file in bytes.
    pub(super) binary: u64,
}

impl Subject {
    /// Starts a gateway without authentication.
    pub(super) async fn launch(
        binary: &Path,
        storage: &Storage,
        provider: SocketAddr,
    ) -> anyhow::Result<Self> {
        let disabled = (AUTH_DISABLED.0.to_owned(), AUTH_DISABLED.1.to_owned());
        Self::launch_with(binary, storage, provider, vec![disabled]).await
    }

    /// Starts a gateway on which people can sign in.
    pub(super) async fn launch_with_sign_in(
        binary: &Path,
        storage: &Storage,
        provider: SocketAddr,
    ) -> anyhow::Result<Self> {
        Self::launch_with(binary, storage, provider, Vec::new()).await
    }

    async fn launch_with(
        binary: &Path,
        storage: &Storage,
        provider: SocketAddr,
        env: Vec<(String, String)>,
    ) -> anyhow::Result<Self> {
        let binary = binary
            .canonicalize()
            .with_context(|| format!("gateway {}", binary.display()))?;
        let mut options = GatewayOptions::new(binary, configuration(provider));
        options.env.extend(env);
        let (home, gateway) = fresh(&options, storage).await?;
        Ok(Self {
            gateway,
            options,
            storage: storage.clone(),
            home,
        })
    }

    /// Measures median start-up times over this many starts on a fresh and on the existing
    /// database.
    pub(super) async fn measure_starts(&mut self, times: usize) -> anyhow::Result<StartFigures> {
        let (mut new, mut old) = (vec![self.gateway.ready_after()], Vec::new());
        for _ in 1..times {
            let (_home, mut gateway) = fresh(&self.options, &self.storage).await?;
            new.push(gateway.ready_after());
            gateway.terminate().await?;
        }
        for _ in 0..times {
            self.gateway.restart().await?;
            old.push(self.gateway.ready_after());
        }
        new.sort_unstable();
        old.sort_unstable();
        let idle = process::resident(self.pid()?)?;
        Ok(StartFigures {
            fresh: percentile(&new, 50),
            existing: percentile(&old, 50),
            idle,
            binary: std::fs::metadata(&self.options.binary)?.len(),
        })
    }

    /// Stops the gateway gracefully before its data is deleted.
    pub(super) async fn stop(mut self) -> anyhow::Result<()> {
        self.gateway.terminate().await?;
        Ok(())
    }

    /// Stops the gateway and starts it again on its data.
    pub(super) async fn restart(&mut self) -> anyhow::Result<()> {
        self.gateway.restart().await
    }

    /// Returns the data folder.
    pub(super) fn home(&self) -> &Path {
        self.home.path()
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.gateway.address()
    }

    /// Returns the gateway's output.
    pub(super) fn logs(&self) -> String {
        self.gateway.logs()
    }

    /// Returns the process for measurements.
    pub(super) fn server(&self) -> anyhow::Result<Server> {
        Ok(Server {
            pid: self.pid()?,
            metrics: Some(self.address()),
        })
    }

    pub(super) fn pid(&self) -> anyhow::Result<u32> {
        self.gateway.pid().context("the gateway has ended")
    }
}

async fn fresh(
    options: &GatewayOptions,
    storage: &Storage,
) -> anyhow::Result<(TempDir, GatewayProcess)> {
    let home = tempfile::Builder::new()
        .prefix("deerflow-bench-")
        .tempdir_in(&storage.folder)?;
    let mut options = options.clone();
    options.home = Some(home.path().to_owned());
    options.config += &storage.database_section();
    Ok((home, GatewayProcess::launch(options).await?))
}

/// Returns a configuration without its database: durable runs and events, and no model calls except those
/// of the run itself. Memory is enabled, as it is by default, but extracts nothing in this time.
fn configuration(provider: SocketAddr) -> String {
    format!(
        "\
log_level: warning
models:
  - name: bench
    use: langchain_openai:ChatOpenAI
    model: bench
    base_url: http://{provider}/v1
    api_key: dummy
sandbox:
  use: deerflow.sandbox.local:LocalSandboxProvider
run_events:
  backend: db
title:
  enabled: false
memory:
  debounce_seconds: 86400
"
    )
}

//! The gateway under test.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use deerflow_tests::gateway::{AUTH_DISABLED, GatewayOptions, GatewayProcess, deerflow_binary};
use deerflow_tests::process::{cpu_time, resident};
use serde_json::Value;

use super::platforms::{PlatformName, Platforms};
use crate::arguments::Arguments;

/// Interval at which a state of another process is polled.
const POLL: Duration = Duration::from_millis(50);

/// Configuration of a gateway.
#[derive(Debug, Clone, Default)]
pub(crate) struct Setup {
    /// Base address of the model; without it the scripted model of the gateway answers.
    pub(crate) model: Option<String>,
    /// Lines of each channel.
    pub(crate) channel: String,
    /// Further sections.
    pub(crate) sections: String,
    /// Environment variables.
    pub(crate) env: Vec<(String, String)>,
}

/// Running gateway.
#[derive(Debug)]
pub(crate) struct Gateway {
    pub(crate) process: GatewayProcess,
}

impl Gateway {
    /// Starts a gateway with bots on these platforms and waits until they are connected.
    pub(crate) async fn start(
        arguments: &Arguments,
        platforms: &Platforms,
        names: &[PlatformName],
        setup: Setup,
    ) -> anyhow::Result<Self> {
        let binary = match &arguments.gateway {
            Some(path) => path.canonicalize().context("path of the gateway")?,
            None => deerflow_binary()?,
        };
        Self::launch(
            binary,
            &platforms.config(names, &setup.channel),
            names,
            setup,
        )
        .await
    }

    async fn launch(
        binary: PathBuf,
        channels: &str,
        names: &[PlatformName],
        setup: Setup,
    ) -> anyhow::Result<Self> {
        let model = match &setup.model {
            Some(base) => format!(
                "{{name: figures, use: 'langchain_openai:ChatOpenAI', model: figures, api_key: sk-figures, base_url: '{base}'}}"
            ),
            None => "{name: scripted, use: scripted, model: scripted}".to_owned(),
        };
        let channels = if names.is_empty() { "" } else { channels };
        let config = format!(
            "config_version: 34
models:
  - {model}
runs: {{shutdown_grace_seconds: 1}}
title: {{enabled: false}}
{}{channels}",
            setup.sections
        );
        let mut options = GatewayOptions::new(binary, config);
        options.env = setup.env;
        options
            .env
            .push((AUTH_DISABLED.0.to_owned(), AUTH_DISABLED.1.to_owned()));
        let gateway = Self {
            process: GatewayProcess::launch(options).await?,
        };
        gateway.connected(names).await?;
        Ok(gateway)
    }

    /// Waits until all bots are connected.
    pub(crate) async fn connected(&self, names: &[PlatformName]) -> anyhow::Result<()> {
        let what = "all channels are connected";
        let connected = async || {
            let Ok(status) = self.get("/api/channels/").await else {
                return false;
            };
            let is_running =
                |name: &PlatformName| status["channels"][name.key()]["running"] == true;
            names.iter().all(is_running)
        };
        self.until(what, Duration::from_secs(60), connected).await
    }

    /// Reads a JSON answer.
    pub(crate) async fn get(&self, path: &str) -> anyhow::Result<Value> {
        let client = reqwest::Client::builder().no_proxy().build()?;
        let url = format!("{}{path}", self.process.base_url());
        Ok(client.get(url).send().await?.json().await?)
    }

    /// Polls until a condition holds.
    ///
    /// # Errors
    /// Returns an error with the last lines of the gateway's log if it does not hold in time.
    pub(crate) async fn until(
        &self,
        what: &str,
        within: Duration,
        mut holds: impl AsyncFnMut() -> bool,
    ) -> anyhow::Result<()> {
        let polling = async {
            while !holds().await {
                tokio::time::sleep(POLL).await;
            }
        };
        if tokio::time::timeout(within, polling).await.is_err() {
            let logs = self.process.logs();
            let lines: Vec<&str> = logs.lines().collect();
            let last = lines[lines.len().saturating_sub(30)..].join("\n");
            anyhow::bail!("not within {within:?}: {what}\n{last}");
        }
        Ok(())
    }

    /// Returns the resident memory in bytes.
    pub(crate) fn resident(&self) -> anyhow::Result<u64> {
        resident(self.process.pid().context("the gateway does not run")?)
    }

    /// Returns the processor time so far.
    pub(crate) fn cpu_time(&self) -> anyhow::Result<Duration> {
        cpu_time(self.process.pid().context("the gateway does not run")?)
    }
}

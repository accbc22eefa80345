//! Selects where shell commands run: in containers, in the kernel's sandbox, on the host, or not at
//! all.

use std::sync::Arc;
use std::time::Duration;

use harness::config::{SandboxConfig, SandboxNetworkConfig};
use harness::runtime::tasks::Tasks;
use harness::sandbox::command::bubblewrap::BubblewrapCommandSandbox;
use harness::sandbox::command::host::HostCommandSandbox;
use harness::sandbox::{CommandLimits, CommandSandbox, LimitedCommandSandbox, Mount};

use super::containers;
use crate::config::{ConfigHandle, Settings};
use crate::sandbox::variables::host_variables;
use crate::sandbox::{self, OpenedSandbox, bubblewrap};

/// Opens the configured sandbox and logs the result.
pub(super) async fn open(
    handle: &ConfigHandle,
    settings: &Settings,
    mounts: Vec<Mount>,
    tasks: &Tasks,
) -> OpenedSandbox {
    let config = handle.current();
    if !sandbox::is_configured(&config) {
        return Err("no tool ran commands when this server was started; restart it".to_owned());
    }
    let section = &config.sandbox;
    if sandbox::containers::is_configured(section) {
        return containers::open(handle, settings, tasks).await;
    }
    if section.allow_host_bash {
        tracing::warn!(
            "sandbox.allow_host_bash: commands of agents run unsandboxed on this host as this user"
        );
        let host = HostCommandSandbox::new(
            host_variables(section, handle.environment()),
            CommandLimits::from(&section.limits),
        );
        return host
            .map(|host| limited(host, section))
            .map_err(|error| error.to_string());
    }
    if section.network == SandboxNetworkConfig::Host {
        tracing::warn!(
            "sandbox.network: commands have full network access, including to ports of this machine"
        );
    }
    let (opened, report) =
        BubblewrapCommandSandbox::open(bubblewrap::options(section, handle, settings, mounts)?)
            .await;
    match opened {
        Some(opened) => {
            tracing::info!(
                layers = report.active(),
                missing = report.missing_text(),
                "commands run in a sandbox"
            );
            Ok(limited(opened, section))
        }
        None => {
            tracing::error!(
                missing = report.missing_text(),
                "commands are refused: the sandbox does not work here"
            );
            Err(report.missing_text())
        }
    }
}

fn limited(sandbox_impl: impl CommandSandbox, config: &SandboxConfig) -> Arc<dyn CommandSandbox> {
    Arc::new(LimitedCommandSandbox::new(
        sandbox_impl,
        config.max_commands,
        Duration::from_secs(config.acquire_timeout),
    ))
}

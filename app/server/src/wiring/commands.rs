//! Selects where shell commands run: in containers, in the kernel's sandbox, on the host, or not at
//! all.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use harness::agents::lead::kind_of;
use harness::config::{AppConfig, SandboxConfig, SandboxNetworkConfig};
use harness::config_file::Environment;
use harness::net::SystemLookup;
use harness::runtime::tasks::Tasks;
use harness::sandbox::command::bubblewrap::{
    BubblewrapCommandSandbox, BubblewrapOptions, InnerProgram, Layer, LayerReport, Network,
    ProbeReport,
};
use harness::sandbox::command::host::HostCommandSandbox;
use harness::sandbox::egress::{EgressProxy, ProxyLimits};
use harness::sandbox::{CommandLimits, CommandSandbox, LimitedCommandSandbox, Mount};

use super::containers;
use crate::config::{ConfigHandle, Settings};
use crate::own_program::{self, SANDBOX_INNER};
use crate::sandbox::OpenedSandbox;
use crate::sandbox::mounts::{mounts, private_paths};
use crate::sandbox::variables::variables;

/// Environment variables that commands on the host inherit. None contains a secret.
const HOST_VARIABLES: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "TMPDIR",
    "JAVA_HOME",
];

/// Reports whether an agent could run commands.
pub fn is_configured(config: &AppConfig) -> bool {
    config.tools.iter().any(|tool| kind_of(tool) == "bash")
}

/// Opens the configured sandbox and logs the result.
pub(super) async fn open(
    handle: &ConfigHandle,
    settings: &Settings,
    mounts: Vec<Mount>,
    tasks: &Tasks,
) -> OpenedSandbox {
    let config = handle.current();
    if !is_configured(&config) {
        return Err("no tool ran commands when this server was started; restart it".to_owned());
    }
    let sandbox = &config.sandbox;
    if containers::is_configured(sandbox) {
        return containers::open(handle, settings, tasks).await;
    }
    if sandbox.allow_host_bash {
        tracing::warn!(
            "sandbox.allow_host_bash: commands of agents run unsandboxed on this host as this user"
        );
        let host = HostCommandSandbox::new(
            host_variables(sandbox, handle.environment()),
            CommandLimits::from(&sandbox.limits),
        );
        return host
            .map(|host| limited(host, sandbox))
            .map_err(|error| error.to_string());
    }
    if sandbox.network == SandboxNetworkConfig::Host {
        tracing::warn!(
            "sandbox.network: commands have full network access, including to ports of this machine"
        );
    }
    let (opened, report) =
        BubblewrapCommandSandbox::open(options(sandbox, handle, settings, mounts)?).await;
    match opened {
        Some(opened) => {
            tracing::info!(
                layers = report.active(),
                missing = report.missing_text(),
                "commands run in a sandbox"
            );
            Ok(limited(opened, sandbox))
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

/// Probes the configured sandbox, with its files in `support`.
pub async fn probe(sandbox: &SandboxConfig, support: PathBuf) -> ProbeReport {
    let limits = CommandLimits::from(&sandbox.limits);
    let options = network(sandbox, &support).map(|network| BubblewrapOptions {
        limits,
        network,
        inner: inner(),
        ..BubblewrapOptions::new(support)
    });
    match options {
        Ok(options) => BubblewrapCommandSandbox::open(options).await.1,
        Err(why) => ProbeReport {
            layers: vec![LayerReport {
                layer: Layer::Network,
                missing: Some(why),
            }],
        },
    }
}

fn options(
    sandbox: &SandboxConfig,
    handle: &ConfigHandle,
    settings: &Settings,
    mounts: Vec<Mount>,
) -> Result<BubblewrapOptions, String> {
    let support = settings.home.join("sandbox");
    Ok(BubblewrapOptions {
        network: network(sandbox, &support)?,
        inner: inner(),
        support,
        limits: CommandLimits::from(&sandbox.limits),
        mounts,
        environment: variables(sandbox),
        hidden: private_paths(handle, settings),
    })
}

/// Returns the network access of commands; starts the proxy if one is needed.
fn network(sandbox: &SandboxConfig, support: &Path) -> Result<Network, String> {
    match sandbox.network.rules() {
        None if sandbox.network == SandboxNetworkConfig::Host => Ok(Network::Host),
        None => Ok(Network::None),
        Some(rules) => {
            let rules = rules.map_err(|error| format!("sandbox.network: {error}"))?;
            let proxy = EgressProxy::new(
                support,
                rules,
                Arc::new(SystemLookup::default()),
                ProxyLimits::default(),
            );
            let proxy = proxy.map_err(|error| {
                format!("cannot start the proxy of sandboxed commands: {error}")
            })?;
            Ok(Network::Proxied(Arc::new(proxy)))
        }
    }
}

/// Returns this program as the first process inside sandboxes.
fn inner() -> Option<InnerProgram> {
    own_program::path().map(|program| InnerProgram {
        program,
        arguments: vec![SANDBOX_INNER.to_owned()],
    })
}

/// Returns the folders that are mounted in addition to those of the thread.
pub(super) fn mounted(handle: &ConfigHandle, settings: &Settings) -> Vec<Mount> {
    mounts(&handle.current().sandbox, &private_paths(handle, settings))
}

fn host_variables(sandbox: &SandboxConfig, environment: &Environment) -> Vec<(String, String)> {
    let inherited = HOST_VARIABLES
        .iter()
        .filter_map(|name| Some(((*name).to_owned(), environment.get(name)?.to_owned())));
    inherited.chain(variables(sandbox)).collect()
}

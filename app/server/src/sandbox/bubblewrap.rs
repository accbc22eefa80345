//! Options and probe of the kernel's sandbox.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use harness::config::{SandboxConfig, SandboxNetworkConfig};
use harness::net::SystemLookup;
use harness::sandbox::command::bubblewrap::{
    BubblewrapCommandSandbox, BubblewrapOptions, InnerProgram, Layer, LayerReport, Network,
    ProbeReport,
};
use harness::sandbox::egress::{EgressProxy, ProxyLimits};
use harness::sandbox::{CommandLimits, Mount};

use super::mounts::private_paths;
use super::variables::variables;
use crate::config::{ConfigHandle, Settings};
use crate::own_program::{self, SANDBOX_INNER};

/// Probes the configured sandbox, with its files in `support`.
pub(crate) async fn probe(sandbox: &SandboxConfig, support: PathBuf) -> ProbeReport {
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

/// Returns the options of the configured sandbox; starts the proxy if one is needed.
pub(crate) fn options(
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

//! Selects where shell commands run: in containers, in the kernel's sandbox, on the host, or not at
//! all.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use harness::agents::lead::kind_of;
use harness::config::{AppConfig, SandboxConfig, SandboxNetworkConfig};
use harness::config_file::{Environment, locate_extensions};
use harness::net::SystemLookup;
use harness::runtime::tasks::Tasks;
use harness::sandbox::command::bubblewrap::{
    BubblewrapCommandSandbox, BubblewrapOptions, InnerProgram, Layer, LayerReport, Network,
    ProbeReport,
};
use harness::sandbox::command::host::HostCommandSandbox;
use harness::sandbox::egress::{EgressProxy, ProxyLimits};
use harness::sandbox::{CommandLimits, CommandSandbox, LimitedCommandSandbox, Mount};
use secrecy::ExposeSecret;

use super::containers;
use crate::config::{ConfigHandle, Settings};
use crate::own_program::{self, SANDBOX_INNER};

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

/// Paths inside the sandbox that mounts may not replace, cover or contain.
const RESERVED: &[&str] = &[
    "/mnt/user-data",
    "/mnt/skills",
    "/mnt/acp-workspace",
    "/mnt/.sandbox",
    "/proc",
    "/dev",
    "/usr",
    "/etc",
    "/tmp",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/nix/store",
    "/gnu/store",
];

/// Command sandbox, or why it is unavailable.
pub(super) type OpenedSandbox = Result<Arc<dyn CommandSandbox>, String>;

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

/// Returns the private paths of this server.
pub(super) fn private_paths(handle: &ConfigHandle, settings: &Settings) -> Vec<PathBuf> {
    let root = handle.environment().project_root();
    let dotenv = [Some(root.as_path()), root.parent()]
        .into_iter()
        .flatten()
        .map(|folder| folder.join(".env"));
    // The extensions file contains credentials of MCP servers.
    let extensions = locate_extensions(handle.environment()).ok();
    let secret = handle
        .path()
        .map(PathBuf::from)
        .into_iter()
        .chain(extensions)
        .chain(dotenv);
    let data = [
        settings.home.clone(),
        settings.sqlite_dir(&handle.current().database),
    ];
    data.into_iter()
        .chain(secret)
        .map(|path| canonical(&path))
        .collect()
}

/// Returns the configured folders that can be mounted; others are logged.
pub(super) fn mounts(sandbox: &SandboxConfig, private_paths: &[PathBuf]) -> Vec<Mount> {
    let (good, bad): (Vec<_>, Vec<_>) = sandbox.mounts.iter().partition(|mount| {
        let inside = Path::new(&mount.container_path);
        let climbs = inside.components().any(|part| {
            !matches!(
                part,
                std::path::Component::Normal(_) | std::path::Component::RootDir
            )
        });
        let is_free = inside.is_absolute() && inside.parent().is_some() && !climbs;
        is_free
            && !RESERVED.iter().any(|reserved| {
                inside.starts_with(reserved) || Path::new(reserved).starts_with(inside)
            })
            && mount.host_path.is_absolute()
            && mount.host_path.exists()
            && !private_paths
                .iter()
                .any(|secret| overlap(secret, &canonical(&mount.host_path)))
    });
    for mount in bad {
        tracing::error!(host = %mount.host_path.display(), inside = %mount.container_path, "mount is ignored: a path is missing, relative or reserved, or exposes private files of this server");
    }
    good.into_iter()
        .map(|mount| Mount {
            host: mount.host_path.clone(),
            inside: mount.container_path.clone(),
            read_only: mount.read_only,
        })
        .collect()
}

fn overlap(a: &Path, b: &Path) -> bool {
    a.starts_with(b) || b.starts_with(a)
}

/// Resolves links in the existing part of a path.
pub(super) fn canonical(path: &Path) -> PathBuf {
    let existing = path
        .ancestors()
        .find_map(|ancestor| Some((ancestor, ancestor.canonicalize().ok()?)));
    existing.map_or_else(
        || path.to_owned(),
        |(ancestor, real)| {
            path.strip_prefix(ancestor)
                .map_or(real.clone(), |rest| real.join(rest))
        },
    )
}

/// Reports whether a variable influences which code shells and loaders execute: it would also
/// affect the processes that create the sandbox.
fn alters_program_startup(name: &str) -> bool {
    name.starts_with("LD_")
        || [
            "BASH_ENV",
            "ENV",
            "SHELLOPTS",
            "BASHOPTS",
            "PS4",
            "GCONV_PATH",
            "GLIBC_TUNABLES",
        ]
        .contains(&name)
}

/// Returns the configured variables with valid names.
pub(super) fn variables(sandbox: &SandboxConfig) -> Vec<(String, String)> {
    let is_name = |name: &str| {
        let mut bytes = name.bytes();
        bytes
            .next()
            .is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
            && bytes.all(|c| c.is_ascii_alphanumeric() || c == b'_')
    };
    let named = sandbox.environment.iter().filter(|(name, _)| {
        let good = is_name(name) && !alters_program_startup(name);
        if !good {
            tracing::error!(name, "variable of sandbox.environment is ignored: its name is invalid, or it changes what shells execute");
        }
        good
    });
    named
        .map(|(name, value)| (name.clone(), value.expose_secret().to_owned()))
        .collect()
}

fn host_variables(sandbox: &SandboxConfig, environment: &Environment) -> Vec<(String, String)> {
    let inherited = HOST_VARIABLES
        .iter()
        .filter_map(|name| Some(((*name).to_owned(), environment.get(name)?.to_owned())));
    inherited.chain(variables(sandbox)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn sandbox(value: Value) -> SandboxConfig {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn mounts_expose_no_private_path_and_cover_no_agent_folder() {
        let host = tempfile::tempdir().unwrap();
        let sandbox_impl = |name: &str| {
            let path = host.path().join(name);
            std::fs::create_dir_all(&path).unwrap();
            path
        };
        let (home, shared, link) = (
            sandbox_impl("srv/deer"),
            sandbox_impl("shared"),
            host.path().join("link"),
        );
        std::os::unix::fs::symlink(&home, &link).unwrap();
        let mount =
            |host: &Path, inside: &str| json!({"host_path": host, "container_path": inside});
        let config = sandbox(json!({"mounts": [
            mount(&shared, "/srv/shared"), mount(&home, "/srv/home"), mount(host.path(), "/srv/all"), mount(&link, "/srv/link"),
            mount(&shared, "/mnt"), mount(&shared, "/lib64/x"),
        ]}));
        let mounted: Vec<String> = mounts(&config, &[canonical(&home)])
            .into_iter()
            .map(|mount| mount.inside)
            .collect();
        assert_eq!(mounted, ["/srv/shared"]);
    }

    #[test]
    fn variables_that_affect_shells_are_ignored() {
        let config = sandbox(
            json!({"environment": {"TOKEN": "x", "LD_PRELOAD": "x", "BASH_ENV": "x", "1A": "x"}}),
        );
        let names: Vec<String> = variables(&config)
            .into_iter()
            .map(|(name, _)| name)
            .collect();
        assert_eq!(names, ["TOKEN"]);
    }
}

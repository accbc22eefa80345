//! Where shell commands run: the choice between containers, the kernel's sandbox, the bare host and nowhere.

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

/// What commands on the bare host get of this process' environment: nothing that is a secret.
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

/// Places inside that mounts may neither take nor stand above.
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

/// Where commands run, or why nowhere.
pub(super) type CommandPlace = Result<Arc<dyn CommandSandbox>, String>;

/// Whether an agent could run commands.
pub fn is_wanted(config: &AppConfig) -> bool {
    config.tools.iter().any(|tool| kind_of(tool) == "bash")
}

/// Tries the configured place out and says what it found.
pub(super) async fn open(
    handle: &ConfigHandle,
    settings: &Settings,
    mounts: Vec<Mount>,
    tasks: &Tasks,
) -> CommandPlace {
    let config = handle.current();
    if !is_wanted(&config) {
        return Err("no tool ran commands when this server was started: restart it".to_owned());
    }
    let sandbox = &config.sandbox;
    if containers::is_wanted(sandbox) {
        return containers::open(handle, settings, tasks).await;
    }
    if sandbox.allow_host_bash {
        tracing::warn!(
            "sandbox.allow_host_bash: commands of agents run on this host, as this user and without a sandbox"
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
            "sandbox.network: commands reach whatever this machine reaches, its own ports among it"
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
                "commands are refused: the sandbox does not hold here"
            );
            Err(report.missing_text())
        }
    }
}

fn limited(place: impl CommandSandbox, config: &SandboxConfig) -> Arc<dyn CommandSandbox> {
    Arc::new(LimitedCommandSandbox::new(
        place,
        config.max_commands,
        Duration::from_secs(config.acquire_timeout),
    ))
}

/// Tries the sandbox of a configuration out with files in `support`.
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
        hidden: hidden(handle, settings),
    })
}

/// What commands reach, with the proxy at work where there is one.
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
                format!("the proxy of sandboxed commands does not start: {error}")
            })?;
            Ok(Network::Proxied(Arc::new(proxy)))
        }
    }
}

/// This program, told to be what sandboxes begin with.
fn inner() -> Option<InnerProgram> {
    own_program::path().map(|program| InnerProgram {
        program,
        arguments: vec![SANDBOX_INNER.to_owned()],
    })
}

/// The folders that commands and file tools see beside those of their thread.
pub(super) fn mounted(handle: &ConfigHandle, settings: &Settings) -> Vec<Mount> {
    mounts(&handle.current().sandbox, &hidden(handle, settings))
}

/// What this server keeps for itself.
pub(super) fn hidden(handle: &ConfigHandle, settings: &Settings) -> Vec<PathBuf> {
    let root = handle.environment().project_root();
    let dotenv = [Some(root.as_path()), root.parent()]
        .into_iter()
        .flatten()
        .map(|folder| folder.join(".env"));
    // What servers of tools are reached with stands in the file of extensions.
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

/// The configured folders that can be mounted; the log tells of the others.
pub(super) fn mounts(sandbox: &SandboxConfig, hidden: &[PathBuf]) -> Vec<Mount> {
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
            && !hidden
                .iter()
                .any(|secret| overlap(secret, &canonical(&mount.host_path)))
    });
    for mount in bad {
        tracing::error!(host = %mount.host_path.display(), inside = %mount.container_path, "this mount is left out: a path is missing, relative or reserved, or shows what this server keeps for itself");
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

/// The path without links, as far as it is there.
pub(super) fn canonical(path: &Path) -> PathBuf {
    let there = path
        .ancestors()
        .find_map(|ancestor| Some((ancestor, ancestor.canonicalize().ok()?)));
    there.map_or_else(
        || path.to_owned(),
        |(ancestor, real)| {
            path.strip_prefix(ancestor)
                .map_or(real.clone(), |rest| real.join(rest))
        },
    )
}

/// Whether a variable tells shells and loaders what to run: those that make the sandbox would, too, before it is made.
fn tells_what_to_run(name: &str) -> bool {
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

/// The configured variables whose names a shell can say.
pub(super) fn variables(sandbox: &SandboxConfig) -> Vec<(String, String)> {
    let is_name = |name: &str| {
        let mut letters = name.bytes();
        letters
            .next()
            .is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
            && letters.all(|c| c.is_ascii_alphanumeric() || c == b'_')
    };
    let named = sandbox.environment.iter().filter(|(name, _)| {
        let good = is_name(name) && !tells_what_to_run(name);
        if !good {
            tracing::error!(name, "this variable of sandbox.environment is left out: a shell cannot say its name, or obeys it");
        }
        good
    });
    named
        .map(|(name, value)| (name.clone(), value.expose_secret().to_owned()))
        .collect()
}

fn host_variables(sandbox: &SandboxConfig, environment: &Environment) -> Vec<(String, String)> {
    let kept = HOST_VARIABLES
        .iter()
        .filter_map(|name| Some(((*name).to_owned(), environment.get(name)?.to_owned())));
    kept.chain(variables(sandbox)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn sandbox(value: Value) -> SandboxConfig {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn no_mount_shows_what_the_server_keeps_for_itself_or_stands_above_a_folder_of_the_agent() {
        let host = tempfile::tempdir().unwrap();
        let place = |name: &str| {
            let path = host.path().join(name);
            std::fs::create_dir_all(&path).unwrap();
            path
        };
        let (home, shared, link) = (place("srv/deer"), place("shared"), host.path().join("link"));
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
    fn variables_that_shells_obey_are_left_out() {
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

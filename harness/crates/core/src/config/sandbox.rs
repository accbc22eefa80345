//! `sandbox`: isolation of commands and files of tools.

use std::collections::BTreeMap;
use std::path::PathBuf;

use secrecy::SecretString;
use serde::Deserialize;

use super::check::Checker;
use super::open_keys::{OpenKeys, optional_secret};
#[cfg(feature = "http")]
use crate::net::{BadEntry, HostRules};

/// Sandbox of every thread.
#[derive(Debug, Clone, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct SandboxConfig {
    /// Provider: `local`, or the class path of an older configuration.
    #[serde(rename = "use")]
    pub provider: String,
    /// Runs shell commands on the host, as the user of this process and without isolation.
    pub allow_host_bash: bool,
    /// Network access of sandboxed commands.
    pub network: SandboxNetworkConfig,
    /// Resource limits of one sandboxed command.
    pub limits: SandboxLimitsConfig,
    /// Maximum number of concurrent commands in this process. Further commands wait up to
    /// `acquire_timeout` seconds and are then refused.
    pub max_commands: usize,
    /// Container image.
    pub image: Option<String>,
    /// First host port of containers.
    pub port: Option<u16>,
    /// Maximum number of sandboxes at the same time.
    pub replicas: Option<u64>,
    /// Behaviour while `replicas` sandboxes are in use.
    pub overflow_policy: OverflowPolicy,
    /// Maximum wait for a free sandbox, in seconds.
    pub acquire_timeout: u64,
    /// Additional sandboxes under `overflow_policy: burst`.
    pub burst_limit: u64,
    /// Prefix of container names.
    pub container_prefix: Option<String>,
    /// Idle time after which a sandbox is released, in seconds; 0 for never.
    pub idle_timeout: Option<u64>,
    /// Time during which a successful health check is not repeated, in seconds.
    pub health_check_skip_seconds: Option<f64>,
    /// Ownership of sandboxes that several processes share.
    pub ownership: Option<SandboxOwnershipConfig>,
    /// Additional host folders.
    pub mounts: Vec<VolumeMountConfig>,
    /// Mounts the thread's folders.
    pub thread_data_mounts: Option<bool>,
    /// Environment variables inside the sandbox. Values may be secret.
    pub environment: BTreeMap<String, SecretString>,
    /// Maximum output of a shell command, in characters; 0 for no limit.
    pub bash_output_max_chars: usize,
    /// Maximum output of reading a file, in characters; 0 for no limit.
    pub read_file_output_max_chars: usize,
    /// Maximum length of a folder listing, in characters; 0 for no limit.
    pub ls_output_max_chars: usize,
    /// Timeout of a shell command, in seconds.
    pub bash_command_timeout: u64,
    /// Address of the service that creates containers in a cluster; without it, a container engine
    /// on this machine creates them.
    pub provisioner_url: Option<String>,
    /// API key of the provisioner service.
    #[serde(deserialize_with = "optional_secret")]
    pub provisioner_api_key: Option<SecretString>,
    /// All other keys, which are passed to the provider.
    #[serde(flatten)]
    pub extra: OpenKeys,
}

impl Default for SandboxConfig {
    fn default() -> Self {
        Self {
            provider: "local".to_owned(),
            allow_host_bash: false,
            network: SandboxNetworkConfig::None,
            limits: SandboxLimitsConfig::default(),
            max_commands: 32,
            image: None,
            port: None,
            replicas: None,
            overflow_policy: OverflowPolicy::Wait,
            acquire_timeout: 30,
            burst_limit: 0,
            container_prefix: None,
            idle_timeout: None,
            health_check_skip_seconds: None,
            ownership: None,
            mounts: Vec::new(),
            thread_data_mounts: None,
            environment: BTreeMap::new(),
            bash_output_max_chars: 20_000,
            read_file_output_max_chars: 50_000,
            ls_output_max_chars: 20_000,
            bash_command_timeout: 600,
            provisioner_url: None,
            provisioner_api_key: None,
            extra: OpenKeys::default(),
        }
    }
}

impl SandboxConfig {
    pub(super) fn check(&self, check: &mut Checker) {
        check.not_blank("use", &self.provider);
        check.within_if_set("replicas", self.replicas, 1..);
        check.within("acquire_timeout", self.acquire_timeout, 1..);
        check.within("max_commands", self.max_commands, 1..=1 << 16);
        check.within_if_set(
            "health_check_skip_seconds",
            self.health_check_skip_seconds,
            0.0..,
        );
        check.within("bash_command_timeout", self.bash_command_timeout, 1..);
        self.network.check(check);
        check.under("limits", |check| self.limits.check(check));
        if let Some(ownership) = &self.ownership {
            check.under("ownership", |check| ownership.check(check));
        }
    }
}

/// Network access of sandboxed commands: `false`, `true`, `{allow: [..]}` or `host`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(try_from = "NetworkSetting")]
#[non_exhaustive]
pub enum SandboxNetworkConfig {
    /// No access.
    #[default]
    None,
    /// Public hosts, through a proxy.
    Public,
    /// These hosts, through a proxy.
    Allow(Vec<String>),
    /// All hosts that this machine reaches, including itself.
    Host,
}

#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "allowed: false, true, host, or a list of hosts under `allow`"
)]
enum NetworkSetting {
    Switch(bool),
    Word(String),
    Hosts(AllowedHosts),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AllowedHosts {
    allow: Vec<String>,
}

impl TryFrom<NetworkSetting> for SandboxNetworkConfig {
    type Error = String;

    fn try_from(written: NetworkSetting) -> Result<Self, String> {
        match written {
            NetworkSetting::Switch(false) => Ok(Self::None),
            NetworkSetting::Switch(true) => Ok(Self::Public),
            NetworkSetting::Hosts(AllowedHosts { allow }) => Ok(Self::Allow(allow)),
            // A value from an environment variable is always a text.
            NetworkSetting::Word(word) => match word.as_str() {
                "false" => Ok(Self::None),
                "true" => Ok(Self::Public),
                "host" => Ok(Self::Host),
                _ => Err(format!(
                    "'{word}', allowed: false, true, host, or a list of hosts under `allow`"
                )),
            },
        }
    }
}

impl SandboxNetworkConfig {
    /// Returns the rules of the proxy, if commands reach the network through one.
    #[cfg(feature = "http")]
    pub fn rules(&self) -> Option<Result<HostRules, BadEntry>> {
        match self {
            Self::None | Self::Host => None,
            Self::Public => Some(Ok(HostRules::any_public())),
            Self::Allow(hosts) => Some(HostRules::only(hosts)),
        }
    }

    fn check(&self, check: &mut Checker) {
        #[cfg(feature = "http")]
        if let Some(Err(BadEntry(entry))) = self.rules() {
            check.refuse("network", format!("'{entry}'"), BadEntry::ALLOWED);
        }
        #[cfg(not(feature = "http"))]
        let _unused = check;
    }
}

/// Resource limits of one sandboxed command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct SandboxLimitsConfig {
    /// Maximum number of processes and threads.
    pub processes: u64,
    /// Memory of one process, or of all together if control groups are available, in MiB.
    pub memory_mb: u64,
    /// Maximum size of a written file, in MiB.
    pub file_mb: u64,
    /// Maximum number of open files of one process.
    pub open_files: u64,
    /// CPU time of one process, in seconds.
    pub cpu_seconds: u64,
    /// Size of the private `/tmp`, which is in memory, in MiB.
    pub scratch_mb: u64,
    /// Maximum output before the command is terminated, in MiB.
    pub output_mb: u64,
}

impl Default for SandboxLimitsConfig {
    fn default() -> Self {
        Self {
            processes: 256,
            memory_mb: 2048,
            file_mb: 1024,
            open_files: 1024,
            cpu_seconds: 3600,
            scratch_mb: 512,
            output_mb: 64,
        }
    }
}

impl SandboxLimitsConfig {
    fn check(&self, check: &mut Checker) {
        const MAX_MB: u64 = 1 << 30;
        check.within("processes", self.processes, 4..=1 << 20);
        check.within("memory_mb", self.memory_mb, 16..=MAX_MB);
        check.within("file_mb", self.file_mb, 1..=MAX_MB);
        check.within("open_files", self.open_files, 16..=1 << 20);
        check.within("cpu_seconds", self.cpu_seconds, 1..=1 << 30);
        check.within("scratch_mb", self.scratch_mb, 1..=MAX_MB);
        check.within("output_mb", self.output_mb, 1..=MAX_MB);
    }
}

/// Behaviour of a request while all sandboxes are in use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum OverflowPolicy {
    /// Waits up to `acquire_timeout`.
    #[default]
    Wait,
    /// Fails at once.
    Reject,
    /// Uses one of `burst_limit` additional sandboxes.
    Burst,
}

/// Ownership of shared sandboxes.
#[derive(Debug, Clone, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct SandboxOwnershipConfig {
    /// Storage of ownership records.
    #[serde(rename = "type")]
    pub kind: SandboxOwnershipKind,
    /// Redis address, for `type: redis`.
    #[serde(deserialize_with = "optional_secret")]
    pub redis_url: Option<SecretString>,
    /// Interval between renewals, in seconds.
    pub renewal_interval_seconds: f64,
    /// Number of renewal intervals after which ownership expires.
    pub ttl_multiplier: f64,
    /// Prefix of the Redis keys.
    pub key_prefix: String,
}

impl Default for SandboxOwnershipConfig {
    fn default() -> Self {
        Self {
            kind: SandboxOwnershipKind::Memory,
            redis_url: None,
            renewal_interval_seconds: 30.0,
            ttl_multiplier: 4.0,
            key_prefix: "deerflow:sandbox:owner".to_owned(),
        }
    }
}

impl SandboxOwnershipConfig {
    fn check(&self, check: &mut Checker) {
        check.positive("renewal_interval_seconds", self.renewal_interval_seconds);
        check.within("ttl_multiplier", self.ttl_multiplier, 2.0..);
    }
}

/// Storage of ownership records.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum SandboxOwnershipKind {
    /// Memory of this process.
    #[default]
    Memory,
    /// Redis.
    Redis,
}

/// Host folder inside the sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct VolumeMountConfig {
    /// Folder on the host.
    pub host_path: PathBuf,
    /// Path inside the sandbox.
    pub container_path: String,
    /// Denies writes.
    #[serde(default)]
    pub read_only: bool,
}

//! `sandbox`: where tools run commands and touch files.

use std::collections::BTreeMap;
use std::path::PathBuf;

use secrecy::SecretString;
use serde::Deserialize;

use super::check::Checker;
use super::open_keys::{OpenKeys, optional_secret};
#[cfg(feature = "http")]
use crate::net::{BadEntry, HostRules};

/// The sandbox of every thread.
#[derive(Debug, Clone, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct SandboxConfig {
    /// The provider: `local`, or the class path of an older configuration.
    #[serde(rename = "use")]
    pub provider: String,
    /// Run shell commands on the host, as this process' user and without a sandbox.
    pub allow_host_bash: bool,
    /// What sandboxed commands reach of the network.
    pub network: SandboxNetworkConfig,
    /// What one sandboxed command may use.
    pub limits: SandboxLimitsConfig,
    /// How many commands run at once in this process. Those beyond wait for `acquire_timeout` seconds and are refused then.
    pub max_commands: usize,
    /// Container image.
    pub image: Option<String>,
    /// First host port of containers.
    pub port: Option<u16>,
    /// How many sandboxes may live at once.
    pub replicas: Option<u64>,
    /// What happens when `replicas` are in use.
    pub overflow_policy: OverflowPolicy,
    /// Seconds to wait for a free sandbox.
    pub acquire_timeout: u64,
    /// Sandboxes beyond `replicas` under `overflow_policy: burst`.
    pub burst_limit: u64,
    /// Prefix of container names.
    pub container_prefix: Option<String>,
    /// Seconds without use after which a sandbox is given up; 0 keeps it.
    pub idle_timeout: Option<u64>,
    /// Seconds during which a fresh health check is not repeated.
    pub health_check_skip_seconds: Option<f64>,
    /// Who owns a sandbox when several processes share them.
    pub ownership: Option<SandboxOwnershipConfig>,
    /// Extra host directories.
    pub mounts: Vec<VolumeMountConfig>,
    /// Mount the thread's directories.
    pub thread_data_mounts: Option<bool>,
    /// Environment inside the sandbox. Values may be secret.
    pub environment: BTreeMap<String, SecretString>,
    /// Longest output of a shell command, in characters; 0 means no limit.
    pub bash_output_max_chars: usize,
    /// Longest output of reading a file, in characters; 0 means no limit.
    pub read_file_output_max_chars: usize,
    /// Longest listing, in characters; 0 means no limit.
    pub ls_output_max_chars: usize,
    /// Seconds a shell command may take.
    pub bash_command_timeout: u64,
    /// Where the service is that makes containers in a cluster; without one an engine on this machine makes them.
    pub provisioner_url: Option<String>,
    /// Key of the provisioner service.
    #[serde(deserialize_with = "optional_secret")]
    pub provisioner_api_key: Option<SecretString>,
    /// Every other key, for the provider.
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

/// What sandboxed commands reach of the network: `false`, `true`, `{allow: [..]}` or `host`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(try_from = "WrittenNetwork")]
#[non_exhaustive]
pub enum SandboxNetworkConfig {
    /// Nothing.
    #[default]
    None,
    /// Public hosts, through a proxy.
    Public,
    /// These hosts, through a proxy.
    Allow(Vec<String>),
    /// All that this machine reaches, itself among it.
    Host,
}

#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "allowed: false, true, host, or a list of hosts under `allow`"
)]
enum WrittenNetwork {
    Switch(bool),
    Word(String),
    Hosts(AllowedHosts),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AllowedHosts {
    allow: Vec<String>,
}

impl TryFrom<WrittenNetwork> for SandboxNetworkConfig {
    type Error = String;

    fn try_from(written: WrittenNetwork) -> Result<Self, String> {
        match written {
            WrittenNetwork::Switch(false) => Ok(Self::None),
            WrittenNetwork::Switch(true) => Ok(Self::Public),
            WrittenNetwork::Hosts(AllowedHosts { allow }) => Ok(Self::Allow(allow)),
            // By a variable everything is a word.
            WrittenNetwork::Word(word) => match word.as_str() {
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
    /// The hosts that a proxy is to lead to, where commands reach some through one.
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
        let _nothing_to_read_hosts_with = check;
    }
}

/// What one sandboxed command may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct SandboxLimitsConfig {
    /// Processes and threads at once.
    pub processes: u64,
    /// MiB of memory of one process; of all together where control groups can be made.
    pub memory_mb: u64,
    /// MiB of the longest file it may write.
    pub file_mb: u64,
    /// Open files of one process.
    pub open_files: u64,
    /// Seconds of processor time of one process.
    pub cpu_seconds: u64,
    /// MiB of its private `/tmp`, which lies in memory.
    pub scratch_mb: u64,
    /// MiB that it may print before it is ended.
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
        const MOST_MB: u64 = 1 << 30;
        check.within("processes", self.processes, 4..=1 << 20);
        check.within("memory_mb", self.memory_mb, 16..=MOST_MB);
        check.within("file_mb", self.file_mb, 1..=MOST_MB);
        check.within("open_files", self.open_files, 16..=1 << 20);
        check.within("cpu_seconds", self.cpu_seconds, 1..=1 << 30);
        check.within("scratch_mb", self.scratch_mb, 1..=MOST_MB);
        check.within("output_mb", self.output_mb, 1..=MOST_MB);
    }
}

/// What a request for a sandbox meets when all are in use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum OverflowPolicy {
    /// It waits for `acquire_timeout`.
    #[default]
    Wait,
    /// It fails at once.
    Reject,
    /// It gets one of `burst_limit` more.
    Burst,
}

/// Ownership of shared sandboxes.
#[derive(Debug, Clone, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct SandboxOwnershipConfig {
    /// Where owners are recorded.
    #[serde(rename = "type")]
    pub kind: SandboxOwnershipKind,
    /// Redis address, when recorded there.
    #[serde(deserialize_with = "optional_secret")]
    pub redis_url: Option<SecretString>,
    /// Seconds between renewals.
    pub renewal_interval_seconds: f64,
    /// How many renewals may fail before ownership lapses.
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

/// Where owners of sandboxes are recorded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum SandboxOwnershipKind {
    /// In this process.
    #[default]
    Memory,
    /// In Redis.
    Redis,
}

/// A host directory inside the sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct VolumeMountConfig {
    /// The directory on the host.
    pub host_path: PathBuf,
    /// Where it appears inside.
    pub container_path: String,
    /// Refuse writes.
    #[serde(default)]
    pub read_only: bool,
}

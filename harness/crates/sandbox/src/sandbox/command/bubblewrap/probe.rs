//! Probe of the sandbox before its use: which layers work here, and why others do not.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::{BubblewrapCommandSandbox, BubblewrapOptions, Cgroups, Support, SystemView, filter};
use crate::sandbox::command::spawner::Spawner;
use crate::sandbox::command::{CommandEnd, CommandRequest, CommandSandbox, Transcript};
use crate::sandbox::safe_fs::Resolver;
use crate::sandbox::skill_mounts::SkillMounts;
use crate::sandbox::thread_dirs::ThreadDirs;
use deerflow_core::ids::ThreadId;

/// Folders of system programs.
const PROGRAM_FOLDERS: &[&str] = &[
    "/usr/bin",
    "/bin",
    "/usr/local/bin",
    "/run/current-system/sw/bin",
];
const PROBE_TIMEOUT: Duration = Duration::from_secs(10);
/// Script that runs in the probed sandbox; its output has one part per check.
const PROBE_SCRIPT: &str = "cat /proc/self/status; echo ==; cat /proc/net/dev; echo ==
{ : >> /usr/.deerflow-probe; } 2>&- && echo writable: /usr
{ : >> /proc/sys/kernel/core_pattern; } 2>&- && echo writable: /proc/sys
{ : > /dev/null; } 2>&- || echo no devices
{ : >> /dev/random; } 2>&- && echo not locked";

/// A layer of isolation between a command and this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layer {
    /// `bwrap` and `bash` are installed.
    Programs,
    /// Own namespaces for users, mounts, processes, IPC, host name and control groups.
    Namespaces,
    /// No capabilities, and no means to gain any.
    Privileges,
    /// Dangerous system calls are refused.
    SystemCalls,
    /// No network except its own loopback.
    Network,
    /// The system's folders and settings are read-only, and the harmless devices exist.
    ReadOnlySystem,
    /// The kernel also restricts writes with Landlock, in addition to the mounts.
    WriteLock,
    /// The number of its processes is limited.
    ProcessLimit,
    /// The memory of all its processes together is limited.
    MemorySum,
    /// The kernel itself, not only the filter, rejects further user namespaces.
    NestedNamespaces,
}

impl Layer {
    /// Reports whether commands are rejected without this layer.
    pub fn is_required(self) -> bool {
        !matches!(
            self,
            Self::WriteLock | Self::MemorySum | Self::NestedNamespaces
        )
    }
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Programs => "programs",
            Self::Namespaces => "namespaces",
            Self::Privileges => "no privileges",
            Self::SystemCalls => "system call filter",
            Self::Network => "network of its own",
            Self::ReadOnlySystem => "read-only system",
            Self::WriteLock => "write lock (Landlock)",
            Self::ProcessLimit => "process limit",
            Self::MemorySum => "memory limit of all processes together",
            Self::NestedNamespaces => "no nested namespaces",
        })
    }
}

/// Result of probing one layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayerReport {
    /// The layer.
    pub layer: Layer,
    /// Reason why it does not work; `None` if it works.
    pub missing: Option<String>,
}

/// Results for all probed layers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProbeReport {
    /// Results per layer.
    pub layers: Vec<LayerReport>,
}

impl ProbeReport {
    /// Reports whether all required layers work.
    pub fn suffices(&self) -> bool {
        self.missing().all(|report| !report.layer.is_required())
    }

    /// Names of the working layers, separated by commas.
    pub fn active(&self) -> String {
        let active = self.layers.iter().filter(|report| report.missing.is_none());
        active
            .map(|report| report.layer.to_string())
            .collect::<Vec<_>>()
            .join(", ")
    }

    /// Reasons for all missing layers.
    pub fn missing_text(&self) -> String {
        let texts = self.missing().map(|report| {
            format!(
                "{}: {}",
                report.layer,
                report.missing.as_deref().unwrap_or_default()
            )
        });
        texts.collect::<Vec<_>>().join("; ")
    }

    fn missing(&self) -> impl Iterator<Item = &LayerReport> {
        self.layers.iter().filter(|report| report.missing.is_some())
    }

    fn add(&mut self, layer: Layer, holds: bool, otherwise: impl Into<String>) {
        self.layers.push(LayerReport {
            layer,
            missing: (!holds).then(|| otherwise.into()),
        });
    }

    /// Replaces the reason of a missing layer.
    fn set_reason(&mut self, layer: Layer, why: &str) {
        for report in self
            .layers
            .iter_mut()
            .filter(|report| report.layer == layer && report.missing.is_some())
        {
            report.missing = Some(why.to_owned());
        }
    }

    fn without(layer: Layer, why: impl Into<String>) -> Self {
        Self {
            layers: vec![LayerReport {
                layer,
                missing: Some(why.into()),
            }],
        }
    }
}

impl BubblewrapCommandSandbox {
    /// Creates a sandbox and probes it. Returns the sandbox only if every required layer works.
    pub async fn open(options: BubblewrapOptions) -> (Option<Self>, ProbeReport) {
        match Self::probe(options).await {
            Ok((sandbox, report)) => (report.suffices().then_some(sandbox), report),
            Err(report) => (None, report),
        }
    }

    async fn probe(options: BubblewrapOptions) -> Result<(Self, ProbeReport), ProbeReport> {
        let program = |name: &str| {
            let found = PROGRAM_FOLDERS
                .iter()
                .map(|folder| Path::new(folder).join(name))
                .find(|path| path.is_file());
            found.ok_or_else(|| {
                ProbeReport::without(Layer::Programs, format!("`{name}` is not installed"))
            })
        };
        let (bwrap, bash) = (program("bwrap")?, program("bash")?);
        let unusable =
            |error: &dyn fmt::Display| ProbeReport::without(Layer::Namespaces, error.to_string());
        let filter = filter::program()
            .map_err(|error| ProbeReport::without(Layer::SystemCalls, error.to_string()))?;
        let support =
            Support::create(&options.support, &filter).map_err(|error| unusable(&error))?;
        if options.network.egress_provider().is_some() && options.inner.is_none() {
            return Err(ProbeReport::without(
                Layer::Network,
                "the proxy needs the inner program of the sandbox",
            ));
        }
        let mut sandbox = Self {
            bwrap,
            bash,
            system: SystemView::collect(&options, &support),
            filter: support.filter,
            cgroups: Cgroups::find(&options.limits),
            userns_can_be_disabled: true,
            spawner: Spawner::start().map_err(|error| unusable(&error))?,
            options,
        };
        let output = match sandbox.run_probe_script().await {
            Ok(output) => output,
            Err(_) => {
                sandbox.userns_can_be_disabled = false;
                sandbox
                    .run_probe_script()
                    .await
                    .map_err(|why| unusable(&why))?
            }
        };
        let mut report = evaluate(&output, sandbox.options.network.is_shared());
        if sandbox.options.inner.is_none() {
            report.set_reason(Layer::WriteLock, "no inner program was configured");
        }
        let is_counted = sandbox.cgroups.is_some() || !rustix::process::geteuid().is_root();
        report.add(
            Layer::ProcessLimit,
            is_counted,
            "the kernel does not count root's processes: run as another user or with control groups",
        );
        report.add(
            Layer::MemorySum,
            sandbox.cgroups.is_some(),
            "this process may not create control groups for memory and processes",
        );
        let disabled = sandbox.userns_can_be_disabled;
        report.add(
            Layer::NestedNamespaces,
            disabled,
            "this bwrap cannot disable them (0.8 can); the filter refuses them",
        );
        Ok((sandbox, report))
    }

    async fn run_probe_script(&self) -> Result<String, String> {
        let home: Arc<Path> = self.options.support.join("probe").into();
        let Ok(thread) = ThreadId::parse("probe") else {
            return Err("no thread id for the probe".to_owned());
        };
        let dirs = ThreadDirs::new(home, Resolver::detect(), "probe", &thread);
        let mut transcript = Transcript::with_limit(64 * 1024);
        let request = CommandRequest {
            dirs: &dirs,
            shelf: &SkillMounts::default(),
            command: PROBE_SCRIPT,
            time_limit: PROBE_TIMEOUT,
        };
        let end = self
            .run(request, &mut transcript)
            .await
            .map_err(|error| error.to_string())?;
        match end {
            CommandEnd::Exited(_) if transcript.out().contains("==") => Ok(transcript.out()),
            CommandEnd::Exited(_) => Err(transcript.err().trim().to_owned()),
            _ => Err(format!("no answer within {} s", PROBE_TIMEOUT.as_secs())),
        }
    }
}

/// Evaluates the output of [`PROBE_SCRIPT`] for the layers that are visible from inside.
fn evaluate(output: &str, shares_network: bool) -> ProbeReport {
    let mut parts = output.split("==\n");
    let (status, interfaces, rest) = (
        parts.next().unwrap_or(""),
        parts.next().unwrap_or(""),
        parts.next().unwrap_or(""),
    );
    let field = |name: &str| {
        status
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
            .map_or("", str::trim)
    };
    let is_zero =
        |name: &str| !field(name).is_empty() && field(name).bytes().all(|digit| digit == b'0');
    let is_locked = !rest.contains("not locked\n");
    let mut report = ProbeReport::default();
    report.add(Layer::Programs, true, "");
    report.add(Layer::Namespaces, true, "");
    let is_unprivileged = is_zero("CapEff") && is_zero("CapBnd") && field("NoNewPrivs") == "1";
    report.add(
        Layer::Privileges,
        is_unprivileged,
        "a command would keep capabilities",
    );
    report.add(
        Layer::SystemCalls,
        field("Seccomp") == "2",
        "the kernel accepted no filter",
    );
    if !shares_network {
        let others = interfaces
            .lines()
            .filter_map(|line| line.split_once(':'))
            .any(|(name, _)| name.trim() != "lo");
        report.add(
            Layer::Network,
            !others,
            "a command would see interfaces of this machine",
        );
    }
    let rest = rest.replace("not locked\n", "");
    report.add(
        Layer::ReadOnlySystem,
        rest.is_empty(),
        format!("a command would find: {}", rest.trim()),
    );
    report.add(Layer::WriteLock, is_locked, "this kernel has no Landlock");
    report
}

#[cfg(test)]
mod tests {
    use super::*;

    const RESTRICTED_STATUS: &str = "Name:\tcat\nCapEff:\t0000000000000000\nCapBnd:\t0000000000000000\nNoNewPrivs:\t1\nSeccomp:\t2\n==\n\
                        Inter-|   Receive\n face |bytes\n    lo:       0\n==\n";

    #[test]
    fn evaluate_accepts_complete_sandbox() {
        assert!(evaluate(RESTRICTED_STATUS, false).suffices());
        assert_eq!(evaluate(RESTRICTED_STATUS, false).missing_text(), "");
        let unlocked = evaluate(&format!("{RESTRICTED_STATUS}not locked\n"), false);
        assert!(
            unlocked.suffices() && unlocked.missing_text().starts_with("write lock"),
            "{unlocked:?}"
        );
    }

    #[test]
    fn evaluate_names_each_missing_layer() {
        for (good, bad, named) in [
            (
                "CapBnd:\t0000000000000000",
                "CapBnd:\t000001ffffffffff",
                "no privileges",
            ),
            ("NoNewPrivs:\t1", "NoNewPrivs:\t0", "no privileges"),
            ("Seccomp:\t2", "Seccomp:\t0", "system call filter"),
            ("    lo:", "  eth0:", "network of its own"),
            (
                "lo:       0\n==\n",
                "lo:       0\n==\nwritable: /usr\n",
                "read-only system",
            ),
            (
                "lo:       0\n==\n",
                "lo:       0\n==\nnot locked\nwritable: /usr\n",
                "read-only system",
            ),
            (RESTRICTED_STATUS, "", "no privileges"),
        ] {
            let report = evaluate(&RESTRICTED_STATUS.replace(good, bad), false);
            assert!(
                !report.suffices() && report.missing_text().contains(named),
                "{bad}: {report:?}"
            );
        }
        assert!(
            evaluate(&RESTRICTED_STATUS.replace("    lo:", "  eth0:"), true).suffices(),
            "shared network"
        );
    }
}

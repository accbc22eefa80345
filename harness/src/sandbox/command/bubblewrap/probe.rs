//! Trying the sandbox out before anything is trusted to it: which layers hold here, and why the others do not.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::{BubblewrapCommandSandbox, BubblewrapOptions, Cgroups, Support, SystemView, filter};
use crate::ids::ThreadId;
use crate::sandbox::command::spawner::Spawner;
use crate::sandbox::command::{CommandEnd, CommandRequest, CommandSandbox, Transcript};
use crate::sandbox::safe_fs::Resolver;
use crate::sandbox::shelf::Shelf;
use crate::sandbox::thread_dirs::ThreadDirs;

/// Where programs of the system are.
const PROGRAM_FOLDERS: &[&str] = &[
    "/usr/bin",
    "/bin",
    "/usr/local/bin",
    "/run/current-system/sw/bin",
];
const PROBE_LIMIT: Duration = Duration::from_secs(10);
/// What is run in the sandbox that is tried; its answer has a part for each look.
const LOOKS: &str = "cat /proc/self/status; echo ==; cat /proc/net/dev; echo ==
{ : >> /usr/.deerflow-probe; } 2>&- && echo writable: /usr
{ : >> /proc/sys/kernel/core_pattern; } 2>&- && echo writable: /proc/sys
{ : > /dev/null; } 2>&- || echo no devices
{ : >> /dev/random; } 2>&- && echo not locked";

/// One of the things that stand between a command and this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layer {
    /// `bwrap` and `bash` are there.
    Programs,
    /// Users, mounts, processes, messages, host name and control groups of its own.
    Namespaces,
    /// No capabilities, and no way to get any.
    Privileges,
    /// Dangerous system calls are refused.
    SystemCalls,
    /// No network but its own loopback.
    Network,
    /// The system's folders and settings cannot be written to, and its harmless devices are there.
    ReadOnlySystem,
    /// The kernel keeps what is not to be written to locked, beside the mounts.
    WriteLock,
    /// Its processes are counted.
    ProcessLimit,
    /// What all its processes hold in memory together is limited.
    MemorySum,
    /// The kernel itself refuses further user namespaces, not the filter alone.
    NestedNamespaces,
}

impl Layer {
    /// Whether commands are refused without it.
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

/// Whether a layer holds here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayerReport {
    /// Which.
    pub layer: Layer,
    /// Why it does not, if it does not.
    pub missing: Option<String>,
}

/// What was found of every layer that was asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProbeReport {
    /// The layers.
    pub layers: Vec<LayerReport>,
}

impl ProbeReport {
    /// Whether everything holds that commands are refused without.
    pub fn suffices(&self) -> bool {
        self.missing().all(|report| !report.layer.is_required())
    }

    /// The layers that hold, by name.
    pub fn active(&self) -> String {
        let active = self.layers.iter().filter(|report| report.missing.is_none());
        active
            .map(|report| report.layer.to_string())
            .collect::<Vec<_>>()
            .join(", ")
    }

    /// Why layers do not hold.
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

    /// Names another reason for a layer that does not hold.
    fn say_why(&mut self, layer: Layer, why: &str) {
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
    /// Makes a sandbox here and looks around in it. The sandbox is given only where every required layer holds.
    pub async fn open(options: BubblewrapOptions) -> (Option<Self>, ProbeReport) {
        match Self::try_out(options).await {
            Ok((sandbox, report)) => (report.suffices().then_some(sandbox), report),
            Err(report) => (None, report),
        }
    }

    async fn try_out(options: BubblewrapOptions) -> Result<(Self, ProbeReport), ProbeReport> {
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
        let support = Support::make(&options.support, &filter).map_err(|error| unusable(&error))?;
        if options.network.way_out().is_some() && options.inner.is_none() {
            return Err(ProbeReport::without(
                Layer::Network,
                "the way to a proxy needs a program that sandboxes begin with",
            ));
        }
        let mut sandbox = Self {
            bwrap,
            bash,
            system: SystemView::look(&options, &support),
            filter: support.filter,
            cgroups: Cgroups::find(&options.limits),
            userns_can_be_disabled: true,
            spawner: Spawner::start().map_err(|error| unusable(&error))?,
            options,
        };
        let seen = match sandbox.look_around().await {
            Ok(seen) => seen,
            Err(_) => {
                sandbox.userns_can_be_disabled = false;
                sandbox.look_around().await.map_err(|why| unusable(&why))?
            }
        };
        let mut report = judge(&seen, sandbox.options.network.is_shared());
        if sandbox.options.inner.is_none() {
            report.say_why(
                Layer::WriteLock,
                "no program was given that a sandbox begins with",
            );
        }
        let is_counted = sandbox.cgroups.is_some() || !rustix::process::geteuid().is_root();
        report.add(
            Layer::ProcessLimit,
            is_counted,
            "the kernel does not count root's processes: run as another user, or with control groups",
        );
        report.add(
            Layer::MemorySum,
            sandbox.cgroups.is_some(),
            "this process may not make control groups for memory and processes",
        );
        let disabled = sandbox.userns_can_be_disabled;
        report.add(
            Layer::NestedNamespaces,
            disabled,
            "this bwrap cannot disable them (0.8 can); the filter refuses them",
        );
        Ok((sandbox, report))
    }

    async fn look_around(&self) -> Result<String, String> {
        let home: Arc<Path> = self.options.support.join("probe").into();
        let Ok(thread) = ThreadId::parse("probe") else {
            return Err("no thread to try it with".to_owned());
        };
        let dirs = ThreadDirs::new(home, Resolver::detect(), "probe", &thread);
        let mut transcript = Transcript::keeping(64 * 1024);
        let request = CommandRequest {
            dirs: &dirs,
            shelf: &Shelf::default(),
            command: LOOKS,
            time_limit: PROBE_LIMIT,
        };
        let end = self
            .run(request, &mut transcript)
            .await
            .map_err(|error| error.to_string())?;
        match end {
            CommandEnd::Exited(_) if transcript.out().contains("==") => Ok(transcript.out()),
            CommandEnd::Exited(_) => Err(transcript.err().trim().to_owned()),
            _ => Err(format!("no answer within {} s", PROBE_LIMIT.as_secs())),
        }
    }
}

/// What the answer of [`LOOKS`] says of the layers that can be seen from inside.
fn judge(seen: &str, shares_network: bool) -> ProbeReport {
    let mut parts = seen.split("==\n");
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
    let powerless = is_zero("CapEff") && is_zero("CapBnd") && field("NoNewPrivs") == "1";
    report.add(
        Layer::Privileges,
        powerless,
        "a command would keep capabilities",
    );
    report.add(
        Layer::SystemCalls,
        field("Seccomp") == "2",
        "the kernel took no filter",
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

    const GOOD: &str = "Name:\tcat\nCapEff:\t0000000000000000\nCapBnd:\t0000000000000000\nNoNewPrivs:\t1\nSeccomp:\t2\n==\n\
                        Inter-|   Receive\n face |bytes\n    lo:       0\n==\n";

    #[test]
    fn a_sandbox_that_holds_suffices() {
        assert!(judge(GOOD, false).suffices());
        assert_eq!(judge(GOOD, false).missing_text(), "");
        let unlocked = judge(&format!("{GOOD}not locked\n"), false);
        assert!(
            unlocked.suffices() && unlocked.missing_text().starts_with("write lock"),
            "{unlocked:?}"
        );
    }

    #[test]
    fn every_layer_that_does_not_hold_is_named_and_refuses_commands() {
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
            (GOOD, "", "no privileges"),
        ] {
            let report = judge(&GOOD.replace(good, bad), false);
            assert!(
                !report.suffices() && report.missing_text().contains(named),
                "{bad}: {report:?}"
            );
        }
        assert!(
            judge(&GOOD.replace("    lo:", "  eth0:"), true).suffices(),
            "where it is wanted"
        );
    }
}

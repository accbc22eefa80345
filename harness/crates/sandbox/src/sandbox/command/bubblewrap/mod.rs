//! Runs commands in a kernel sandbox built by `bwrap`.
//!
//! `arguments` defines what a command sees, `filter` which system calls it may make,
//! [`CommandLimits`](super::CommandLimits) and `cgroup` the resources it may use. `probe` tests all
//! of these before the sandbox is used.

mod arguments;
mod cgroup;
mod filter;
pub mod inner;
mod inner_user;
mod options;
mod probe;
mod support;
mod write_lock;

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::path::PathBuf;
use std::process::Stdio;

use async_trait::async_trait;
use tokio::net::UnixStream;
use tokio::process::Command;

use super::running::Running;
use super::spawner::Spawner;
use super::{
    CommandEnd, CommandError, CommandOutput, CommandRequest, CommandSandbox, Isolation, Reach,
};
use crate::sandbox::egress::{self, EgressProvider};
use crate::sandbox::skill_mounts::SkillMounts;
use crate::sandbox::thread_dirs::ThreadDirs;
use crate::sandbox::virtual_paths::Root;
use arguments::SystemView;
use cgroup::Cgroups;
pub use inner::InnerProgram;
use inner_user::{INNER_PATH, WORKSPACE};
pub use options::{BubblewrapOptions, Network};
pub use probe::{Layer, LayerReport, ProbeReport};
use support::Support;

/// Script that runs outside, before the sandbox is created.
const LAUNCH_SCRIPT: &str = include_str!("launch.sh");
/// Script that runs inside, before the command. Its process limit is set here, so that it counts
/// the processes of this sandbox only.
///
/// The kernel kills the sandbox when the spawning process dies, but only after `bwrap` has
/// requested it; an earlier death is not noticed. So the script first sends a liveness request
/// through its lifeline socket, and exits if no answer arrives.
const INNER_SCRIPT: &str = r#"printf a >&8; read -r -n 1 -u 8 || exit 125; exec 8<&-; ulimit -u "$1" 2>/dev/null; exec /bin/bash -c "$2""#;

/// Runs each command in its own `bwrap` sandbox.
#[derive(Debug)]
pub struct BubblewrapCommandSandbox {
    bwrap: PathBuf,
    bash: PathBuf,
    options: BubblewrapOptions,
    system: SystemView,
    /// Path of the system call filter.
    filter: PathBuf,
    cgroups: Option<Cgroups>,
    userns_can_be_disabled: bool,
    spawner: Spawner,
}

impl BubblewrapCommandSandbox {
    async fn launch(
        &self,
        dirs: &ThreadDirs,
        skills: &SkillMounts,
        command: &str,
        cgroups: &[PathBuf],
    ) -> Result<Running, CommandError> {
        for root in Root::ALL {
            dirs.create(root)?;
        }
        let limits = &self.options.limits;
        let mut launch = Command::new(&self.bash);
        launch.env_clear().envs([
            ("PATH", INNER_PATH),
            ("HOME", WORKSPACE),
            ("LANG", "C.UTF-8"),
            ("TMPDIR", "/tmp"),
        ]);
        if self.options.network.egress_provider().is_some() {
            launch.envs(egress::variables());
        }
        launch.envs(
            self.options
                .environment
                .iter()
                .map(|(name, value)| (name, value)),
        );
        launch
            .args(["-c", LAUNCH_SCRIPT, "launch"])
            .arg(&self.filter);
        // bash counts data and file sizes in units of 1024 bytes.
        let sizes = [
            limits.memory_bytes / 1024,
            limits.file_bytes / 1024,
            limits.open_files,
            limits.cpu_seconds,
        ];
        launch
            .args(sizes.map(|size| size.to_string()))
            .args(cgroups)
            .arg("--");
        let shares_network = self.options.network.is_shared();
        let egress = self
            .options
            .network
            .egress_provider()
            .map(EgressProvider::open)
            .transpose()?;
        let no_userns = self.userns_can_be_disabled;
        launch.arg(&self.bwrap).args(arguments::arguments(
            &self.system,
            dirs,
            skills,
            shares_network,
            no_userns,
            egress.as_deref(),
        ));
        launch
            .args(["--seccomp", "9", "--"])
            .args(arguments::first_program(&self.options));
        launch.args([
            "/bin/bash",
            "-c",
            INNER_SCRIPT,
            "bash",
            &limits.processes.to_string(),
            command,
        ]);
        let (host_end, lifeline) = StdUnixStream::pair()?;
        // Own process group: during setup, all parts can be killed before the kernel ties them
        // together.
        launch
            .current_dir("/")
            .process_group(0)
            .stdin(OwnedFd::from(lifeline))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let running = Running::group(self.spawner.spawn(launch).await?);
        host_end.set_nonblocking(true)?;
        Ok(running
            .with_lifeline(UnixStream::from_std(host_end)?)
            .with_egress(egress))
    }
}

#[async_trait]
impl CommandSandbox for BubblewrapCommandSandbox {
    fn isolation(&self) -> Isolation {
        Isolation::Kernel
    }

    fn reach(&self) -> Reach {
        match &self.options.network {
            Network::None => Reach::Nothing,
            Network::Proxied(proxy) => Reach::Proxied(proxy.hosts()),
            Network::Host => Reach::Everything,
        }
    }

    async fn run(
        &self,
        request: CommandRequest<'_>,
        output: &mut dyn CommandOutput,
    ) -> Result<CommandEnd, CommandError> {
        request.check()?;
        let group = self
            .cgroups
            .as_ref()
            .map(|groups| groups.create_group(&self.options.limits))
            .transpose()?;
        let folders = group.as_ref().map_or(&[][..], |group| group.folders());
        let running = self
            .launch(request.dirs, request.shelf, request.command, folders)
            .await?;
        Ok(running
            .follow(request.time_limit, self.options.limits.output_bytes, output)
            .await?)
    }
}

#[cfg(test)]
#[path = "bubblewrap_tests.rs"]
mod tests;

//! Commands in a sandbox of the kernel's own means, put together by `bwrap`.
//!
//! What a command sees is in `arguments`, what it may ask of the kernel in `filter`, what it may use in
//! [`CommandLimits`] and `cgroup`. `probe` tries all of it before anything is trusted to it.

mod arguments;
mod cgroup;
mod filter;
pub mod inner;
mod probe;
mod support;
mod write_lock;

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;

use async_trait::async_trait;
use tokio::net::UnixStream;
use tokio::process::Command;

use super::running::Running;
use super::spawner::Spawner;
use super::{
    CommandEnd, CommandError, CommandLimits, CommandOutput, CommandRequest, CommandSandbox,
    Isolation, Mount, Reach,
};
use crate::sandbox::egress::{self, WayOut};
use crate::sandbox::shelf::Shelf;
use crate::sandbox::thread_dirs::ThreadDirs;
use crate::sandbox::virtual_paths::Root;
use arguments::{INNER_PATH, SystemView, WORKSPACE};
use cgroup::Cgroups;
pub use inner::InnerProgram;
pub use probe::{Layer, LayerReport, ProbeReport};
use support::Support;

/// Runs outside, before the sandbox is made.
const LAUNCH: &str = include_str!("launch.sh");
/// Runs inside, before the command: how many processes there may be counts from here, for the sandbox alone.
///
/// The kernel ends the sandbox with this process from the moment on at which `bwrap` has asked for it, and asks nobody whether this
/// process was still there then. So a sandbox asks at its lifeline before it begins: what was made in vain gets no answer, and ends.
const BEGIN: &str = r#"printf a >&8; read -r -n 1 -u 8 || exit 125; exec 8<&-; ulimit -u "$1" 2>/dev/null; exec /bin/bash -c "$2""#;

/// How sandboxes are made.
#[derive(Debug, Clone)]
pub struct BubblewrapOptions {
    /// A folder of this process' own, for the few files that every sandbox sees instead of the host's.
    pub support: PathBuf,
    /// What a command may use.
    pub limits: CommandLimits,
    /// What commands reach.
    pub network: Network,
    /// The program that a sandbox begins with. Without one nothing is locked a second time, and there is no proxy.
    pub inner: Option<InnerProgram>,
    /// Further folders.
    pub mounts: Vec<Mount>,
    /// Further variables.
    pub environment: Vec<(String, String)>,
    /// Folders and files that nobody sees, even where they lie beneath a folder of the system.
    pub hidden: Vec<PathBuf>,
}

impl BubblewrapOptions {
    /// Sandboxes with the usual limits that see and reach nothing further; `support` is theirs.
    pub fn new(support: impl Into<PathBuf>) -> Self {
        Self {
            support: support.into(),
            limits: CommandLimits::default(),
            network: Network::None,
            inner: None,
            mounts: Vec::new(),
            environment: Vec::new(),
            hidden: Vec::new(),
        }
    }
}

/// What the commands of a sandbox reach.
#[derive(Debug, Clone, Default)]
pub enum Network {
    /// Nothing but their own loopback.
    #[default]
    None,
    /// What a proxy of this process lets through.
    Proxied(Arc<dyn WayOut>),
    /// All that this machine reaches, itself among it.
    Host,
}

/// Runs commands in sandboxes that `bwrap` makes, one for each.
#[derive(Debug)]
pub struct BubblewrapCommandSandbox {
    bwrap: PathBuf,
    bash: PathBuf,
    options: BubblewrapOptions,
    system: SystemView,
    /// The file with the system call filter.
    filter: PathBuf,
    cgroups: Option<Cgroups>,
    userns_can_be_disabled: bool,
    spawner: Spawner,
}

impl Network {
    fn is_shared(&self) -> bool {
        matches!(self, Self::Host)
    }

    fn way_out(&self) -> Option<&dyn WayOut> {
        if let Self::Proxied(proxy) = self {
            Some(&**proxy)
        } else {
            None
        }
    }
}

impl BubblewrapCommandSandbox {
    async fn launch(
        &self,
        dirs: &ThreadDirs,
        shelf: &Shelf,
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
        if self.options.network.way_out().is_some() {
            launch.envs(egress::variables());
        }
        launch.envs(
            self.options
                .environment
                .iter()
                .map(|(name, value)| (name, value)),
        );
        launch.args(["-c", LAUNCH, "launch"]).arg(&self.filter);
        // What bash counts in: data and files by 1024 bytes.
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
        let way = self
            .options
            .network
            .way_out()
            .map(WayOut::open)
            .transpose()?;
        let no_userns = self.userns_can_be_disabled;
        launch.arg(&self.bwrap).args(arguments::arguments(
            &self.system,
            dirs,
            shelf,
            shares_network,
            no_userns,
            way.as_deref(),
        ));
        launch
            .args(["--seccomp", "9", "--"])
            .args(arguments::first_program(&self.options));
        launch.args([
            "/bin/bash",
            "-c",
            BEGIN,
            "bash",
            &limits.processes.to_string(),
            command,
        ]);
        let (ours, lifeline) = StdUnixStream::pair()?;
        // A group of its own: what makes the sandbox is ended with all its parts before the kernel ties them together.
        launch
            .current_dir("/")
            .process_group(0)
            .stdin(OwnedFd::from(lifeline))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let running = Running::group(self.spawner.spawn(launch).await?);
        ours.set_nonblocking(true)?;
        Ok(running.asking_at(UnixStream::from_std(ours)?).with(way))
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
            .map(|groups| groups.enter(&self.options.limits))
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

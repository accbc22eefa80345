//! The real `deerflow` binary as a child process with its own home folder.

use std::{
    collections::VecDeque,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{ExitStatus, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context as _, bail};
use parking_lot::Mutex;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncRead, BufReader},
    process::{Child, Command},
    task::JoinSet,
};

use crate::reserved_port::ReservedPort;

/// Authenticates every request as the user `default`.
pub const AUTH_DISABLED: (&str, &str) = ("DEER_FLOW_AUTH_DISABLED", "1");

/// Maximum number of retained output lines.
const LOG_LENGTH: usize = 10_000;

/// Options of a gateway process.
#[derive(Debug, Clone)]
pub struct GatewayOptions {
    /// Path of the program; see [`deerflow_binary`].
    pub binary: PathBuf,
    /// Text of `config.yaml`.
    pub config: String,
    /// Environment variables in addition to the inherited ones and to those that this module sets.
    pub env: Vec<(String, String)>,
    /// Folder for configuration and data, which is not deleted on drop; `None` uses a temporary
    /// folder.
    pub home: Option<PathBuf>,
    /// Maximum time until `/health` answers.
    pub ready_within: Duration,
    /// Maximum time until a stopped gateway has ended.
    pub stopped_within: Duration,
}

impl GatewayOptions {
    /// Returns default options for `binary` with this configuration.
    #[must_use]
    pub fn new(binary: PathBuf, config: impl Into<String>) -> Self {
        Self {
            binary,
            config: config.into(),
            env: Vec::new(),
            home: None,
            ready_within: Duration::from_secs(30),
            stopped_within: Duration::from_secs(30),
        }
    }
}

/// Gateway that answers on a loopback port; dropping it kills the process.
#[derive(Debug)]
pub struct GatewayProcess {
    options: GatewayOptions,
    home: PathBuf,
    _temporary: Option<TempDir>,
    port: ReservedPort,
    running: Option<Running>,
    ready_after: Duration,
    log: Arc<Mutex<VecDeque<String>>>,
}

#[derive(Debug)]
struct Running {
    child: Child,
    /// Tasks that copy the output into the log; they end with the output.
    readers: JoinSet<()>,
}

/// Returns the path of the `deerflow` binary of the build that the running test belongs to.
///
/// Cargo passes paths of binaries only to the tests of their own package (`CARGO_BIN_EXE_*`), so
/// the path is derived: test programs are in `target/<profile>/deps`, binaries in
/// `target/<profile>`.
///
/// # Errors
/// Returns an error if the binary was not built; `cargo test --workspace` builds it.
pub fn deerflow_binary() -> anyhow::Result<PathBuf> {
    let program = std::env::current_exe().context("path of this program")?;
    let mut folder = program.parent().context("folder of this program")?;
    if folder.ends_with("deps") {
        folder = folder.parent().context("folder above deps")?;
    }
    let binary = folder.join("deerflow");
    anyhow::ensure!(
        binary.is_file(),
        "{} does not exist: build it with `cargo build --workspace`",
        binary.display()
    );
    Ok(binary)
}

impl GatewayProcess {
    /// Starts the gateway of this build with this `config.yaml` and waits until it is healthy.
    ///
    /// # Errors
    /// Returns an error with the gateway's output if the binary was not built, ends early or is not
    /// healthy in time.
    pub async fn start(config: &str, env: &[(&str, &str)]) -> anyhow::Result<Self> {
        let mut options = GatewayOptions::new(deerflow_binary()?, config);
        options.env = env
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        Self::launch(options).await
    }

    /// Starts the gateway and waits until it is healthy.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub async fn launch(options: GatewayOptions) -> anyhow::Result<Self> {
        let temporary = match &options.home {
            Some(_) => None,
            None => Some(tempfile::tempdir().context("temporary home")?),
        };
        let home = options
            .home
            .clone()
            .or_else(|| temporary.as_ref().map(|dir| dir.path().to_owned()));
        let home = home.context("a home")?;
        std::fs::write(home.join("config.yaml"), &options.config).context("writing config.yaml")?;
        let mut gateway = Self {
            options,
            home,
            _temporary: temporary,
            port: ReservedPort::new().context("looking for a free port")?,
            running: None,
            ready_after: Duration::ZERO,
            log: Arc::default(),
        };
        gateway.spawn().await?;
        Ok(gateway)
    }

    /// Returns its base URL, such as `http://127.0.0.1:8001`; it stays the same after a restart.
    #[must_use]
    pub fn base_url(&self) -> String {
        format!("http://{}", self.address())
    }

    /// Returns the listener's address.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.port.address()
    }

    /// Returns the folder with `config.yaml` and `.deer-flow`.
    #[must_use]
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// Returns the process id while it runs.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.running.as_ref().and_then(|running| running.child.id())
    }

    /// Returns the time from the last start to the first healthy response.
    #[must_use]
    pub fn ready_after(&self) -> Duration {
        self.ready_after
    }

    /// Returns the output so far, over all restarts.
    #[must_use]
    pub fn logs(&self) -> String {
        self.log
            .lock()
            .iter()
            .map(|line| format!("{line}\n"))
            .collect()
    }

    /// Sets or removes an environment variable for the next start.
    pub fn set_env(&mut self, name: &str, value: Option<&str>) {
        self.options.env.retain(|(known, _)| known != name);
        self.options
            .env
            .extend(value.map(|value| (name.to_owned(), value.to_owned())));
    }

    /// Reports whether the process has ended without being stopped.
    pub fn has_ended(&mut self) -> bool {
        self.running
            .as_mut()
            .is_some_and(|running| matches!(running.child.try_wait(), Ok(Some(_))))
    }

    /// Kills the process without warning, as a power cut would.
    ///
    /// # Errors
    /// Returns an error if the process cannot be signalled.
    pub async fn kill9(&mut self) -> anyhow::Result<()> {
        if let Some(mut running) = self.running.take() {
            running.child.kill().await.context("killing the gateway")?;
        }
        Ok(())
    }

    /// Freezes the process, as a hypervisor would, until it is thawed.
    ///
    /// # Errors
    /// Returns an error if it does not run.
    pub fn freeze(&self) -> anyhow::Result<()> {
        self.signal(Signal::STOP)
    }

    /// Resumes a frozen process.
    ///
    /// # Errors
    /// Returns an error if it does not run.
    pub fn thaw(&self) -> anyhow::Result<()> {
        self.signal(Signal::CONT)
    }

    fn signal(&self, signal: Signal) -> anyhow::Result<()> {
        let pid = self
            .pid()
            .and_then(|pid| i32::try_from(pid).ok())
            .and_then(Pid::from_raw);
        kill_process(pid.context("the gateway does not run")?, signal)
            .context("signalling the gateway")
    }

    /// Requests a graceful stop without waiting for it.
    ///
    /// # Errors
    /// Returns an error if it does not run.
    pub fn ask_to_stop(&self) -> anyhow::Result<()> {
        self.signal(Signal::TERM)
    }

    /// Requests a graceful stop and waits for it; kills a gateway that does not stop in time.
    ///
    /// # Errors
    /// Returns an error if it does not run or does not stop in time.
    pub async fn terminate(&mut self) -> anyhow::Result<ExitStatus> {
        self.signal(Signal::TERM)?;
        let mut running = self.running.take().context("the gateway does not run")?;
        let within = self.options.stopped_within;
        let Ok(status) = tokio::time::timeout(within, running.child.wait()).await else {
            running.child.kill().await.context("killing the gateway")?;
            bail!(
                "the gateway did not stop within {within:?}\n{}",
                self.logs()
            );
        };
        while running.readers.join_next().await.is_some() {}
        status.context("waiting for the gateway")
    }

    /// Restarts it on the same home and port; stops it first if it still runs.
    ///
    /// # Errors
    /// As [`Self::terminate`] and [`Self::start`].
    pub async fn restart(&mut self) -> anyhow::Result<()> {
        if self.running.is_some() {
            self.terminate().await?;
        }
        self.spawn().await
    }

    async fn spawn(&mut self) -> anyhow::Result<()> {
        let started = Instant::now();
        let mut child = self
            .program(&["serve"])
            .stdin(Stdio::null())
            .spawn()
            .with_context(|| format!("running {}", self.options.binary.display()))?;
        let pid = child.id().unwrap_or_default();
        let mut readers = JoinSet::new();
        if let Some(output) = child.stdout.take() {
            readers.spawn(copy_lines(output, Arc::clone(&self.log)));
        }
        if let Some(output) = child.stderr.take() {
            readers.spawn(copy_lines(output, Arc::clone(&self.log)));
        }
        let ready = tokio::time::timeout(
            self.options.ready_within,
            until_healthy(&mut child, self.address()),
        )
        .await;
        if !matches!(ready, Ok(Ok(()))) {
            child.kill().await.context("killing the gateway")?;
            while readers.join_next().await.is_some() {}
        }
        match ready {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                return Err(error.context(format!("the gateway printed:\n{}", self.logs())));
            }
            Err(_) => bail!(
                "process {pid} is not healthy within {:?}; it printed:\n{}",
                self.options.ready_within,
                self.logs()
            ),
        }
        self.ready_after = started.elapsed();
        self.running = Some(Running { child, readers });
        Ok(())
    }

    /// Returns a command of the program with these arguments, over the gateway's configuration and
    /// data.
    pub fn program(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.options.binary);
        command
            .args(arguments)
            .current_dir(&self.home)
            .env("DEER_FLOW_PROJECT_ROOT", &self.home)
            .env("DEER_FLOW_CONFIG_PATH", self.home.join("config.yaml"))
            .env("DEER_FLOW_HOME", self.home.join(".deer-flow"))
            .env("GATEWAY_HOST", self.address().ip().to_string())
            .env("GATEWAY_PORT", self.address().port().to_string())
            .env("NO_PROXY", "127.0.0.1")
            .env_remove("DEER_FLOW_EXTENSIONS_CONFIG_PATH")
            .env_remove("DEER_FLOW_ENV")
            .env_remove("ENVIRONMENT")
            .envs(self.options.env.iter().map(|(name, value)| (name, value)))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command
    }
}

/// Polls `/health` until it answers 200 or the process ends. The caller sets the timeout.
async fn until_healthy(child: &mut Child, address: SocketAddr) -> anyhow::Result<()> {
    let client = reqwest::Client::builder()
        .no_proxy()
        .timeout(Duration::from_secs(2))
        .build()?;
    let url = format!("http://{address}/health");
    loop {
        if let Some(status) = child.try_wait()? {
            bail!("the gateway ended with {status} before it was healthy");
        }
        if client
            .get(&url)
            .send()
            .await
            .is_ok_and(|answer| answer.status() == 200)
        {
            return Ok(());
        }
        // Readiness of another process can only be polled. The interval is short because start-up
        // time is measured with it.
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

async fn copy_lines(output: impl AsyncRead + Unpin, log: Arc<Mutex<VecDeque<String>>>) {
    let mut output = BufReader::new(output);
    let mut line = Vec::new();
    while matches!(output.read_until(b'\n', &mut line).await, Ok(1..)) {
        let mut log = log.lock();
        if log.len() == LOG_LENGTH {
            log.pop_front();
        }
        log.push_back(String::from_utf8_lossy(&line).trim_end().to_owned());
        line.clear();
    }
}

#[cfg(test)]
#[path = "gateway_tests.rs"]
mod tests;

//! The provider and the relay as separate processes.

use std::{
    io::{self, Write as _},
    net::SocketAddr,
    process::Stdio,
    time::Duration,
};

use anyhow::Context as _;
use axum::Router;
use deerflow_tests::local_server::LocalServer;
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::{Child, Command},
};

/// Both helper processes; dropping them ends them.
pub(super) struct Parts {
    pub(super) provider: PartProcess,
    pub(super) relay: PartProcess,
}

impl Parts {
    pub(super) async fn start() -> anyhow::Result<Self> {
        let provider = PartProcess::start(&["provider"]).await?;
        let relay = PartProcess::start(&["relay", &provider.address.to_string()]).await?;
        Ok(Self { provider, relay })
    }

    /// Ends both and waits for their exit.
    pub(super) async fn stop(self) -> io::Result<()> {
        for mut part in [self.relay, self.provider] {
            part.child.kill().await?;
        }
        Ok(())
    }
}

/// This program again, serving one part.
pub(super) struct PartProcess {
    /// Killed on drop; its open standard input shows it that this process is alive.
    child: Child,
    address: SocketAddr,
}

impl PartProcess {
    async fn start(arguments: &[&str]) -> anyhow::Result<Self> {
        let program = std::env::current_exe().context("path of this program")?;
        let mut child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("starting {}", arguments[0]))?;
        let output = child.stdout.take().context("output of a part")?;
        let mut line = String::new();
        let mut output = BufReader::new(output);
        tokio::time::timeout(Duration::from_secs(10), output.read_line(&mut line))
            .await
            .with_context(|| format!("{} is not the address of a part", arguments[0]))??;
        let address = line
            .trim()
            .parse()
            .with_context(|| format!("{} said {line:?}", arguments[0]))?;
        Ok(Self { child, address })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(super) fn pid(&self) -> anyhow::Result<u32> {
        self.child.id().context("a part of the benchmark has ended")
    }
}

/// Serves `router` on a free port, prints the port to standard output, and stops when standard
/// input closes: a killed benchmark leaves no process behind.
pub(super) async fn serve(router: Router) -> anyhow::Result<()> {
    let server = LocalServer::start(router, 0).await?;
    writeln!(io::stdout(), "{}", server.address())?;
    #[expect(
        clippy::disallowed_methods,
        reason = "waits for its parent, computes nothing"
    )]
    tokio::task::block_in_place(|| io::copy(&mut io::stdin(), &mut io::sink()))?;
    Ok(())
}

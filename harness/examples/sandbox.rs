//! Runs one command in a sandbox that reaches the hosts you name, and nothing else of this machine:
//!
//! ```sh
//! cargo run -p deerflow-harness --example sandbox -- 'ls -la; curl -sI https://example.org | head -n 1' example.org
//! ```
//!
//! It needs Linux and bubblewrap.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "this program prints to the terminal"
)]

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use deerflow_harness::ids::ThreadId;
use deerflow_harness::net::{HostRules, SystemLookup};
use deerflow_harness::sandbox::command::bubblewrap::{
    BubblewrapCommandSandbox, BubblewrapOptions, InnerProgram, Network, inner,
};
use deerflow_harness::sandbox::egress::{EgressProxy, ProxyLimits};
use deerflow_harness::sandbox::safe_fs::Resolver;
use deerflow_harness::sandbox::{
    CommandEnd, CommandRequest, CommandSandbox, SkillMounts, ThreadDirs, Transcript,
};

fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let first = arguments.next().ok_or("usage: sandbox COMMAND [HOST..]")?;
    // The sandbox starts this program again inside of it.
    if first == "inner" {
        return Ok(inner::run(arguments)?);
    }
    let command = first
        .into_string()
        .map_err(|_| "the command is not UTF-8")?;
    let hosts: Vec<String> = arguments
        .map(|host| host.to_string_lossy().into_owned())
        .collect();
    tokio::runtime::Runtime::new()?.block_on(run(&command, &hosts))
}

async fn run(command: &str, hosts: &[String]) -> Result<ExitCode, Box<dyn std::error::Error>> {
    let home = tempfile::tempdir()?;
    let support = home.path().join("sandbox");
    let network = match hosts {
        [] => Network::None,
        hosts => {
            let rules = HostRules::only(hosts)?;
            Network::Proxied(Arc::new(EgressProxy::new(
                &support,
                rules,
                Arc::new(SystemLookup::default()),
                ProxyLimits::default(),
            )?))
        }
    };
    let inner = InnerProgram {
        program: std::env::current_exe()?,
        arguments: vec!["inner".to_owned()],
    };
    let options = BubblewrapOptions {
        network,
        inner: Some(inner),
        ..BubblewrapOptions::new(support)
    };
    let (sandbox, report) = BubblewrapCommandSandbox::open(options).await;
    eprintln!("layers: {}", report.active());
    let sandbox = sandbox.ok_or_else(|| report.missing_text())?;

    let dirs = ThreadDirs::new(
        home.path().into(),
        Resolver::detect(),
        "me",
        &ThreadId::parse("example")?,
    );
    let mut transcript = Transcript::with_limit(1 << 20);
    let request = CommandRequest {
        dirs: &dirs,
        shelf: &SkillMounts::default(),
        command,
        time_limit: Duration::from_secs(60),
    };
    let end = sandbox.run(request, &mut transcript).await?;
    print!("{}", transcript.out());
    eprint!("{}", transcript.err());
    Ok(match end {
        CommandEnd::Exited(code) => ExitCode::from(u8::try_from(code).unwrap_or(1)),
        CommandEnd::TimedOut | CommandEnd::TooMuchOutput => ExitCode::FAILURE,
    })
}

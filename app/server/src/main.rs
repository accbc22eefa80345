//! The deerflow binary: reads the environment, then does what the command line says.

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use deerflow_server::cli::{Cli, Command, FileArgs, KeysCommand, ServeArgs};
use deerflow_server::commands;
use deerflow_server::commands::doctor::Probes;
use deerflow_server::commands::operations::Operations;
use deerflow_server::config::{ConfigHandle, Settings, environment};
use deerflow_server::own_program::{self, SANDBOX_INNER};
use deerflow_server::wiring::probes::{AskRedis, KnownProvider, LookAtDatabase, TrySandbox};
use deerflow_server::{mcp_server, serve, talk, telemetry, wiring};
use harness::clock::{Clock, SystemClock};
use harness::config_file::{Environment, load};
use harness::documents::{DocumentKind, worker};
use harness::runtime::tasks::Tasks;
use harness::sandbox::command::bubblewrap::inner;
use tokio::runtime::Handle;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How long a server that stopped waits for threads that are at work.
const LAST_MOMENT: Duration = Duration::from_secs(2);

fn main() -> ExitCode {
    if let Err(error) = own_program::declare() {
        eprintln!(
            "warning: documents are not converted and sandboxes have no proxy, since this program cannot be found: {error}"
        );
    }
    let mut arguments = std::env::args_os().skip(1);
    // Before anything else: each command in a sandbox waits for it.
    let done = match arguments.next() {
        Some(first) if first == SANDBOX_INNER => inner::run(arguments).map_err(Into::into),
        _ => dispatch(
            Cli::parse()
                .into_command()
                .unwrap_or_else(|error| error.exit()),
        ),
    };
    match done {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(command: Command) -> anyhow::Result<ExitCode> {
    // Exports .env, so it comes before the runtime's threads; a worker has nothing of it.
    let environment = match &command {
        Command::ConvertDocument { .. } => Environment::of("/", None::<(String, String)>),
        _ => environment()?,
    };
    #[cfg(feature = "fail-points")]
    deerflow_server::fail_points::arm(&environment)?;
    match command {
        Command::Serve(args) => {
            let control = control_runtime()?;
            let done = until_stopped(serve(args, environment, control.handle().clone()));
            control.shutdown_timeout(LAST_MOMENT);
            done
        }
        Command::Chat(args) => until_done(talk::run(args, environment)),
        Command::Mcp(args) => until_done(mcp_server::run(args, environment)),
        Command::Config(command) => {
            commands::config::run(&command, &environment, &mut commands::config::stdout())
        }
        Command::Keys(command) => runtime()?.block_on(keys(command, environment)),
        Command::Nodes(args) => {
            runtime()?.block_on(operate(&args.file, environment, async |operations| {
                operations
                    .nodes(&args, &mut commands::config::stdout())
                    .await
            }))
        }
        Command::Runs(args) => {
            runtime()?.block_on(operate(args.file(), environment, async |operations| {
                operations
                    .runs(&args, &mut commands::config::stdout())
                    .await
            }))
        }
        Command::Webhooks(command) => {
            runtime()?.block_on(operate(command.file(), environment, async |operations| {
                operations
                    .webhooks(&command, &mut commands::config::stdout())
                    .await
            }))
        }
        Command::ConvertDocument { kind } => convert(&kind),
        Command::Doctor(args) => runtime()?.block_on(async {
            let mut out = std::io::stdout();
            let probes = Probes {
                database: Some(&LookAtDatabase),
                provider: Some(&KnownProvider),
                redis: Some(&AskRedis),
                commands: Some(&TrySandbox),
                health_limit: None,
            };
            commands::doctor::run(&args, &environment, probes, &mut out).await
        }),
    }
}

/// What is left in threads gets a moment: a write is whole or absent then, and a search that goes on for long is for nobody.
fn until_stopped(work: impl Future<Output = anyhow::Result<ExitCode>>) -> anyhow::Result<ExitCode> {
    let runtime = runtime()?;
    let done = runtime.block_on(work);
    runtime.shutdown_timeout(LAST_MOMENT);
    done
}

fn until_done(work: impl Future<Output = anyhow::Result<ExitCode>>) -> anyhow::Result<ExitCode> {
    let runtime = runtime()?;
    let done = runtime.block_on(work);
    // Nothing that is left has anything to say any more, and a read of standard input may wait for ever.
    runtime.shutdown_background();
    done
}

/// Without the runtime, whose threads would keep the rights that the worker gives up.
fn convert(kind: &str) -> anyhow::Result<ExitCode> {
    let kind = DocumentKind::parse(kind)
        .ok_or_else(|| anyhow::anyhow!("{kind} is no kind of document"))?;
    worker::work(kind, std::io::stdin().lock(), std::io::stdout().lock())?;
    Ok(ExitCode::SUCCESS)
}

async fn keys(command: KeysCommand, environment: Environment) -> anyhow::Result<ExitCode> {
    let config = load(command.file().config.as_deref(), &environment)?.config;
    let settings = Settings::from_environment(&environment)?;
    let tasks = Tasks::new();
    let store = wiring::keys::open(&config, &settings, &tasks).await?;
    let done = commands::keys::run(
        &command,
        &*store,
        SystemClock.now(),
        &mut commands::config::stdout(),
    )
    .await;
    tasks.shut_down().await;
    done.map(|()| ExitCode::SUCCESS)
}

async fn operate(
    file: &FileArgs,
    environment: Environment,
    command: impl AsyncFnOnce(Operations<'_>) -> anyhow::Result<()>,
) -> anyhow::Result<ExitCode> {
    let config = load(file.config.as_deref(), &environment)?.config;
    let settings = Settings::from_environment(&environment)?;
    let stores = wiring::operations::open(&config, &settings).await?;
    let (nodes, runs, cancels, outbox) =
        (&stores.nodes, &stores.runs, &stores.cancels, &stores.outbox);
    command(Operations {
        nodes,
        runs,
        cancels,
        outbox,
        in_use: stores.in_use,
        now: SystemClock.now(),
    })
    .await?;
    Ok(ExitCode::SUCCESS)
}

async fn serve(
    args: ServeArgs,
    environment: Environment,
    control: Handle,
) -> anyhow::Result<ExitCode> {
    let loaded = load(args.file.config.as_deref(), &environment)?;
    let mut settings = Settings::from_environment(&environment)?;
    settings.host = args.host.unwrap_or(settings.host);
    settings.port = args.port.unwrap_or(settings.port);
    let tasks = Tasks::new();
    let telemetry = telemetry::start(&loaded.config, &environment, &tasks)?;
    loaded.log();
    let served = serve::run(
        settings,
        ConfigHandle::new(loaded, environment),
        Tasks::new().with_control(control),
    )
    .await;
    telemetry.stop().await;
    served.map(|()| ExitCode::SUCCESS)
}

/// Builds the runtime of leases and health checks: one thread, which no other work can keep busy.
fn control_runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .thread_name("control")
        .enable_all()
        .build()
}

fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
}

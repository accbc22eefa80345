//! The `deerflow` binary: reads the environment and runs the command.

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
#[cfg(any(debug_assertions, feature = "count-allocations"))]
use deerflow_server::allocations::CountingAllocator;
use deerflow_server::allocator::ServerAllocator;
use deerflow_server::cli::{
    AuditArgs, ChannelsCommand, Cli, Command, DbCommand, FileArgs, KeysCommand, ServeArgs,
    UsersCommand,
};
use deerflow_server::commands::channels::ChannelOperations;
use deerflow_server::commands::doctor::Probes;
use deerflow_server::commands::doctor::live_probes::{
    LiveChannelProbe, LiveCommandProbe, LiveDatabaseProbe, LiveProviderProbe, LiveRedisProbe,
};
use deerflow_server::commands::operations::Operations;
use deerflow_server::commands::users::Users;
use deerflow_server::commands::{self, chat};
use deerflow_server::config::{ConfigHandle, Settings, environment};
use deerflow_server::freed_memory;
use deerflow_server::own_program::{self, SANDBOX_INNER};
use deerflow_server::{serve, telemetry, wiring};
use harness::clock::{Clock, SystemClock};
use harness::config_file::{Environment, load};
use harness::documents::{DocumentKind, worker};
use harness::runtime::runs::RetryPorts;
use harness::runtime::tasks::Tasks;
use harness::sandbox::command::bubblewrap::inner;
use tokio::runtime::Handle;

#[cfg(any(debug_assertions, feature = "count-allocations"))]
#[global_allocator]
static ALLOCATOR: CountingAllocator<ServerAllocator> = CountingAllocator(ServerAllocator);

#[cfg(not(any(debug_assertions, feature = "count-allocations")))]
#[global_allocator]
static ALLOCATOR: ServerAllocator = ServerAllocator;

/// Timeout for blocking threads when the server stops.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);

fn main() -> ExitCode {
    if let Err(error) = own_program::declare() {
        eprintln!(
            "warning: document conversion and the sandbox proxy are disabled, because the path of this program is unknown: {error}"
        );
    }
    let mut arguments = std::env::args_os().skip(1);
    // Comes first, because each sandboxed command waits for it.
    let result = match arguments.next() {
        Some(first) if first == SANDBOX_INNER => inner::run(arguments).map_err(Into::into),
        _ => dispatch(
            Cli::parse()
                .into_command()
                .unwrap_or_else(|error| error.exit()),
        ),
    };
    match result {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(command: Command) -> anyhow::Result<ExitCode> {
    // Exports .env, so it must run before the runtime starts threads; a conversion worker gets no
    // environment.
    let environment = match &command {
        Command::ConvertDocument { .. } => Environment::of("/", None::<(String, String)>),
        _ => environment()?,
    };
    #[cfg(feature = "fail-points")]
    deerflow_server::fail_points::arm(&environment)?;
    match command {
        Command::Serve(args) => {
            let control = control_runtime()?;
            let result = block_until_shutdown(serve(args, environment, control.handle().clone()));
            control.shutdown_timeout(SHUTDOWN_TIMEOUT);
            result
        }
        Command::Chat(args) => block_and_detach(chat::run::run(args, environment)),
        Command::Mcp(args) => block_and_detach(commands::mcp::run(args, environment)),
        Command::Flow(command) => block_and_detach(commands::flow::run(command, environment)),
        Command::Config(command) => {
            commands::config::run(&command, &environment, &mut commands::config::stdout())
        }
        Command::Keys(command) => runtime()?.block_on(keys(command, environment)),
        Command::Users(command) => runtime()?.block_on(users(command, environment)),
        Command::Audit(args) => runtime()?.block_on(audit(args, environment)),
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
        Command::Channels(command) => runtime()?.block_on(channels(command, environment)),
        Command::Db(command) => runtime()?.block_on(database(command, environment)),
        Command::ConvertDocument { kind } => convert(&kind),
        Command::Doctor(args) => runtime()?.block_on(async {
            let mut out = std::io::stdout();
            let probes = Probes {
                database: Some(&LiveDatabaseProbe),
                provider: Some(&LiveProviderProbe),
                redis: Some(&LiveRedisProbe),
                commands: Some(&LiveCommandProbe),
                channels: Some(&LiveChannelProbe),
                health_timeout: None,
            };
            commands::doctor::run(&args, &environment, probes, &mut out).await
        }),
    }
}

/// Gives blocking threads a short time to finish: writes should complete, and long searches may be
/// abandoned.
fn block_until_shutdown(
    work: impl Future<Output = anyhow::Result<ExitCode>>,
) -> anyhow::Result<ExitCode> {
    let runtime = runtime()?;
    let result = runtime.block_on(work);
    runtime.shutdown_timeout(SHUTDOWN_TIMEOUT);
    result
}

fn block_and_detach(
    work: impl Future<Output = anyhow::Result<ExitCode>>,
) -> anyhow::Result<ExitCode> {
    let runtime = runtime()?;
    let result = runtime.block_on(work);
    // Remaining tasks have no results, and a read of standard input may block forever.
    runtime.shutdown_background();
    result
}

/// Converts without a runtime, whose threads would keep the privileges that the worker drops.
fn convert(kind: &str) -> anyhow::Result<ExitCode> {
    let kind = DocumentKind::parse(kind)
        .ok_or_else(|| anyhow::anyhow!("{kind} is not a supported document type"))?;
    worker::work(kind, std::io::stdin().lock(), std::io::stdout().lock())?;
    Ok(ExitCode::SUCCESS)
}

async fn keys(command: KeysCommand, environment: Environment) -> anyhow::Result<ExitCode> {
    let config = load(command.file().config.as_deref(), &environment)?.config;
    let settings = Settings::from_environment(&environment)?;
    let tasks = Tasks::new();
    let opened = wiring::keys::open(&config, &settings, &tasks).await?;
    let result = commands::keys::run(
        &command,
        &opened,
        SystemClock.now(),
        &mut commands::config::stdout(),
    )
    .await;
    tasks.shut_down().await;
    result.map(|()| ExitCode::SUCCESS)
}

async fn users(command: UsersCommand, environment: Environment) -> anyhow::Result<ExitCode> {
    let config = load(command.file().config.as_deref(), &environment)?.config;
    let settings = Settings::from_environment(&environment)?;
    let tasks = Tasks::new();
    let opened = wiring::users::open(&config, &settings, &tasks).await?;
    let deletion = match command {
        UsersCommand::Delete { .. } => Some(opened.deletion(&config, &settings)?),
        _ => None,
    };
    let users = Users {
        service: &opened.service,
        stores: &opened.stores,
        deletion: deletion.as_ref(),
        usage: &opened.usage,
        quotas: config.quotas.effective(!settings.is_loopback()),
        home: &settings.home,
        now: opened.clock.now(),
    };
    let mut input = std::io::BufReader::new(std::io::stdin());
    let mut out = commands::config::stdout();
    let result = users.run(&command, &mut input, &mut out).await;
    tasks.shut_down().await;
    result.map(|()| ExitCode::SUCCESS)
}

async fn audit(args: AuditArgs, environment: Environment) -> anyhow::Result<ExitCode> {
    let config = load(args.file.config.as_deref(), &environment)?.config;
    let settings = Settings::from_environment(&environment)?;
    let tasks = Tasks::new();
    let opened = wiring::users::open(&config, &settings, &tasks).await?;
    let users = Users {
        service: &opened.service,
        stores: &opened.stores,
        deletion: None,
        usage: &opened.usage,
        quotas: config.quotas.effective(!settings.is_loopback()),
        home: &settings.home,
        now: opened.clock.now(),
    };
    let result = users.audit(&args, &mut commands::config::stdout()).await;
    tasks.shut_down().await;
    result.map(|()| ExitCode::SUCCESS)
}

async fn channels(command: ChannelsCommand, environment: Environment) -> anyhow::Result<ExitCode> {
    let config = load(command.file().config.as_deref(), &environment)?.config;
    let settings = Settings::from_environment(&environment)?;
    let tasks = Tasks::new();
    let opened = wiring::channel_operations::open(&config, &settings, &environment, &tasks).await?;
    let operations = ChannelOperations {
        stores: &opened.stores,
        inspector: &opened.inspector,
        has_database: opened.has_database,
        in_use: opened.in_use,
        now: opened.clock.now(),
    };
    let result = operations
        .run(&command, &mut commands::config::stdout())
        .await;
    tasks.shut_down().await;
    result.map(|()| ExitCode::SUCCESS)
}

async fn database(command: DbCommand, environment: Environment) -> anyhow::Result<ExitCode> {
    let config = load(command.file().config.as_deref(), &environment)?.config;
    let settings = Settings::from_environment(&environment)?;
    let address = wiring::database::database_of(&config, &settings)?;
    let mut out = commands::config::stdout();
    commands::db::run(&command, &address, SystemClock.now(), &mut out).await
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
        retries: RetryPorts {
            query: cancels,
            create: cancels,
            checkpointer: &stores.checkpoints,
            ids: &stores.ids,
            clock: &SystemClock,
        },
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

/// Builds the runtime of leases and health checks: one thread that other work cannot block.
fn control_runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .thread_name("control")
        .enable_all()
        .build()
}

fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .on_thread_park(freed_memory::on_thread_park)
        .enable_all()
        .build()
}

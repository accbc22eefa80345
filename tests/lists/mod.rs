//! Lists and searches over many threads, and the states of a long one: the time of each request,
//! measured sequentially.

mod requests;
mod seed;

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::Parser;
use deerflow_stores::{Database, DatabaseConfig, PostgresConfig};
use deerflow_tests::gateway::{AUTH_DISABLED, GatewayOptions, GatewayProcess};
use harness::runtime::tasks::Tasks;

use requests::{Request, requests};

/// Measures searches, counts and histories over many threads, as Markdown on standard output.
#[derive(Debug, Parser)]
#[command(name = "deerflow-lists", version)]
pub(crate) struct Arguments {
    /// The `deerflow` binary.
    #[arg(long)]
    gateway: PathBuf,
    /// Number of threads.
    #[arg(long, default_value_t = 100_000)]
    threads: usize,
    /// Number of messages of the long thread.
    #[arg(long, default_value_t = 5_000)]
    messages: usize,
    /// Number of repetitions of each request.
    #[arg(long, default_value_t = 200)]
    times: usize,
    /// URL of a Postgres server; its schema `deerflow_lists` is filled, or reused if it is already
    /// full. Without it SQLite is used.
    #[arg(long)]
    postgres_url: Option<String>,
}

/// Schema that is filled.
const SCHEMA: &str = "deerflow_lists";
/// Number of unmeasured requests.
const WARM_UP: usize = 10;

pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let home = tempfile::Builder::new()
        .prefix("deerflow-lists-")
        .tempdir()?;
    let data = home.path().join("data");
    let (database, config) = match &arguments.postgres_url {
        None => (
            DatabaseConfig::Sqlite(data.clone()),
            format!(
                "database:\n  backend: sqlite\n  sqlite_dir: {}\n",
                data.display()
            ),
        ),
        Some(url) => {
            let postgres = PostgresConfig {
                url: url.clone().into(),
                schema: Some(SCHEMA.to_owned()),
                max_connections: 10,
                exclusive: true,
            };
            let config = format!(
                "database:\n  backend: postgres\n  postgres_url: {url}\n  postgres_schema: {SCHEMA}\n"
            );
            (DatabaseConfig::Postgres(postgres), config)
        }
    };
    let tasks = Tasks::new();
    let db = Database::open(&database, &tasks).await?;
    let started = Instant::now();
    seed::fill(&db, arguments.threads, arguments.messages).await?;
    eprintln!(
        "{} threads are there after {:.1?}",
        arguments.threads,
        started.elapsed()
    );
    drop(db);
    tasks.shut_down().await;

    let mut options = GatewayOptions::new(
        arguments.gateway.canonicalize().context("the gateway")?,
        config,
    );
    options
        .env
        .push((AUTH_DISABLED.0.to_owned(), AUTH_DISABLED.1.to_owned()));
    options.home = Some(home.path().to_owned());
    let mut gateway = GatewayProcess::launch(options).await?;
    let measured = measure(&gateway.base_url(), &arguments).await;
    gateway.terminate().await?;
    measured.with_context(|| format!("the gateway printed:\n{}", gateway.logs()))
}

async fn measure(base: &str, arguments: &Arguments) -> anyhow::Result<()> {
    let client = reqwest::Client::builder().no_proxy().build()?;
    writeln!(
        io::stdout(),
        "| request | p50 | p99 | most | bytes |\n|---|---|---|---|---|"
    )?;
    for request in requests(arguments.threads) {
        let mut times = Vec::with_capacity(arguments.times);
        let mut bytes = 0;
        for n in 0..WARM_UP + arguments.times {
            let started = Instant::now();
            bytes = ask(&client, base, &request, n).await?;
            if n >= WARM_UP {
                times.push(started.elapsed());
            }
        }
        times.sort_unstable();
        let at = |percent: usize| {
            times
                .get(times.len() * percent / 100)
                .or(times.last())
                .copied()
                .unwrap_or_default()
        };
        writeln!(
            io::stdout(),
            "| {} | {} | {} | {} | {bytes} |",
            request.name,
            format_duration(at(50)),
            format_duration(at(99)),
            format_duration(at(100))
        )?;
    }
    Ok(())
}

async fn ask(
    client: &reqwest::Client,
    base: &str,
    request: &Request,
    n: usize,
) -> anyhow::Result<usize> {
    let url = format!("{base}{}", request.path);
    let sent = match &request.body {
        Some(body) => client.post(url).json(&body(n)),
        None => client.get(url),
    };
    let answer = sent.send().await?;
    let status = answer.status();
    let body = answer.bytes().await?;
    anyhow::ensure!(
        status == 200,
        "{} is {status}: {}",
        request.name,
        String::from_utf8_lossy(&body)
    );
    Ok(body.len())
}

fn format_duration(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1e3)
}

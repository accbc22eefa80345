//! The benchmark: its servers, their loads, and the order of measurements.
//!
//! Three more processes separate the CPU accounting: a provider that streams a fixed reply, a bare
//! relay in front of it (the minimum cost of any server), and the gateway. A durable run has a
//! second limit, the disk: it must be on disk when it is accepted and when it has ended, so C
//! clients cannot exceed C / (2 x fdatasync).

mod arguments;
mod chart;
mod client;
mod cost_row;
mod costs;
mod disk;
mod figures;
mod files;
mod flows;
mod frames;
mod load;
mod meter;
mod parts;
mod protocol;
mod provider;
mod relay;
mod report;
mod sign_in;
mod storage;
mod subject;
mod text;
mod threads;
mod viewers;

use std::time::Duration;

use anyhow::Context as _;
use deerflow_tests::process;
use tokio::signal::unix::{SignalKind, signal};

pub(crate) use self::arguments::Arguments;
use self::{
    arguments::{Chapter, Part},
    costs::{Bench, Costs, SCENARIOS},
    load::{Load, Target},
    meter::Server,
    parts::Parts,
    report::{Comparison, Report, StorageReport},
    storage::Storage,
    subject::Subject,
};

/// Runs a hidden part, or the whole benchmark until it is finished or the process is stopped.
pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<()> {
    match &arguments.part {
        Some(Part::Provider) => parts::serve(provider::router()).await,
        Some(Part::Relay { provider }) => parts::serve(relay::router(provider)?).await,
        None => {
            let mut terminated = signal(SignalKind::terminate())?;
            tokio::select! {
                done = measure(&arguments) => done,
                _ = tokio::signal::ctrl_c() => anyhow::bail!("interrupted"),
                _ = terminated.recv() => anyhow::bail!("terminated"),
            }
        }
    }
}

async fn measure(arguments: &Arguments) -> anyhow::Result<()> {
    process::raise_file_limit()?;
    let parts = Parts::start().await?;
    let mut report = Report::default();
    let seconds = if arguments.quick { 1 } else { 5 };
    if arguments.includes(Chapter::Flows) {
        let period = Duration::from_secs(seconds);
        report.steps = Some(flows::measure_steps(period).await?);
    }
    for storage in Storage::all(arguments)? {
        let section = measure_on(arguments, &parts, &storage).await?;
        report.storages.push(section);
    }
    parts.stop().await?;
    report.print()?;
    if let Some(file) = &arguments.chart {
        let text = chart::svg("CPU of the server per run, in ms", &report.bars());
        std::fs::write(file, text).with_context(|| format!("writing {}", file.display()))?;
    }
    let failed: usize = report.storages.iter().map(StorageReport::failed_runs).sum();
    anyhow::ensure!(failed == 0, "{failed} runs failed");
    Ok(())
}

async fn measure_on(
    arguments: &Arguments,
    parts: &Parts,
    storage: &Storage,
) -> anyhow::Result<StorageReport> {
    let Storage { name, folder, .. } = storage;
    eprintln!("storage: {name} ({})", folder.display());
    let fdatasync =
        disk::fdatasync_p50(folder).with_context(|| format!("measuring {}", folder.display()))?;
    let mut section = StorageReport {
        name,
        folder: folder.clone(),
        fdatasync,
        start: None,
        viewers: None,
        flows: None,
        sign_in: None,
        protocol: None,
        comparisons: Vec::new(),
        costs: Costs::default(),
    };
    let mut subject = match &arguments.gateway {
        Some(binary) => Some(Subject::launch(binary, storage, parts.provider.address()).await?),
        None => None,
    };
    if let Some(subject) = &mut subject {
        let times = if arguments.includes(Chapter::Start) {
            3
        } else {
            1
        };
        section.start = Some(subject.measure_starts(times).await?);
    }
    let relay = Target::relay(parts.relay.address());
    for load in loads(arguments) {
        eprintln!("  {load}");
        let gateway = match &subject {
            Some(subject) => {
                let target = Target::gateway(subject.address(), arguments.stateless);
                let figures = subject.server()?.under(&target, &load).await;
                Some(figures.with_context(|| format!("the gateway printed:\n{}", subject.logs()))?)
            }
            None => None,
        };
        let server = Server {
            pid: parts.relay.pid()?,
            metrics: None,
        };
        let relay = server.under(&relay, &load).await?;
        section.comparisons.push(Comparison {
            load,
            gateway,
            relay,
        });
    }
    if let Some(subject) = subject {
        if section.failed_runs() > 0 {
            eprintln!("the gateway printed:\n{}", subject.logs());
        }
        subject.stop().await?;
    }
    let binary_for = |chapter| {
        let binary = arguments.gateway.as_deref();
        binary.filter(|_| arguments.includes(chapter))
    };
    for scenario in SCENARIOS {
        let Some(binary) = binary_for(scenario) else {
            continue;
        };
        eprintln!("  {scenario:?}");
        let quick = arguments.quick;
        let bench = Bench {
            binary,
            storage,
            parts,
            quick,
        };
        let Costs { rows, notes } = bench.measure(scenario).await?;
        section.costs.rows.extend(rows);
        section.costs.notes.extend(notes);
    }
    // A separate process: memory that earlier loads allocated would hide what viewers need.
    if let Some(binary) = binary_for(Chapter::Viewers) {
        eprintln!("  viewers");
        let subject = Subject::launch(binary, storage, parts.provider.address()).await?;
        let measured = viewers::measure(subject.address(), subject.pid()?).await;
        section.viewers = Some(finished(subject, measured).await?);
    }
    if let Some(binary) = binary_for(Chapter::Flows) {
        eprintln!("  flows");
        let subject = Subject::launch(binary, storage, parts.provider.address()).await?;
        let seconds = if arguments.quick { 1 } else { 5 };
        let measured = flows::measure(
            subject.address(),
            &subject.server()?,
            subject.home(),
            seconds,
        )
        .await;
        section.flows = Some(finished(subject, measured).await?);
    }
    if let Some(binary) = binary_for(Chapter::SignIn) {
        eprintln!("  sign-in");
        let provider = parts.provider.address();
        let open = Subject::launch_with_sign_in(binary, storage, provider).await?;
        let closed = Subject::launch_with_sign_in(binary, storage, provider).await?;
        let measured = sign_in::measure(&open, &closed).await;
        section.sign_in = Some(finished(closed, measured).await?);
        open.stop().await?;
    }
    if let Some(binary) = binary_for(Chapter::Protocol) {
        eprintln!("  protocol");
        let subject = Subject::launch(binary, storage, parts.provider.address()).await?;
        let measured = protocol::measure(subject.address(), subject.pid()?).await;
        section.protocol = Some(finished(subject, measured).await?);
    }
    Ok(section)
}

/// Stops the process of a chapter and returns its figures. An error shows what the gateway printed.
async fn finished<T>(subject: Subject, measured: anyhow::Result<T>) -> anyhow::Result<T> {
    let measured = measured.with_context(|| format!("the gateway printed:\n{}", subject.logs()))?;
    subject.stop().await?;
    Ok(measured)
}

fn loads(arguments: &Arguments) -> Vec<Load> {
    let seconds = if arguments.quick { 1 } else { 5 };
    let mut loads = Vec::new();
    if arguments.includes(Chapter::Runs) {
        loads.extend([1, 16, 200, 1000].map(|clients| Load::short_runs(clients, seconds)));
    }
    if arguments.includes(Chapter::Tokens) {
        loads.extend([1, 16].map(|clients| Load::long_runs(clients, seconds)));
    }
    loads
}

//! Memory and processor time of idle channels.

use std::time::Duration;

use clap::ValueEnum as _;

use crate::arguments::Arguments;
use crate::report::{self, mebibytes};
use crate::rig::{Gateway, PlatformName, Platforms, Setup};

/// Time after which a started gateway has finished its preparations.
const SETTLED: Duration = Duration::from_secs(15);

/// Costs of one gateway.
#[derive(Debug, Clone, Copy)]
struct Cost {
    resident: u64,
    cpu: Duration,
}

pub(crate) async fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let platforms = Platforms::start(true).await?;
    let without = measure(arguments, &platforms, &[]).await?;
    let names = PlatformName::value_variants();
    let with = measure(arguments, &platforms, names).await?;
    let share = |cpu: Duration| 100.0 * cpu.as_secs_f64() / arguments.idle_time().as_secs_f64();
    report::line(&format!(
        "six idle channels: {:.1} MiB resident instead of {:.1} MiB, {:+.1} MiB; processor {:.3} % \
         of a core instead of {:.3} % over {} s; load average {}",
        mebibytes(with.resident),
        mebibytes(without.resident),
        mebibytes(with.resident) - mebibytes(without.resident),
        share(with.cpu),
        share(without.cpu),
        arguments.idle_time().as_secs(),
        report::load()
    ))
}

async fn measure(
    arguments: &Arguments,
    platforms: &Platforms,
    names: &[PlatformName],
) -> anyhow::Result<Cost> {
    let gateway = Gateway::start(arguments, platforms, names, Setup::default()).await?;
    // Connections, first polls and background tasks of the start are not idle cost.
    tokio::time::sleep(SETTLED).await;
    let before = gateway.cpu_time()?;
    tokio::time::sleep(arguments.idle_time()).await;
    let cpu = gateway.cpu_time()?.saturating_sub(before);
    gateway.connected(names).await?;
    Ok(Cost {
        resident: gateway.resident()?,
        cpu,
    })
}

//! Measurement of a server process while a load is driven.

use std::{net::SocketAddr, pin::pin, time::Duration};

use anyhow::Context as _;
use deerflow_tests::{
    process,
    usage::{Usage, UsageMeter},
};

use super::{
    figures::Figures,
    load::{self, Load, Requests, Target},
    threads,
};

/// Interval at which memory and threads are read.
const SAMPLES: Duration = Duration::from_millis(50);

/// Server process that is measured.
#[derive(Debug, Clone, Copy)]
pub(super) struct Server {
    pub(super) pid: u32,
    /// Address of its `/metrics`, if it has them.
    pub(super) metrics: Option<SocketAddr>,
}

/// Consumption of a server during some work.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Measured {
    pub(super) usage: Usage,
    /// Highest resident memory of all samples, in bytes.
    pub(super) resident: u64,
}

impl Server {
    /// Does `work` and measures the server meanwhile.
    pub(super) async fn measured<T>(
        &self,
        work: impl Future<Output = T>,
    ) -> anyhow::Result<(T, Measured)> {
        let mut meter = UsageMeter::start(self.pid, self.metrics).await?;
        let mut resident = process::resident(self.pid)?;
        let mut samples = tokio::time::interval(SAMPLES);
        let mut work = pin!(work);
        let done = loop {
            tokio::select! {
                done = &mut work => break done,
                _ = samples.tick() => {
                    meter.sample()?;
                    resident = resident.max(process::resident(self.pid)?);
                }
            }
        };
        let usage = meter.finish().await?;
        Ok((done, Measured { usage, resident }))
    }

    /// Runs one load: a warm-up, the threads, and the runs. The runs alone are the figures; those of
    /// the threads are apart.
    pub(super) async fn under(&self, target: &Target, load: &Load) -> anyhow::Result<Figures> {
        let warm_up = load.warm_up();
        if !target.creates_threads {
            load::drive(target.address, &warm_up, Requests::Same(target.path)).await?;
            return self.on(target, load, Requests::Same(target.path)).await;
        }
        let (ids, _) = threads::create(self, target, warm_up.runs_at_most()).await?;
        let warm = load::drive(target.address, &warm_up, target.runs_on(&ids)).await?;
        let per_second = warm.samples.len() as f64 / warm.took.as_secs_f64().max(1e-3);
        let threads = load.threads_for(per_second);
        let (ids, created) = threads::create(self, target, threads).await?;
        let figures = self.on(target, load, target.runs_on(&ids)).await?;
        Ok(Figures {
            threads: Some(created),
            ..figures
        })
    }

    /// Runs one load without a warm-up, on threads that exist.
    pub(super) async fn on(
        &self,
        target: &Target,
        load: &Load,
        requests: Requests,
    ) -> anyhow::Result<Figures> {
        let driven = load::drive(target.address, load, requests);
        let (outcome, measured) = self.measured(driven).await?;
        let outcome = outcome.with_context(|| format!("load: {load}"))?;
        Ok(Figures::of(&outcome, measured))
    }
}

//! The figures of this process: where they are gathered, and what is measured of runs.

use std::collections::HashMap;
use std::sync::OnceLock;
use std::time::Duration;

use async_trait::async_trait;
use deerflow_gateway::ports::MetricsView;
use harness::ids::RunId;
use harness::runtime::runs::{LifecycleKind, RunLifecycleEvent, RunObserver};
use metrics::{
    Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram,
};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Seconds that answers of the API take.
const QUICK: [f64; 12] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0,
];
/// Seconds that runs take.
const SLOW: [f64; 12] = [
    0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0, 300.0, 1_200.0, 3_600.0, 14_400.0,
];
/// How often samples that nobody asked for are summed up.
const SUM_EVERY: Duration = Duration::from_secs(5);

/// The one place of a process where figures are gathered.
#[derive(Debug, Clone)]
pub struct Metrics(Option<PrometheusHandle>);

impl Metrics {
    /// Begins to gather. All calls of a process give the same place; it is empty if another program's recorder was there first.
    pub fn start() -> Self {
        static HANDLE: OnceLock<Option<PrometheusHandle>> = OnceLock::new();
        Self(HANDLE.get_or_init(install).clone())
    }

    /// Sums samples up now and then until `stop`, so that they take no room while nobody asks for them.
    pub async fn keep_summed(self, stop: CancellationToken) {
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(SUM_EVERY) => {}
            }
            if let Some(handle) = &self.0 {
                handle.run_upkeep();
            }
        }
    }
}

impl MetricsView for Metrics {
    fn render(&self) -> String {
        self.0
            .as_ref()
            .map(PrometheusHandle::render)
            .unwrap_or_default()
    }
}

fn install() -> Option<PrometheusHandle> {
    let built = PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Full("deerflow_run_seconds".to_owned()), &SLOW)
        .and_then(|builder| builder.set_buckets(&QUICK))
        .and_then(PrometheusBuilder::install_recorder);
    let handle = built
        .inspect_err(|error| tracing::warn!(%error, "figures are not gathered"))
        .ok()?;
    describe_counter!(
        "deerflow_http_requests_total",
        "Answered requests by method, route and status"
    );
    describe_histogram!(
        "deerflow_http_request_seconds",
        Unit::Seconds,
        "Time until an answer begins"
    );
    describe_gauge!("deerflow_streams_active", "Open event streams");
    describe_histogram!(
        "deerflow_first_token_seconds",
        Unit::Seconds,
        "Time from a request for a run's stream to the model's first words"
    );
    describe_gauge!("deerflow_runs_active", "Runs at work in this process");
    describe_counter!("deerflow_runs_total", "Runs that ended, by how");
    describe_histogram!(
        "deerflow_run_seconds",
        Unit::Seconds,
        "Time from a run's start to its end, by how it ended"
    );
    describe_gauge!(
        "deerflow_write_queue_depth",
        "Writes that wait for SQLite's writer"
    );
    describe_histogram!(
        "deerflow_write_queue_seconds",
        Unit::Seconds,
        "Time that a write waits for SQLite's writer"
    );
    describe_gauge!(
        "deerflow_runs",
        "Runs that are not over, in all processes, by state"
    );
    describe_gauge!(
        "deerflow_queue_depth",
        "Runs that may begin and wait, in all processes"
    );
    describe_gauge!(
        "deerflow_queue_wait_seconds",
        Unit::Seconds,
        "How long the first of them waits"
    );
    describe_gauge!(
        "deerflow_lease_age_seconds",
        Unit::Seconds,
        "Time since the lease of this process was renewed"
    );
    describe_histogram!(
        "deerflow_commit_seconds",
        Unit::Seconds,
        "Time until what a run reached is durable"
    );
    describe_histogram!(
        "deerflow_publish_seconds",
        Unit::Seconds,
        "Time until Redis has a batch of events"
    );
    describe_counter!(
        "deerflow_redis_errors_total",
        "Times that Redis could not be asked, by connection"
    );
    describe_counter!(
        "deerflow_database_errors_total",
        "Failures of the database, by kind"
    );
    gauge!("deerflow_streams_active").set(0.0);
    gauge!("deerflow_runs_active").set(0.0);
    Some(handle)
}

/// Measures the lives of runs.
#[derive(Debug, Default)]
pub struct RunMeter {
    /// The attempts that are at work here, and since when.
    started: Mutex<HashMap<RunId, (u32, Instant)>>,
}

impl RunMeter {
    /// An attempt after the first begins anew.
    fn began(&self, run: &RunId, attempt: u32) {
        if self
            .started
            .lock()
            .insert(run.clone(), (attempt, Instant::now()))
            .is_none()
        {
            gauge!("deerflow_runs_active").increment(1.0);
        }
    }

    /// An attempt goes on elsewhere, or not at all. The next one may be at work here already.
    fn left(&self, run: &RunId, attempt: u32) {
        let mut started = self.started.lock();
        if started
            .get(run)
            .is_some_and(|(at_work, _)| *at_work == attempt)
        {
            started.remove(run);
            gauge!("deerflow_runs_active").decrement(1.0);
        }
    }

    fn ended(&self, run: &RunId, status: &'static str) {
        counter!("deerflow_runs_total", "status" => status).increment(1);
        // One that was cancelled before it began has no length.
        if let Some((_, started)) = self.started.lock().remove(run) {
            gauge!("deerflow_runs_active").decrement(1.0);
            histogram!("deerflow_run_seconds", "status" => status).record(started.elapsed());
        }
    }
}

#[async_trait]
impl RunObserver for RunMeter {
    async fn observe(&self, event: &RunLifecycleEvent) {
        match &event.kind {
            LifecycleKind::RunStarted => self.began(&event.run_id, event.attempt),
            LifecycleKind::RunLeft => self.left(&event.run_id, event.attempt),
            LifecycleKind::RunCompleted { .. } => self.ended(&event.run_id, "success"),
            LifecycleKind::RunFailed { .. } => self.ended(&event.run_id, "error"),
            LifecycleKind::RunCancelled { .. } => self.ended(&event.run_id, "interrupted"),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_at_work_until_it_ends_or_its_newest_attempt_leaves() {
        let (meter, run) = (RunMeter::default(), RunId::parse("r").expect("an id"));
        let at_work = || meter.started.lock().len();
        meter.began(&run, 1);
        meter.began(&run, 2);
        meter.left(&run, 1);
        assert_eq!(at_work(), 1, "the second attempt is");
        meter.left(&run, 2);
        assert_eq!(at_work(), 0);
        meter.began(&run, 3);
        meter.ended(&run, "success");
        meter.left(&run, 3);
        assert_eq!(at_work(), 0);
    }
}

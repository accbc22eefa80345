//! Metrics of this process: the recorder, and measurements of runs.

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

use crate::allocations;

/// Histogram buckets of API requests, in seconds.
const REQUEST_BUCKETS: [f64; 12] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0,
];
/// Histogram buckets of runs, in seconds.
const RUN_BUCKETS: [f64; 12] = [
    0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0, 300.0, 1_200.0, 3_600.0, 14_400.0,
];
/// Interval at which collected samples are aggregated.
const UPKEEP_INTERVAL: Duration = Duration::from_secs(5);

/// Metrics recorder of the process.
#[derive(Debug, Clone)]
pub struct Metrics(Option<PrometheusHandle>);

impl Metrics {
    /// Installs the recorder. Repeated calls return the same one; it is empty if another recorder
    /// was installed before.
    pub fn start() -> Self {
        static HANDLE: OnceLock<Option<PrometheusHandle>> = OnceLock::new();
        Self(HANDLE.get_or_init(install).clone())
    }

    /// Aggregates samples at intervals until `stop`, so they use no memory when metrics are not
    /// scraped.
    pub async fn upkeep_loop(self, stop: CancellationToken) {
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(UPKEEP_INTERVAL) => {}
            }
            if let Some(handle) = &self.0 {
                handle.run_upkeep();
            }
        }
    }
}

impl MetricsView for Metrics {
    fn render(&self) -> String {
        if let Some(calls) = allocations::count() {
            counter!("deerflow_allocations_total").absolute(calls);
        }
        self.0
            .as_ref()
            .map(PrometheusHandle::render)
            .unwrap_or_default()
    }
}

fn install() -> Option<PrometheusHandle> {
    let built = PrometheusBuilder::new()
        .set_buckets_for_metric(
            Matcher::Full("deerflow_run_seconds".to_owned()),
            &RUN_BUCKETS,
        )
        .and_then(|builder| builder.set_buckets(&REQUEST_BUCKETS))
        .and_then(PrometheusBuilder::install_recorder);
    let handle = built
        .inspect_err(|error| tracing::warn!(%error, "metrics are not collected"))
        .ok()?;
    describe_counter!(
        "deerflow_http_requests_total",
        "Requests by method, route and status"
    );
    describe_histogram!(
        "deerflow_http_request_seconds",
        Unit::Seconds,
        "Time until the response starts"
    );
    describe_gauge!("deerflow_streams_active", "Open event streams");
    describe_histogram!(
        "deerflow_first_token_seconds",
        Unit::Seconds,
        "Time from a request for a run's stream to the first model output"
    );
    describe_gauge!("deerflow_runs_active", "Active runs in this process");
    describe_counter!("deerflow_runs_total", "Ended runs by status");
    describe_counter!(
        "deerflow_runs_poisoned_total",
        "Runs that ended because they exhausted their attempts"
    );
    describe_histogram!(
        "deerflow_run_seconds",
        Unit::Seconds,
        "Duration of runs by status"
    );
    describe_gauge!(
        "deerflow_write_queue_depth",
        "Writes queued for the SQLite writer"
    );
    describe_histogram!(
        "deerflow_write_queue_seconds",
        Unit::Seconds,
        "Time that a write is queued for the SQLite writer"
    );
    describe_gauge!("deerflow_runs", "Unfinished runs of all processes by state");
    describe_gauge!(
        "deerflow_permit_waits",
        "Requests in this process that wait for a permit, by kind of work"
    );
    describe_gauge!(
        "deerflow_runs_stalled",
        "Run attempts that block a thread of this process for longer than the limit"
    );
    describe_gauge!(
        "deerflow_runs_queued",
        "Queued runs of all processes by the reason why they wait"
    );
    describe_gauge!(
        "deerflow_queue_depth",
        "Runs of all processes that are queued and ready to start"
    );
    describe_gauge!(
        "deerflow_queue_wait_seconds",
        Unit::Seconds,
        "Waiting time of the oldest queued run"
    );
    describe_gauge!(
        "deerflow_lease_age_seconds",
        Unit::Seconds,
        "Time since the lease of this process was renewed"
    );
    describe_histogram!(
        "deerflow_commit_seconds",
        Unit::Seconds,
        "Duration of commits of run progress"
    );
    describe_histogram!(
        "deerflow_publish_seconds",
        Unit::Seconds,
        "Duration of publishing a batch of events to Redis"
    );
    describe_counter!(
        "deerflow_redis_errors_total",
        "Failed Redis requests by connection"
    );
    describe_counter!(
        "deerflow_database_errors_total",
        "Database failures by kind"
    );
    describe_counter!(
        "deerflow_allocations_total",
        "Allocations and reallocations of memory, in builds that count them"
    );
    describe_channels();
    gauge!("deerflow_streams_active").set(0.0);
    gauge!("deerflow_runs_active").set(0.0);
    Some(handle)
}

fn describe_channels() {
    describe_gauge!(
        "deerflow_channel_connected",
        "1 if this process serves the channel's bot, else 0"
    );
    describe_gauge!(
        "deerflow_channel_inbox_waiting",
        "Received messages that wait, by channel"
    );
    describe_gauge!(
        "deerflow_channel_inbox_age_seconds",
        Unit::Seconds,
        "Waiting time of the oldest received message, by channel"
    );
    describe_gauge!(
        "deerflow_channel_outbox_pending",
        "Messages to be sent, by channel"
    );
    describe_counter!(
        "deerflow_channel_rate_limited_total",
        "Calls that a platform refused because of a rate limit, by channel"
    );
    describe_counter!(
        "deerflow_channel_reconnects_total",
        "Connections that ended and were opened again, by channel"
    );
    describe_histogram!(
        "deerflow_channel_accept_seconds",
        Unit::Seconds,
        "Time until a received message is stored, which its acknowledgement follows"
    );
    describe_counter!(
        "deerflow_channel_messages_total",
        "Received messages by channel and outcome"
    );
}

/// Measures runs.
#[derive(Debug, Default)]
pub struct RunMeter {
    /// Active attempts of this process with their start times.
    started: Mutex<HashMap<RunId, (u32, Instant)>>,
}

impl RunMeter {
    /// Records the start of an attempt, replacing an earlier attempt of the run.
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

    /// Records that an attempt left this process. The next attempt may already be active here.
    fn detached(&self, run: &RunId, attempt: u32) {
        let mut started = self.started.lock();
        if started
            .get(run)
            .is_some_and(|(active, _)| *active == attempt)
        {
            started.remove(run);
            gauge!("deerflow_runs_active").decrement(1.0);
        }
    }

    fn ended(&self, run: &RunId, status: &'static str) {
        counter!("deerflow_runs_total", "status" => status).increment(1);
        // A run cancelled before its start has no duration.
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
            LifecycleKind::RunLeft => self.detached(&event.run_id, event.attempt),
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
    fn run_is_active_until_end_or_newest_attempt_detaches() {
        let (meter, run) = (RunMeter::default(), RunId::parse("r").expect("an id"));
        let active = || meter.started.lock().len();
        meter.began(&run, 1);
        meter.began(&run, 2);
        meter.detached(&run, 1);
        assert_eq!(active(), 1, "the second attempt is");
        meter.detached(&run, 2);
        assert_eq!(active(), 0);
        meter.began(&run, 3);
        meter.ended(&run, "success");
        meter.detached(&run, 3);
        assert_eq!(active(), 0);
    }
}

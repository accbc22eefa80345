//! Metrics of the gateway, under the names that dashboards read.

use std::collections::HashMap;
use std::time::Duration;

use axum::http::{Method, StatusCode};
use chrono::{DateTime, Utc};
use harness::ids::RunId;
use harness::permit_waits;
use harness::runtime::runs::store::UnfinishedRun;
use harness::runtime::runs::{NodeLifecycle, QueueReason, RunQueries, RunStatus};
use harness::runtime::stream_bridge::EventData;
use metrics::{counter, gauge, histogram};
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::request_counts::REQUESTS_TOTAL;

/// Records one finished request, labelled by the pattern of its route: ids are not labels.
pub(crate) fn request_answered(
    method: &Method,
    route: Option<&str>,
    status: StatusCode,
    took: Duration,
) {
    let route = route.unwrap_or("unmatched").to_owned();
    let method = match *method {
        Method::GET => "GET",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        Method::HEAD => "HEAD",
        Method::OPTIONS => "OPTIONS",
        // Clients can invent any number of other methods.
        _ => "other",
    };
    let labels = [
        ("method", method.to_owned()),
        ("route", route),
        ("status", status.as_str().to_owned()),
    ];
    histogram!("deerflow_http_request_seconds", &labels[..2]).record(took);
    counter!(REQUESTS_TOTAL, &labels).increment(1);
}

/// Minimum interval between two counts of runs.
const REFRESH_INTERVAL: Duration = Duration::from_secs(5);
/// Timeout for counting runs; after it, the previous values are reported.
const REFRESH_TIMEOUT: Duration = Duration::from_secs(2);

/// Time of the last refresh of the run gauges.
#[derive(Debug, Default)]
pub struct RunGauges(Mutex<Option<Instant>>);

impl RunGauges {
    /// Refreshes the gauges that need a store query, unless they are recent.
    pub(crate) async fn refresh(
        &self,
        node: &NodeLifecycle,
        runs: &RunQueries,
        now: DateTime<Utc>,
    ) {
        if let Some(lease) = node.lease() {
            gauge!("deerflow_lease_age_seconds").set(lease.age.as_secs_f64());
        }
        for (work, waiting) in permit_waits::waiting() {
            gauge!("deerflow_permit_waits", "work" => work).set(waiting as f64);
        }
        gauge!("deerflow_runs_stalled").set(node.stalled_runs() as f64);
        let mut last = self.0.lock().await;
        if last.is_some_and(|at| at.elapsed() < REFRESH_INTERVAL) {
            return;
        }
        match tokio::time::timeout(REFRESH_TIMEOUT, runs.unfinished_of_all_users()).await {
            Ok(Ok(unfinished)) => {
                set_run_gauges(&unfinished, now);
                set_queue_gauges(&runs.reasons_among(&unfinished));
            }
            Ok(Err(error)) => tracing::warn!(%error, "failed to count runs"),
            Err(_) => tracing::warn!("failed to count runs: the store timed out"),
        }
        // Failed queries count too, so that an unavailable store is not queried more often than an
        // available one.
        *last = Some(Instant::now());
    }
}

/// Sets the gauges of unfinished runs in all processes.
fn set_run_gauges(runs: &[UnfinishedRun], now: DateTime<Utc>) {
    for status in [RunStatus::Pending, RunStatus::Starting, RunStatus::Running] {
        let count = runs.iter().filter(|run| run.status == status).count();
        gauge!("deerflow_runs", "state" => status.as_str()).set(count as f64);
    }
    let pending: Vec<_> = runs
        .iter()
        .filter(|run| run.status == RunStatus::Pending && run.created_at <= now)
        .collect();
    gauge!("deerflow_queue_depth").set(pending.len() as f64);
    let longest = pending
        .iter()
        .map(|run| (now - run.created_at).as_seconds_f64())
        .fold(0.0, f64::max);
    gauge!("deerflow_queue_wait_seconds").set(longest);
}

fn set_queue_gauges(reasons: &HashMap<RunId, QueueReason>) {
    for reason in QueueReason::ALL {
        let count = reasons.values().filter(|found| **found == reason).count();
        gauge!("deerflow_runs_queued", "reason" => reason.as_str()).set(count as f64);
    }
}

/// Counts as an open stream until it is dropped.
#[derive(Debug)]
pub(crate) struct OpenStream(());

impl OpenStream {
    pub(crate) fn new() -> Self {
        gauge!("deerflow_streams_active").increment(1.0);
        Self(())
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        gauge!("deerflow_streams_active").decrement(1.0);
    }
}

/// Measures the time to the first token of a run that a client created and streams.
#[derive(Debug)]
pub(crate) struct FirstToken(Option<Instant>);

impl FirstToken {
    /// Measures from `since`; `None` disables the measurement.
    pub(crate) fn since(since: Option<Instant>) -> Self {
        Self(since)
    }

    /// Observes an event that is sent to the client: its name and its data.
    pub(crate) fn observe(&mut self, event: &str, data: &EventData) {
        if let Some(since) = self.0
            && data.pieces().any(|piece| is_token(event, piece))
        {
            self.0 = None;
            histogram!("deerflow_first_token_seconds").record(since.elapsed());
        }
    }
}

/// `true` if an event holds text of a model, not a user message or a tool result.
fn is_token(event: &str, data: &[u8]) -> bool {
    const FRAGMENT: &[u8] = b"\"AIMessageChunk\"";
    let name = event.split('|').next().unwrap_or_default();
    name == "messages/partial"
        || (name == "messages" && data.windows(FRAGMENT.len()).any(|part| part == FRAGMENT))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_model_text_counts_as_token() {
        assert!(
            is_token("messages|tools:1", br#"[{"type":"AIMessageChunk"},{}]"#)
                && is_token("messages/partial", b"[]")
        );
        for (event, data) in [
            ("messages", &br#"[{"type":"human"},{}]"#[..]),
            ("messages/metadata", b"{}"),
            ("values", br#"{"AIMessageChunk":1}"#),
        ] {
            assert!(!is_token(event, data), "{event}");
        }
    }
}

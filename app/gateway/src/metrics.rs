//! What the gateway measures of itself, under the names that dashboards read.

use std::time::Duration;

use axum::http::{Method, StatusCode};
use chrono::{DateTime, Utc};
use harness::runtime::runs::store::RunStanding;
use harness::runtime::runs::{RunStatus, RunsFacade};
use metrics::{counter, gauge, histogram};
use tokio::sync::Mutex;
use tokio::time::Instant;

/// One answered request, by the pattern of its route: ids are no labels.
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
        // Clients can make up any number of others.
        _ => "other",
    };
    let labels = [
        ("method", method.to_owned()),
        ("route", route),
        ("status", status.as_str().to_owned()),
    ];
    histogram!("deerflow_http_request_seconds", &labels[..2]).record(took);
    counter!("deerflow_http_requests_total", &labels).increment(1);
}

/// How long counts of runs are shown before they are counted anew.
const COUNTED_EVERY: Duration = Duration::from_secs(5);
/// How long counting may hold the figures up; then they are shown as they were.
const COUNTING_LIMIT: Duration = Duration::from_secs(2);

/// When runs were last counted for the figures.
#[derive(Debug, Default)]
pub struct Counted(Mutex<Option<Instant>>);

impl Counted {
    /// Sets the figures that the store has to be asked for, unless that was done a moment ago.
    pub(crate) async fn refresh(&self, runs: &RunsFacade, now: DateTime<Utc>) {
        if let Some(lease) = runs.lease() {
            gauge!("deerflow_lease_age_seconds").set(lease.age.as_secs_f64());
        }
        let mut last = self.0.lock().await;
        if last.is_some_and(|at| at.elapsed() < COUNTED_EVERY) {
            return;
        }
        match tokio::time::timeout(COUNTING_LIMIT, runs.load()).await {
            Ok(Ok(standing)) => show(&standing, now),
            Ok(Err(error)) => tracing::warn!(%error, "runs cannot be counted"),
            Err(_) => tracing::warn!("runs cannot be counted: the store does not answer"),
        }
        // A store that is away is asked no more often than one that is there.
        *last = Some(Instant::now());
    }
}

/// Sets the figures of the runs that are not over, in all processes.
fn show(runs: &[RunStanding], now: DateTime<Utc>) {
    for status in [RunStatus::Pending, RunStatus::Starting, RunStatus::Running] {
        let count = runs.iter().filter(|run| run.status == status).count();
        gauge!("deerflow_runs", "state" => status.as_str()).set(count as f64);
    }
    let due: Vec<_> = runs
        .iter()
        .filter(|run| run.status == RunStatus::Pending && run.created_at <= now)
        .collect();
    gauge!("deerflow_queue_depth").set(due.len() as f64);
    let longest = due
        .iter()
        .map(|run| (now - run.created_at).as_seconds_f64())
        .fold(0.0, f64::max);
    gauge!("deerflow_queue_wait_seconds").set(longest);
}

/// Counts as an open stream as long as it lives.
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

/// Waits for the first token of a run that a client asked for and follows.
#[derive(Debug)]
pub(crate) struct FirstToken(Option<Instant>);

impl FirstToken {
    /// Asked for at `since`; without it nothing is measured.
    pub(crate) fn awaited(since: Option<Instant>) -> Self {
        Self(since)
    }

    /// Sees an event on its way to the client: its name, and how its data begins.
    pub(crate) fn see(&mut self, event: &str, data: &[u8]) {
        if let Some(since) = self.0
            && is_token(event, data)
        {
            self.0 = None;
            histogram!("deerflow_first_token_seconds").record(since.elapsed());
        }
    }
}

/// Whether an event holds text of a model, and not the question or a tool's answer.
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
    fn only_a_models_words_are_tokens() {
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

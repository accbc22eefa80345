//! Readiness checks of this process: all run concurrently, each with a timeout.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use deerflow_domain::readiness::{NotReady, ReadinessProbe};
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared, join_all};
use harness::runtime::runs::NodeLifecycle;
use serde_json::{Map, Value, json};
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::error::ApiError;

/// Timeout of one check.
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);
/// Results are cached this long, so that frequent probes cause no load.
const CACHE_TTL: Duration = Duration::from_secs(1);

/// Result of one check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PartState {
    /// The part works.
    Healthy,
    /// The part failed; the reason, if any, is safe to publish.
    Failed(Option<NotReady>),
    /// The part did not answer within the timeout.
    TimedOut,
}

/// Name, result and latency of one check.
#[derive(Debug, Clone)]
pub(crate) struct ProbeResult {
    name: &'static str,
    /// `true` if the process accepts no runs without this part.
    essential: bool,
    state: PartState,
    took: Duration,
}

/// Readiness of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Readiness {
    /// All parts work.
    Ready,
    /// Runs are accepted, but a part failed.
    Degraded,
    /// No run can be accepted.
    NotReady,
}

/// Returns the readiness that follows from the results.
pub(crate) fn readiness(results: &[ProbeResult]) -> Readiness {
    match results
        .iter()
        .filter(|result| result.state != PartState::Healthy)
        .map(|result| result.essential)
        .max()
    {
        None => Readiness::Ready,
        Some(false) => Readiness::Degraded,
        Some(true) => Readiness::NotReady,
    }
}

/// Returns the results of the part called `name`.
pub(crate) fn results_of(results: &[ProbeResult], name: &str) -> Vec<ProbeResult> {
    results
        .iter()
        .filter(|result| result.name == name)
        .cloned()
        .collect()
}

/// Returns the reason of the first essential failure.
pub(crate) fn reason(results: &[ProbeResult]) -> Option<String> {
    results
        .iter()
        .filter(|result| result.essential)
        .find_map(|result| match result.state {
            PartState::Healthy => None,
            PartState::Failed(Some(reason)) => Some(reason.to_string()),
            PartState::Failed(None) => Some(format!("{} failed", result.name)),
            PartState::TimedOut => Some(format!("{} does not answer", result.name)),
        })
}

/// Returns the results as JSON. The endpoint is public, so reasons come from a fixed vocabulary;
/// the log has details.
pub(crate) fn results_json(results: &[ProbeResult]) -> Value {
    let one = |result: &ProbeResult| {
        let state = match result.state {
            PartState::Healthy => "ok",
            PartState::Failed(_) => "failed",
            PartState::TimedOut => "silent",
        };
        let latency_ms = (result.took.as_secs_f64() * 100_000.0).round() / 100.0;
        let mut json = json!({ "state": state, "latency_ms": latency_ms });
        if let PartState::Failed(Some(reason)) = result.state {
            json["reason"] = reason.to_string().into();
        }
        (result.name.to_owned(), json)
    };
    Value::Object(results.iter().map(one).collect::<Map<_, _>>())
}

/// The configured probes and their latest results.
#[derive(Debug, Default)]
pub struct Health {
    last: Mutex<Option<(Instant, Vec<ProbeResult>)>>,
    probes: Vec<SharedProbe>,
}

impl Health {
    /// Adds `probes` to the built-in checks. Each probe is essential: if it fails, no run can be
    /// accepted.
    pub fn new(probes: Vec<Arc<dyn ReadinessProbe>>) -> Self {
        Self {
            last: Mutex::default(),
            probes: probes.into_iter().map(SharedProbe::new).collect(),
        }
    }

    /// Rejects a request that would store new data while disk space is low.
    pub(crate) fn require_space(&self) -> Result<(), ApiError> {
        let is_short = self
            .probes
            .iter()
            .any(|shared_probe| shared_probe.probe.is_short_of_space());
        if is_short {
            Err(ApiError::NotWritable(NotReady::DiskFull.to_string()))
        } else {
            Ok(())
        }
    }

    /// Checks the database, the stream bridge, this process's lease and the probes, or returns
    /// cached results.
    pub(crate) async fn check(&self, node: &NodeLifecycle) -> Vec<ProbeResult> {
        let mut last = self.last.lock().await;
        if let Some((_, results)) = last.as_ref().filter(|(at, _)| at.elapsed() < CACHE_TTL) {
            return results.clone();
        }
        let database = async {
            node.check_store()
                .await
                .map_err(|error| Failure::Text(error.to_string()))
        };
        let bridge = async {
            node.check_bridge()
                .await
                .map_err(|error| Failure::Text(error.to_string()))
        };
        let lease = async {
            match node.lease() {
                _ if node.is_displaced() => Err(Failure::Text(
                    "another process has taken the store lock".to_owned(),
                )),
                Some(lease) if !lease.holds() => {
                    Err(Failure::Text("this process's lease expired".to_owned()))
                }
                _ => Ok(()),
            }
        };
        let shared =
            join_all(self.probes.iter().map(|shared_probe| {
                run_check(shared_probe.probe.name(), true, shared_probe.probe())
            }));
        let (database, bridge, lease, shared) = tokio::join!(
            run_check("database", true, database),
            run_check("stream_bridge", false, bridge),
            run_check("lease", true, lease),
            shared
        );
        let results = merge_results(vec![database, bridge, lease], shared);
        *last = Some((Instant::now(), results.clone()));
        results
    }
}

/// Merges results. Of two results for one part, the failed one is retained.
fn merge_results(mut results: Vec<ProbeResult>, more: Vec<ProbeResult>) -> Vec<ProbeResult> {
    for new in more {
        match results.iter_mut().find(|known| known.name == new.name) {
            Some(known) if new.state != PartState::Healthy || known.state == PartState::Healthy => {
                *known = new
            }
            Some(_) => {}
            None => results.push(new),
        }
    }
    results
}

/// A probe of which at most one call is in flight: a hanging disk is not probed again until it
/// answers.
#[derive(Debug)]
struct SharedProbe {
    probe: Arc<dyn ReadinessProbe>,
    in_flight: parking_lot::Mutex<Option<PendingProbe>>,
}

type PendingProbe = Shared<BoxFuture<'static, Result<(), NotReady>>>;

impl SharedProbe {
    fn new(probe: Arc<dyn ReadinessProbe>) -> Self {
        Self {
            probe,
            in_flight: parking_lot::Mutex::default(),
        }
    }

    /// Runs the probe. If an earlier call was dropped while its probe was in flight, this call
    /// waits for that probe first.
    async fn probe(&self) -> Result<(), Failure> {
        let earlier = self.in_flight.lock().clone();
        if let Some(earlier) = earlier {
            // Its caller was dropped, so the result may be out of date.
            let _outdated = earlier.await;
        }
        let probe = Arc::clone(&self.probe);
        let pending = async move { probe.probe().await }.boxed().shared();
        *self.in_flight.lock() = Some(pending.clone());
        let outcome = pending.await;
        *self.in_flight.lock() = None;
        outcome.map_err(Failure::Reason)
    }
}

/// Failure of a check.
enum Failure {
    /// Safe to publish.
    Reason(NotReady),
    /// For the log only.
    Text(String),
}

async fn run_check(
    name: &'static str,
    essential: bool,
    outcome: impl Future<Output = Result<(), Failure>>,
) -> ProbeResult {
    let since = Instant::now();
    let state = match tokio::time::timeout(PROBE_TIMEOUT, outcome).await {
        Ok(Ok(())) => PartState::Healthy,
        Ok(Err(Failure::Text(error))) => {
            tracing::warn!(
                part = name,
                error,
                "a required component failed its health check"
            );
            PartState::Failed(None)
        }
        Ok(Err(Failure::Reason(reason))) => {
            tracing::warn!(part = name, %reason, "a required component failed its health check");
            PartState::Failed(Some(reason))
        }
        Err(_) => {
            tracing::warn!(
                part = name,
                "a required component timed out in its health check"
            );
            PartState::TimedOut
        }
    };
    ProbeResult {
        name,
        essential,
        state,
        took: since.elapsed(),
    }
}

#[cfg(test)]
#[path = "health_tests.rs"]
mod tests;

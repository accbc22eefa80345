//! What this process needs to work, asked all at once and never for long.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use deerflow_domain::readiness::{NotReady, ReadinessProbe};
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared, join_all};
use harness::runtime::runs::RunsFacade;
use serde_json::{Map, Value, json};
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::error::ApiError;

/// How long a part may take to answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// Who asks again within this gets the same findings: probes are no load.
const FRESH: Duration = Duration::from_secs(1);

/// How a part does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Condition {
    /// It answers.
    Fine,
    /// It says that it does not work, and perhaps a reason that anybody may read.
    Failed(Option<NotReady>),
    /// It does not answer in time.
    Silent,
}

/// What was found out about a part.
#[derive(Debug, Clone)]
pub(crate) struct Finding {
    name: &'static str,
    /// Whether no run can be taken without it.
    essential: bool,
    condition: Condition,
    took: Duration,
}

/// How the whole does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Everything works.
    Ready,
    /// Runs are taken, but a part is missing.
    Degraded,
    /// No run can be taken.
    NotReady,
}

/// The verdict over findings.
pub(crate) fn verdict(findings: &[Finding]) -> Verdict {
    match findings
        .iter()
        .filter(|finding| finding.condition != Condition::Fine)
        .map(|finding| finding.essential)
        .max()
    {
        None => Verdict::Ready,
        Some(false) => Verdict::Degraded,
        Some(true) => Verdict::NotReady,
    }
}

/// The result of probing one part.
pub(crate) fn of_part(findings: &[Finding], name: &str) -> Vec<Finding> {
    findings
        .iter()
        .filter(|finding| finding.name == name)
        .cloned()
        .collect()
}

/// The reason of a verdict that no run can be taken, where one is known.
pub(crate) fn reason(findings: &[Finding]) -> Option<String> {
    findings
        .iter()
        .filter(|finding| finding.essential)
        .find_map(|finding| match finding.condition {
            Condition::Fine => None,
            Condition::Failed(Some(reason)) => Some(reason.to_string()),
            Condition::Failed(None) => Some(format!("{} failed", finding.name)),
            Condition::Silent => Some(format!("{} does not answer", finding.name)),
        })
}

/// Findings as probes read them. Reasons are of a fixed vocabulary, for anybody may ask; the log says more.
pub(crate) fn findings_json(findings: &[Finding]) -> Value {
    let one = |finding: &Finding| {
        let state = match finding.condition {
            Condition::Fine => "ok",
            Condition::Failed(_) => "failed",
            Condition::Silent => "silent",
        };
        let latency_ms = (finding.took.as_secs_f64() * 100_000.0).round() / 100.0;
        let mut shown = json!({ "state": state, "latency_ms": latency_ms });
        if let Condition::Failed(Some(reason)) = finding.condition {
            shown["reason"] = reason.to_string().into();
        }
        (finding.name.to_owned(), shown)
    };
    Value::Object(findings.iter().map(one).collect::<Map<_, _>>())
}

/// The last findings, and the probes that findings come from.
#[derive(Debug, Default)]
pub struct Health {
    last: Mutex<Option<(Instant, Vec<Finding>)>>,
    probes: Vec<Trial>,
}

impl Health {
    /// Asks these probes too. Each of them is essential: without it no run can be taken.
    pub fn new(probes: Vec<Arc<dyn ReadinessProbe>>) -> Self {
        Self {
            last: Mutex::default(),
            probes: probes.into_iter().map(Trial::new).collect(),
        }
    }

    /// Refuses what would store something new while space is low.
    pub(crate) fn require_space(&self) -> Result<(), ApiError> {
        let is_short = self
            .probes
            .iter()
            .any(|trial| trial.probe.is_short_of_space());
        if is_short {
            Err(ApiError::NotWritable(NotReady::DiskFull.to_string()))
        } else {
            Ok(())
        }
    }

    /// Asks the database, the stream bridge, the lease of this process and the probes, or gives what was found a moment ago.
    pub(crate) async fn look(&self, runs: &RunsFacade) -> Vec<Finding> {
        let mut last = self.last.lock().await;
        if let Some((_, findings)) = last.as_ref().filter(|(at, _)| at.elapsed() < FRESH) {
            return findings.clone();
        }
        let parts = runs.parts();
        let database = async {
            parts
                .nodes
                .list()
                .await
                .map(drop)
                .map_err(|error| Failure::Text(error.to_string()))
        };
        let bridge = async {
            parts
                .bridge
                .ping()
                .await
                .map_err(|error| Failure::Text(error.to_string()))
        };
        let lease = async {
            match runs.lease() {
                _ if runs.is_displaced() => Err(Failure::Text(
                    "another process has taken the store".to_owned(),
                )),
                Some(lease) if !lease.holds() => Err(Failure::Text("it lapsed".to_owned())),
                _ => Ok(()),
            }
        };
        let trials = join_all(
            self.probes
                .iter()
                .map(|trial| ask(trial.probe.name(), true, trial.ask())),
        );
        let (database, bridge, lease, trials) = tokio::join!(
            ask("database", true, database),
            ask("stream_bridge", false, bridge),
            ask("lease", true, lease),
            trials
        );
        let findings = together(vec![database, bridge, lease], trials);
        *last = Some((Instant::now(), findings.clone()));
        findings
    }
}

/// Adds findings; of two about one part, the one that says what is wrong stays.
fn together(mut findings: Vec<Finding>, more: Vec<Finding>) -> Vec<Finding> {
    for new in more {
        match findings.iter_mut().find(|known| known.name == new.name) {
            Some(known)
                if new.condition != Condition::Fine || known.condition == Condition::Fine =>
            {
                *known = new
            }
            Some(_) => {}
            None => findings.push(new),
        }
    }
    findings
}

/// A probe, of which one question at most is under way: a disk that hangs is not asked again until it answers.
#[derive(Debug)]
struct Trial {
    probe: Arc<dyn ReadinessProbe>,
    under_way: parking_lot::Mutex<Option<Question>>,
}

type Question = Shared<BoxFuture<'static, Result<(), NotReady>>>;

impl Trial {
    fn new(probe: Arc<dyn ReadinessProbe>) -> Self {
        Self {
            probe,
            under_way: parking_lot::Mutex::default(),
        }
    }

    /// Asks. One question at a time. May be dropped; what it asked is then waited for by the next one.
    async fn ask(&self) -> Result<(), Failure> {
        let earlier = self.under_way.lock().clone();
        if let Some(earlier) = earlier {
            // Somebody asked it who did not wait for it: it says nothing about this moment.
            let _outdated = earlier.await;
        }
        let probe = Arc::clone(&self.probe);
        let question = async move { probe.probe().await }.boxed().shared();
        *self.under_way.lock() = Some(question.clone());
        let answer = question.await;
        *self.under_way.lock() = None;
        answer.map_err(Failure::Reason)
    }
}

/// A failure of a part.
enum Failure {
    /// For anybody.
    Reason(NotReady),
    /// For the log.
    Text(String),
}

async fn ask(
    name: &'static str,
    essential: bool,
    answer: impl Future<Output = Result<(), Failure>>,
) -> Finding {
    let since = Instant::now();
    let condition = match tokio::time::timeout(PATIENCE, answer).await {
        Ok(Ok(())) => Condition::Fine,
        Ok(Err(Failure::Text(error))) => {
            tracing::warn!(
                part = name,
                error,
                "a part that this process needs does not work"
            );
            Condition::Failed(None)
        }
        Ok(Err(Failure::Reason(reason))) => {
            tracing::warn!(part = name, %reason, "a part that this process needs does not work");
            Condition::Failed(Some(reason))
        }
        Err(_) => {
            tracing::warn!(
                part = name,
                "a part that this process needs does not answer"
            );
            Condition::Silent
        }
    };
    Finding {
        name,
        essential,
        condition,
        took: since.elapsed(),
    }
}

#[cfg(test)]
#[path = "health_tests.rs"]
mod tests;

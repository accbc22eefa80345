//! What this process needs to work, asked all at once and never for long.

use std::future::Future;
use std::time::Duration;

use harness::runtime::runs::RunsFacade;
use serde_json::{Map, Value, json};
use tokio::sync::Mutex;
use tokio::time::Instant;

/// How long a part may take to answer.
pub(crate) const PATIENCE: Duration = Duration::from_secs(2);
/// Who asks again within this gets the same findings: probes are no load.
const FRESH: Duration = Duration::from_secs(1);

/// How a part does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Condition {
    /// It answers.
    Fine,
    /// It says that it does not work.
    Failed,
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
    match findings.iter().filter(|finding| finding.condition != Condition::Fine).map(|finding| finding.essential).max() {
        None => Verdict::Ready,
        Some(false) => Verdict::Degraded,
        Some(true) => Verdict::NotReady,
    }
}

/// Findings as probes read them: nothing of why, for anybody may ask. The log says why.
pub(crate) fn findings_json(findings: &[Finding]) -> Value {
    let one = |finding: &Finding| {
        let state = match finding.condition {
            Condition::Fine => "ok",
            Condition::Failed => "failed",
            Condition::Silent => "silent",
        };
        let latency_ms = (finding.took.as_secs_f64() * 100_000.0).round() / 100.0;
        (finding.name.to_owned(), json!({ "state": state, "latency_ms": latency_ms }))
    };
    Value::Object(findings.iter().map(one).collect::<Map<_, _>>())
}

/// The last findings.
#[derive(Debug, Default)]
pub struct Health(Mutex<Option<(Instant, Vec<Finding>)>>);

impl Health {
    /// Asks the database, the stream bridge and the lease of this process, or gives what was found a moment ago.
    pub(crate) async fn look(&self, runs: &RunsFacade) -> Vec<Finding> {
        let mut last = self.0.lock().await;
        if let Some((_, findings)) = last.as_ref().filter(|(at, _)| at.elapsed() < FRESH) {
            return findings.clone();
        }
        let parts = runs.parts();
        let database = async { parts.nodes.list().await.map(drop).map_err(|error| error.to_string()) };
        let bridge = async { parts.bridge.ping().await.map_err(|error| error.to_string()) };
        let lease = async {
            match runs.lease() {
                _ if runs.is_displaced() => Err("another process has taken the store".to_owned()),
                Some(lease) if !lease.holds() => Err("it lapsed".to_owned()),
                _ => Ok(()),
            }
        };
        let (database, bridge, lease) =
            tokio::join!(ask("database", true, database), ask("stream_bridge", false, bridge), ask("lease", true, lease));
        let findings = vec![database, bridge, lease];
        *last = Some((Instant::now(), findings.clone()));
        findings
    }
}

async fn ask(name: &'static str, essential: bool, answer: impl Future<Output = Result<(), String>>) -> Finding {
    let since = Instant::now();
    let condition = match tokio::time::timeout(PATIENCE, answer).await {
        Ok(Ok(())) => Condition::Fine,
        Ok(Err(error)) => {
            tracing::warn!(part = name, error, "a part that this process needs does not work");
            Condition::Failed
        }
        Err(_) => {
            tracing::warn!(part = name, "a part that this process needs does not answer");
            Condition::Silent
        }
    };
    Finding { name, essential, condition, took: since.elapsed() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(essential: bool, condition: Condition) -> Finding {
        Finding { name: "part", essential, condition, took: Duration::from_micros(1_230) }
    }

    #[test]
    fn only_essential_parts_keep_runs_from_being_taken() {
        let (fine, extra, needed) = (finding(true, Condition::Fine), finding(false, Condition::Silent), finding(true, Condition::Failed));
        assert_eq!(verdict(&[]), Verdict::Ready);
        assert_eq!(verdict(std::slice::from_ref(&fine)), Verdict::Ready);
        assert_eq!(verdict(&[fine, extra.clone()]), Verdict::Degraded);
        assert_eq!(verdict(&[extra, needed.clone()]), Verdict::NotReady);
        assert_eq!(findings_json(&[needed]), json!({ "part": { "state": "failed", "latency_ms": 1.23 } }));
    }

    #[tokio::test(start_paused = true)]
    async fn a_part_that_never_answers_holds_nobody() {
        let asked = ask("part", true, std::future::pending()).await;
        assert_eq!((asked.condition, asked.took), (Condition::Silent, PATIENCE));
    }
}

//! Verdicts over findings, and probes that hang.

use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use deerflow_domain::readiness::StoredFile;
use tokio::sync::Semaphore;

use super::*;

fn finding(essential: bool, condition: Condition) -> Finding {
    Finding {
        name: "part",
        essential,
        condition,
        took: Duration::from_micros(1_230),
    }
}

#[test]
fn only_essential_parts_keep_runs_from_being_taken() {
    let removed = Condition::Failed(Some(NotReady::Removed(StoredFile::Database)));
    let (fine, extra, needed) = (
        finding(true, Condition::Fine),
        finding(false, Condition::Silent),
        finding(true, removed),
    );
    assert_eq!((verdict(&[]), reason(&[])), (Verdict::Ready, None));
    assert_eq!(verdict(std::slice::from_ref(&fine)), Verdict::Ready);
    assert_eq!(verdict(&[fine, extra.clone()]), Verdict::Degraded);
    let findings = [extra, needed.clone()];
    assert_eq!(
        (verdict(&findings), reason(&findings)),
        (
            Verdict::NotReady,
            Some("database file was removed".to_owned())
        )
    );
    let shown = json!({ "part": { "state": "failed", "latency_ms": 1.23, "reason": "database file was removed" } });
    assert_eq!(findings_json(&[needed]), shown);
}

#[test]
fn of_two_findings_on_a_part_the_worse_one_stays() {
    let (fine, failed) = (
        finding(true, Condition::Fine),
        finding(true, Condition::Failed(None)),
    );
    for (first, second) in [(&fine, &failed), (&failed, &fine)] {
        let findings = together(vec![first.clone()], vec![second.clone()]);
        assert_eq!((findings.len(), verdict(&findings)), (1, Verdict::NotReady));
    }
}

#[tokio::test(start_paused = true)]
async fn a_part_that_never_answers_holds_nobody() {
    let asked = ask("part", true, std::future::pending()).await;
    assert_eq!((asked.condition, asked.took), (Condition::Silent, PATIENCE));
}

/// A disk that hangs until it is let go, and counts how often it was asked.
#[derive(Debug)]
struct Hanging {
    asked: AtomicUsize,
    go: Semaphore,
}

#[async_trait]
impl ReadinessProbe for Hanging {
    fn name(&self) -> &'static str {
        "disk"
    }

    async fn probe(&self) -> Result<(), NotReady> {
        let before = self.asked.fetch_add(1, Ordering::SeqCst);
        self.go.acquire().await.expect("open").forget();
        if before == 0 {
            Ok(())
        } else {
            Err(NotReady::DiskFull)
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_hanging_probe_is_asked_once_and_then_anew() {
    let probe = Arc::new(Hanging {
        asked: AtomicUsize::new(0),
        go: Semaphore::new(0),
    });
    let trial = Trial::new(probe.clone());
    for _ in 0..3 {
        let asked = ask("disk", true, trial.ask()).await;
        assert_eq!(
            (asked.condition, probe.asked.load(Ordering::SeqCst)),
            (Condition::Silent, 1)
        );
    }
    probe.go.add_permits(2);
    // The answer to the first question is that of a moment long gone.
    let asked = ask("disk", true, trial.ask()).await;
    assert_eq!(
        (asked.condition, probe.asked.load(Ordering::SeqCst)),
        (Condition::Failed(Some(NotReady::DiskFull)), 2)
    );
}

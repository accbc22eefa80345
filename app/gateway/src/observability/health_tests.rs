//! Readiness from results, and probes that hang.

use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use deerflow_domain::readiness::StoredFile;
use tokio::sync::Semaphore;

use super::*;

fn result(essential: bool, state: PartState) -> ProbeResult {
    ProbeResult {
        name: "part",
        essential,
        state,
        took: Duration::from_micros(1_230),
    }
}

#[test]
fn readiness_depends_on_essential_parts() {
    let removed = PartState::Failed(Some(NotReady::Removed(StoredFile::Database)));
    let (fine, extra, needed) = (
        result(true, PartState::Healthy),
        result(false, PartState::TimedOut),
        result(true, removed),
    );
    assert_eq!((readiness(&[]), reason(&[])), (Readiness::Ready, None));
    assert_eq!(readiness(std::slice::from_ref(&fine)), Readiness::Ready);
    assert_eq!(readiness(&[fine, extra.clone()]), Readiness::Degraded);
    let results = [extra, needed.clone()];
    assert_eq!(
        (readiness(&results), reason(&results)),
        (
            Readiness::NotReady,
            Some("database file was removed".to_owned())
        )
    );
    let expected = json!({ "part": { "state": "failed", "latency_ms": 1.23, "reason": "database file was removed" } });
    assert_eq!(results_json(&[needed]), expected);
}

#[test]
fn worse_of_two_results_for_a_part_is_retained() {
    let (fine, failed) = (
        result(true, PartState::Healthy),
        result(true, PartState::Failed(None)),
    );
    for (first, second) in [(&fine, &failed), (&failed, &fine)] {
        let results = merge_results(vec![first.clone()], vec![second.clone()]);
        assert_eq!(
            (results.len(), readiness(&results)),
            (1, Readiness::NotReady)
        );
    }
}

#[tokio::test(start_paused = true)]
async fn hanging_part_times_out() {
    let probed = run_check("part", true, std::future::pending()).await;
    assert_eq!(
        (probed.state, probed.took),
        (PartState::TimedOut, PROBE_TIMEOUT)
    );
}

/// A disk that hangs until it is released, and counts its probes.
#[derive(Debug)]
struct Hanging {
    probed: AtomicUsize,
    go: Semaphore,
}

#[async_trait]
impl ReadinessProbe for Hanging {
    fn name(&self) -> &'static str {
        "disk"
    }

    async fn probe(&self) -> Result<(), NotReady> {
        let before = self.probed.fetch_add(1, Ordering::SeqCst);
        self.go.acquire().await.expect("open").forget();
        if before == 0 {
            Ok(())
        } else {
            Err(NotReady::DiskFull)
        }
    }
}

#[tokio::test(start_paused = true)]
async fn hanging_probe_runs_once_and_then_again() {
    let probe = Arc::new(Hanging {
        probed: AtomicUsize::new(0),
        go: Semaphore::new(0),
    });
    let shared_probe = SharedProbe::new(probe.clone());
    for _ in 0..3 {
        let probed = run_check("disk", true, shared_probe.probe()).await;
        assert_eq!(
            (probed.state, probe.probed.load(Ordering::SeqCst)),
            (PartState::TimedOut, 1)
        );
    }
    probe.go.add_permits(2);
    // The result of the first probe is outdated by now.
    let probed = run_check("disk", true, shared_probe.probe()).await;
    assert_eq!(
        (probed.state, probe.probed.load(Ordering::SeqCst)),
        (PartState::Failed(Some(NotReady::DiskFull)), 2)
    );
}

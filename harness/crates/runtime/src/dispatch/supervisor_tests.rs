//! Tests of runs whose execution panics outside of the agent.

use std::sync::atomic::Ordering;

use super::*;
use crate::runs::*;
use crate::test_support::*;

#[tokio::test]
async fn panic_after_stored_end_reports_that_end() {
    as_user(async {
        let inner = facade();
        let bridge = RecordingBridge::over(inner.runtime().ports().bridge.clone());
        let process = over(RuntimePorts {
            bridge: bridge.clone(),
            ..inner.runtime().ports().clone()
        });
        bridge.panics_at_terminal.store(true, Ordering::Relaxed);
        let (run, outcome) = process.create_and_wait(spec("finish")).await.unwrap();
        assert_eq!(texts(&outcome), ["hello", "one two"]);
        let stored = process.get_run(None, &run.run_id).await.unwrap().unwrap();
        assert_eq!(stored.status, RunStatus::Success);
        assert_eq!(*bridge.ends.lock(), ["End by attempt 1"; 2]);
    })
    .await;
}

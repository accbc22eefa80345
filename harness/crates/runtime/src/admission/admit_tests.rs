//! Tests of signals that admission sends to other processes.

use futures_util::StreamExt;
use tokio::time::{Instant, timeout};

use super::*;
use crate::test_support::*;

#[tokio::test(start_paused = true)]
async fn run_released_at_admission_wakes_other_processes() {
    as_user(async {
        let process = facade();
        let runtime = process.runtime();
        let lease = &runtime.registry.node_lease;
        lease.set_shared(true);
        let expired = Duration::ZERO;
        lease.confirm(Instant::now(), expired);
        let mut signals = runtime.ports().bell.listen();
        let run = process.create_background(spec("finish")).await.unwrap();
        assert_eq!((run.status, run.attempt), (RunStatus::Pending, 2));
        let signal = timeout(Duration::from_secs(60), signals.next()).await;
        assert_eq!(signal, Ok(Some(WakeSignal::Waiting)));
    })
    .await;
}

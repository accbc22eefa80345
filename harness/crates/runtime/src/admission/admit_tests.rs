//! Tests of signals that admission sends to other processes.

use async_trait::async_trait;
use futures_util::StreamExt;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

use super::*;
use crate::definition::{RunRequest, StoreError, UserRunLimits};
use crate::ports::{Admitted, Claimed, RunCreateStore};
use crate::stream_bridge::{ResumeFrom, StreamItem};
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

/// Store that admits runs, and loses the response when the test permits it.
#[derive(Debug)]
struct LostResponse {
    store: Arc<dyn RunCreateStore>,
    admitted: Notify,
    lost: Notify,
}

#[async_trait]
impl RunCreateStore for LostResponse {
    async fn admit(&self, run: NewRun) -> Result<Admitted, AdmitError> {
        self.store.admit(run).await?;
        self.admitted.notify_one();
        self.lost.notified().await;
        Err(StoreError::Unavailable("no response".to_owned()).into())
    }

    async fn claim(
        &self,
        node: &NodeId,
        now: DateTime<Utc>,
        limits: UserRunLimits,
    ) -> Result<Option<Claimed>, StoreError> {
        self.store.claim(node, now, limits).await
    }

    async fn take_over(
        &self,
        node: &NodeId,
        now: DateTime<Utc>,
    ) -> Result<Option<Claimed>, StoreError> {
        self.store.take_over(node, now).await
    }

    async fn next_due(&self, now: DateTime<Utc>) -> Result<Option<DateTime<Utc>>, StoreError> {
        self.store.next_due(now).await
    }

    async fn request_cancel(
        &self,
        run: &RunId,
        action: CancelAction,
        at: DateTime<Utc>,
    ) -> Result<Option<RunRecord>, StoreError> {
        self.store.request_cancel(run, action, at).await
    }
}

#[tokio::test(start_paused = true)]
async fn viewer_of_a_run_without_admission_response_is_released() {
    as_user(async {
        let ports = facade().runtime().ports().clone();
        let create = Arc::new(LostResponse {
            store: ports.create.clone(),
            admitted: Notify::new(),
            lost: Notify::new(),
        });
        let process = over(RuntimePorts {
            create: create.clone(),
            ..ports
        });
        let run_id = RunId::parse("unanswered").unwrap();
        let request = RunRequest {
            run_id: Some(run_id.clone()),
            ..spec("finish")
        };
        let viewing = async {
            create.admitted.notified().await;
            let heartbeat = Duration::from_secs(5);
            let mut viewer = process
                .join_stream(None, &run_id, ResumeFrom::Start, heartbeat)
                .await
                .unwrap()
                .items;
            assert_eq!(viewer.next().await, Some(StreamItem::Heartbeat));
            create.lost.notify_one();
            timeout(Duration::from_secs(60), viewer.next()).await
        };
        let (created, next) = tokio::join!(process.create_background(request), viewing);
        assert!(created.is_err());
        assert_eq!(next, Ok(Some(StreamItem::Aborted)));
    })
    .await;
}

//! Tests of signals that admission sends to other processes.

use async_trait::async_trait;
use futures_util::StreamExt;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

use super::*;
use crate::definition::{RunRequest, StoreError, UserRunLimits};
use crate::ports::{Admitted, Claimed, RunCreateStore};
use crate::runs::RunsFacade;
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

/// Store that admits runs, and responds when the test permits it.
#[derive(Debug)]
struct GatedAdmission {
    store: Arc<dyn RunCreateStore>,
    response: Response,
    admitted: Notify,
    permitted: Notify,
}

#[derive(Debug)]
enum Response {
    Sent,
    Lost,
    Panics,
}

/// Returns a process whose store responds in this way.
fn gated(response: Response) -> (RunsFacade, Arc<GatedAdmission>) {
    let ports = facade().runtime().ports().clone();
    let create = Arc::new(GatedAdmission {
        store: ports.create.clone(),
        response,
        admitted: Notify::new(),
        permitted: Notify::new(),
    });
    let process = over(RuntimePorts {
        create: create.clone(),
        ..ports
    });
    (process, create)
}

fn request(run_id: &RunId) -> RunRequest {
    RunRequest {
        run_id: Some(run_id.clone()),
        ..spec("finish")
    }
}

#[async_trait]
impl RunCreateStore for GatedAdmission {
    async fn admit(&self, run: NewRun) -> Result<Admitted, AdmitError> {
        let admitted = self.store.admit(run).await?;
        self.admitted.notify_one();
        self.permitted.notified().await;
        match self.response {
            Response::Sent => Ok(admitted),
            Response::Lost => Err(StoreError::Unavailable("no response".to_owned()).into()),
            Response::Panics => panic!("the store panics"),
        }
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
        let (process, create) = gated(Response::Lost);
        let run_id = RunId::parse("unanswered").unwrap();
        let viewing = async {
            create.admitted.notified().await;
            let heartbeat = Duration::from_secs(5);
            let mut viewer = process
                .join_stream(None, &run_id, ResumeFrom::Start, heartbeat)
                .await
                .unwrap()
                .items;
            assert_eq!(viewer.next().await, Some(StreamItem::Heartbeat));
            create.permitted.notify_one();
            timeout(Duration::from_secs(60), viewer.next()).await
        };
        let (created, next) = tokio::join!(process.create_background(request(&run_id)), viewing);
        assert!(created.is_err());
        assert_eq!(next, Ok(Some(StreamItem::Aborted)));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn run_is_executed_if_its_caller_disconnects() {
    as_user(async {
        let (process, create) = gated(Response::Sent);
        let run_id = RunId::parse("abandoned").unwrap();
        tokio::select! {
            created = process.create_background(request(&run_id)) => panic!("{created:?}"),
            () = create.admitted.notified() => {}
        }
        create.permitted.notify_one();
        let outcome = process.join_wait(None, &run_id).await.unwrap();
        assert_eq!(texts(&outcome), ["hello", "one two"]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn panic_at_admission_is_reported_to_the_caller() {
    as_user(async {
        let (process, create) = gated(Response::Panics);
        create.permitted.notify_one();
        let run_id = RunId::parse("panicked").unwrap();
        let error = process
            .create_background(request(&run_id))
            .await
            .unwrap_err();
        assert!(error.to_string().contains("the store panics"), "{error}");
    })
    .await;
}

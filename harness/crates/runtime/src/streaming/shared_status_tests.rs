//! Tests of the status reads that subscribers and waiting callers of a run share.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::StreamExt;

use crate::definition::{RunRecord, StopReason, StoreError};
use crate::ports::{RunListQuery, RunQueryStore, RuntimePorts, UnfinishedRun};
use crate::stream_bridge::{EventName, ResumeFrom, StreamItem, StreamKey, TerminalKind};
use crate::streaming::wait_service::WaitOutcome;
use crate::termination::{LOST_TEXT, end_orphan};
use crate::test_support::*;
use deerflow_core::actor_context::Owner;
use deerflow_core::ids::{RunId, ThreadId};

/// Counts the reads of runs.
#[derive(Debug)]
struct CountingStore(Arc<dyn RunQueryStore>, AtomicUsize);

#[async_trait]
impl RunQueryStore for CountingStore {
    async fn get(&self, run: &RunId, owner: &Owner) -> Result<Option<RunRecord>, StoreError> {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0.get(run, owner).await
    }

    async fn list(
        &self,
        thread: &ThreadId,
        query: &RunListQuery,
        owner: &Owner,
    ) -> Result<Vec<RunRecord>, StoreError> {
        self.0.list(thread, query, owner).await
    }

    async fn active(&self, thread: &ThreadId) -> Result<Option<RunRecord>, StoreError> {
        self.0.active(thread).await
    }

    async fn kept_values(&self, run: &RunId) -> Result<Option<Bytes>, StoreError> {
        self.0.kept_values(run).await
    }

    async fn standing(
        &self,
        thread: Option<&ThreadId>,
        owner: &Owner,
    ) -> Result<Vec<UnfinishedRun>, StoreError> {
        self.0.standing(thread, owner).await
    }
}

#[tokio::test(start_paused = true)]
async fn subscribers_of_silent_run_share_status_reads() {
    as_user(async {
        let ports = facade().runtime().ports().clone();
        let counting = Arc::new(CountingStore(ports.query.clone(), AtomicUsize::new(0)));
        let facade = over(RuntimePorts {
            query: counting.clone(),
            ..ports.clone()
        });
        let run = ports
            .create
            .admit(crate::testkit::new_run("left", "t1"))
            .await
            .unwrap()
            .run;
        let key = StreamKey {
            run_id: run.run_id.clone(),
            attempt: run.attempt,
        };
        ports
            .bridge
            .publish(
                &key,
                EventName::Borrowed("values"),
                Bytes::from_static(b"{}").into(),
            )
            .await
            .unwrap();
        let mut streams = Vec::new();
        for n in 0..500 {
            streams.push(
                facade
                    .join_stream(None, &run.run_id, ResumeFrom::Start, BEAT)
                    .await
                    .unwrap(),
            );
            // The subscribers arrive over ten seconds.
            tokio::time::sleep(Duration::from_millis(20)).await;
            if n == 0 {
                assert!(matches!(
                    streams[0].items.next().await,
                    Some(StreamItem::Event(_))
                ));
            }
        }
        let before = counting.1.load(Ordering::Relaxed);
        let silent = async {
            tokio::time::sleep(Duration::from_secs(30)).await;
            counting.1.load(Ordering::Relaxed) - before
        };
        let views = futures_util::future::join_all(
            streams
                .into_iter()
                .map(|stream| stream.items.collect::<Vec<_>>()),
        );
        let ended = async {
            let reads = silent.await;
            end_orphan(&run, StopReason::OrphanRecovered, LOST_TEXT, &ports).await;
            reads
        };
        let (reads, views) = futures_util::future::join(ended, views).await;
        assert!((14..=31).contains(&reads), "{reads} reads in 30 seconds");
        assert!(
            views
                .iter()
                .all(|items| items.last() == Some(&StreamItem::End(TerminalKind::Error)))
        );
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn waiting_callers_share_status_reads() {
    as_user(async {
        let ports = facade().runtime().ports().clone();
        let counting = Arc::new(CountingStore(ports.query.clone(), AtomicUsize::new(0)));
        let facade = over(RuntimePorts {
            query: counting.clone(),
            ..ports.clone()
        });
        let run = ports
            .create
            .admit(crate::testkit::new_run("left", "t1"))
            .await
            .unwrap()
            .run;
        let waits =
            futures_util::future::join_all((0..200).map(|_| facade.join_wait(None, &run.run_id)));
        let end = async {
            tokio::time::sleep(Duration::from_secs(5)).await;
            end_orphan(&run, StopReason::OrphanRecovered, LOST_TEXT, &ports).await;
        };
        let (outcomes, ()) = futures_util::future::join(waits, end).await;
        assert!(
            outcomes
                .iter()
                .all(|outcome| matches!(outcome, Ok(WaitOutcome::Failed { .. })))
        );
        // One read per run, and together ten reads per second.
        let reads = counting.1.load(Ordering::Relaxed) - 200;
        assert!((45..=60).contains(&reads), "{reads} reads in 5 seconds");
    })
    .await;
}

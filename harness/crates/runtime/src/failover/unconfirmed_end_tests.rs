//! Tests of ends that the store does not confirm, and of waiting for them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;

use crate::checkpoint::HistoryQuery;
use crate::definition::StoreError;
use crate::ports::{CommitError, RunCommit, RunCommitStore};
use crate::runs::*;
use crate::stream_bridge::StreamKey;
use crate::test_support::*;
use crate::testkit::new_run;

/// Store whose commits fail while `away` is set.
#[derive(Debug)]
struct StoreUnavailable {
    store: Arc<dyn RunCommitStore>,
    away: AtomicBool,
}

#[async_trait]
impl RunCommitStore for StoreUnavailable {
    async fn commit(&self, commit: Arc<RunCommit>) -> Result<(), CommitError> {
        if self.away.load(Ordering::Relaxed) {
            return Err(StoreError::Unavailable("away".to_owned()).into());
        }
        self.store.commit(commit).await
    }
}

#[tokio::test(start_paused = true)]
async fn end_is_not_published_before_commit() {
    as_user(async {
        let before = process();
        let run = create_stuck(
            &before,
            RunRequest {
                recovery: Some(Recovery::Fail),
                ..spec("any")
            },
        )
        .await;
        let after = after(&before);
        let commit = Arc::new(StoreUnavailable {
            store: after.runtime().ports().commit.clone(),
            away: AtomicBool::new(true),
        });
        let after = over(RuntimePorts {
            commit: commit.clone(),
            ..after.runtime().ports().clone()
        });
        lifecycle(&after).recover().await.unwrap();
        let mut outcome = Box::pin(after.join_wait(None, &run.run_id));
        assert!(
            tokio::time::timeout(Duration::from_secs(30), &mut outcome)
                .await
                .is_err(),
            "the run may not end yet"
        );
        let key = StreamKey {
            run_id: run.run_id.clone(),
            attempt: 2,
        };
        after
            .runtime()
            .ports()
            .bridge
            .publish(
                &key,
                "values".into(),
                bytes::Bytes::from_static(b"{}").into(),
            )
            .await
            .expect("no end was published");
        commit.away.store(false, Ordering::Relaxed);
        assert!(matches!(outcome.await.unwrap(), WaitOutcome::Failed { .. }));
        assert_eq!(stored(&after, &run).await.status, RunStatus::Error);
    })
    .await;
}

#[tokio::test]
async fn wait_returns_last_state_after_remote_thread_deletion() {
    as_user(async {
        let here = process();
        let there = over(here.runtime().ports().clone());
        let scope = RunScope::Stateless { temporary: true };
        let (run, outcome) = RunWaits::new(here.runtime())
            .create(RunRequest {
                scope,
                durability: Durability::Sync,
                ..spec("any")
            })
            .await
            .unwrap();
        while here
            .runtime()
            .ports()
            .checkpointer
            .list_meta(
                &run.thread_id,
                &HistoryQuery {
                    limit: 9,
                    ..HistoryQuery::default()
                },
            )
            .await
            .unwrap()
            .len()
            < 3
        {
            tokio::task::yield_now().await;
        }
        here.runtime().ports().tasks.token().cancel();
        lifecycle(&here).release_all();
        lifecycle(&there).recover().await.unwrap();
        assert_eq!(texts(&outcome.await), ["hello", "first", "second"]);
        assert!(
            there
                .runtime()
                .ports()
                .checkpointer
                .get(&run.thread_id, None)
                .await
                .unwrap()
                .is_none(),
            "the thread is gone"
        );
    })
    .await;
}

/// Store that writes every commit, but loses the reply to the first.
#[derive(Debug)]
struct LosesFirstReply {
    store: Arc<dyn RunCommitStore>,
    lost: AtomicBool,
}

#[async_trait]
impl RunCommitStore for LosesFirstReply {
    async fn commit(&self, commit: Arc<RunCommit>) -> Result<(), CommitError> {
        self.store.commit(commit).await?;
        if self.lost.swap(true, Ordering::Relaxed) {
            Ok(())
        } else {
            Err(StoreError::Unavailable("the reply was lost".to_owned()).into())
        }
    }
}

#[tokio::test(start_paused = true)]
async fn end_with_lost_reply_is_published() {
    as_user(async {
        let before = process();
        let run = create_stuck(
            &before,
            RunRequest {
                recovery: Some(Recovery::Fail),
                ..spec("any")
            },
        )
        .await;
        let after = after(&before);
        let commit = Arc::new(LosesFirstReply {
            store: after.runtime().ports().commit.clone(),
            lost: AtomicBool::new(false),
        });
        let after = over(RuntimePorts {
            commit,
            ..after.runtime().ports().clone()
        });
        lifecycle(&after).recover().await.unwrap();
        assert_eq!(stored(&after, &run).await.status, RunStatus::Error);
        let key = StreamKey {
            run_id: run.run_id.clone(),
            attempt: 2,
        };
        let cancelled = async {
            while after
                .runtime()
                .ports()
                .bridge
                .publish(
                    &key,
                    "values".into(),
                    bytes::Bytes::from_static(b"{}").into(),
                )
                .await
                .is_ok()
            {
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(30), cancelled)
            .await
            .expect("the stream ends");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn wait_returns_thread_state_after_pruning() {
    as_user(async {
        let process = facade();
        process.create_and_wait(spec("finish")).await.unwrap();
        let old = process
            .runtime()
            .ports()
            .create
            .admit(new_run("old", "t1"))
            .await
            .unwrap()
            .run;
        let end = Some(crate::testkit::end_in(RunStatus::Success));
        let commit = RunCommit::new(
            old.run_id.clone(),
            old.thread_id.clone(),
            old.attempt,
            old.created_at,
        );
        process
            .runtime()
            .ports()
            .commit
            .commit(
                RunCommit {
                    advance: Some(RunStatus::Running),
                    end,
                    ..commit
                }
                .into(),
            )
            .await
            .unwrap();
        assert_eq!(
            texts(&process.join_wait(None, &old.run_id).await.unwrap()),
            ["hello", "one two"]
        );
    })
    .await;
}

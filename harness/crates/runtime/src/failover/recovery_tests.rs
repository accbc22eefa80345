//! Tests of orphaned runs, over in-memory stores that two processes use one after the other.

use std::sync::Arc;

use futures_util::StreamExt;
use serde_json::Value;

use crate::checkpoint::HistoryQuery;
use crate::ports::{NewRun, StoredRunRequest};
use crate::runs::*;
use crate::stream_bridge::{ResumeFrom, StreamItem};
use crate::test_support::*;
use crate::testkit::new_run;

#[tokio::test]
async fn orphaned_run_resumes_from_last_checkpoint() {
    as_user(async {
        let before = process();
        let run = create_stuck(&before, spec("any")).await;
        let after = after(&before);
        assert_eq!(lifecycle(&after).recover().await.unwrap(), 1);
        let mut stream = after
            .join_stream(None, &run.run_id, ResumeFrom::Start, BEAT)
            .await
            .unwrap();
        let outcome = after.join_wait(None, &run.run_id).await.unwrap();
        assert_eq!(texts(&outcome), ["hello", "first", "second"]);
        let ended = stored(&after, &run).await;
        assert_eq!((ended.status, ended.attempt), (RunStatus::Success, 2));
        assert_eq!(human_rows(&after).await, 1);
        let Some(StreamItem::Event(first)) = stream.items.next().await else {
            panic!("a metadata frame")
        };
        let first: Value = serde_json::from_slice(&first.data.into_bytes()).unwrap();
        assert_eq!(first["attempt"], 2);
        let metas = after
            .runtime()
            .ports()
            .checkpointer
            .list_meta(
                &thread(),
                &HistoryQuery {
                    limit: 9,
                    ..HistoryQuery::default()
                },
            )
            .await
            .unwrap();
        let resumed = metas
            .iter()
            .find(|meta| Some(meta.checkpoint_id.as_str()) == first["checkpoint_id"].as_str());
        assert_eq!(resumed.map(|meta| meta.step), Some(1), "{first}");
        let Some(StreamItem::Event(snapshot)) = stream.items.next().await else {
            panic!("a snapshot")
        };
        let data: Value = serde_json::from_slice(&snapshot.data.into_bytes()).unwrap();
        assert_eq!(
            (&*snapshot.event, data["messages"].as_array().map(Vec::len)),
            ("values", Some(2))
        );
    })
    .await;
}

#[tokio::test]
async fn unstarted_orphan_starts_with_accepted_input() {
    as_user(async {
        let before = process();
        let recipe = Arc::new(StoredRunRequest {
            spec: spec("any"),
            actor: deerflow_core::actor_context::ActorContext::user("ann"),
            pin: None,
        });
        before
            .runtime()
            .ports()
            .create
            .admit(NewRun {
                recipe,
                ..new_run("left", "t1")
            })
            .await
            .unwrap();
        let after = after(&before);
        assert_eq!(lifecycle(&after).recover().await.unwrap(), 1);
        let orphan = after
            .get_run(None, &crate::testkit::run("left"))
            .await
            .unwrap()
            .unwrap();
        let mut stream = after
            .join_stream(None, &orphan.run_id, ResumeFrom::Start, BEAT)
            .await
            .unwrap();
        let mut published = None;
        while let Some(StreamItem::Event(event)) = stream.items.next().await {
            if &*event.event == "updates" {
                published = Some(event.data.into_bytes());
                break;
            }
        }
        assert!(String::from_utf8_lossy(&published.unwrap()).contains("first"));
    })
    .await;
}

#[tokio::test]
async fn unrecoverable_run_fails_and_keeps_input() {
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
        assert_eq!(lifecycle(&after).recover().await.unwrap(), 1);
        let ended = stored(&after, &run).await;
        assert_eq!(
            (ended.status, ended.stop_reason()),
            (RunStatus::Error, Some(StopReason::OrphanRecovered))
        );
        let head = after
            .runtime()
            .ports()
            .checkpointer
            .get(&thread(), None)
            .await
            .unwrap()
            .unwrap();
        assert_eq!(head.state.messages()[0].content.text(), "hello");
    })
    .await;
}

#[tokio::test]
async fn cancelled_orphan_ends_interrupted() {
    as_user(async {
        let before = process();
        let run = create_stuck(&before, spec("any")).await;
        let cancelled = before
            .runtime()
            .ports()
            .create
            .request_cancel(
                &run.run_id,
                CancelAction::Interrupt,
                before.runtime().ports().clock.now(),
            )
            .await;
        assert!(cancelled.unwrap().is_some());
        let after = after(&before);
        assert_eq!(lifecycle(&after).recover().await.unwrap(), 1);
        assert_eq!(stored(&after, &run).await.status, RunStatus::Interrupted);
        assert!(after.create_background(spec("any")).await.is_ok());
    })
    .await;
}

#[tokio::test]
async fn released_run_resumes_without_counting_a_loss() {
    as_user(async {
        let before = process();
        lifecycle(&before).recover().await.unwrap();
        let run = create_stuck(&before, spec("any")).await;
        // A process that shuts down claims no more runs.
        before.runtime().ports().tasks.token().cancel();
        lifecycle(&before).release_all();
        while stored(&before, &run).await.status != RunStatus::Pending {
            tokio::task::yield_now().await;
        }
        let after = after(&before);
        assert_eq!(lifecycle(&after).recover().await.unwrap(), 0);
        let outcome = after.join_wait(None, &run.run_id).await.unwrap();
        assert_eq!(texts(&outcome), ["hello", "first", "second"]);
    })
    .await;
}

#[tokio::test]
async fn cancelled_released_run_keeps_its_progress() {
    as_user(async {
        let before = process();
        let run = create_stuck(&before, spec("any")).await;
        lifecycle(&before).release_all();
        while stored(&before, &run).await.status != RunStatus::Pending {
            tokio::task::yield_now().await;
        }
        before
            .cancel(None, &run.run_id, CancelAction::Interrupt, true)
            .await
            .unwrap();
        assert_eq!(stored(&before, &run).await.status, RunStatus::Interrupted);
        let head = before
            .runtime()
            .ports()
            .checkpointer
            .get(&thread(), None)
            .await
            .unwrap()
            .unwrap();
        assert_eq!(head.state.messages().len(), 2);
    })
    .await;
}

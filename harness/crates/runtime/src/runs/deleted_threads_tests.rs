//! Tests of what stays in memory of deleted threads.

use std::time::Duration;

use futures_util::StreamExt;

use crate::runs::*;
use crate::stream_bridge::{ResumeFrom, ResumeResult, StreamItem, TerminalKind};
use crate::test_support::*;
use deerflow_core::actor_context::Owner;
use deerflow_core::ids::{RunId, ThreadId};

/// Executes a run on a thread.
async fn ended_run(facade: &RunsFacade, thread: &ThreadId) -> RunId {
    let request = RunRequest {
        scope: RunScope::Stateful {
            thread_id: thread.clone(),
            if_not_exists: IfNotExists::Create,
        },
        ..spec("finish")
    };
    facade.create_and_wait(request).await.unwrap().0.run_id
}

async fn stream_of(facade: &RunsFacade, run: &RunId) -> ResumeResult {
    let bridge = &facade.runtime().ports().bridge;
    let view = bridge.subscribe(run, ResumeFrom::Start, Duration::ZERO);
    view.await.unwrap().resume
}

const ENDED: ResumeResult = ResumeResult::Ended(TerminalKind::End);

#[tokio::test]
async fn deleted_thread_leaves_no_stream_and_no_state() {
    as_user(async {
        let facade = facade();
        let (deleted, other) = (thread(), ThreadId::parse("t2").unwrap());
        let runs = [
            ended_run(&facade, &deleted).await,
            ended_run(&facade, &deleted).await,
        ];
        let other_run = ended_run(&facade, &other).await;
        let bridge = &facade.runtime().ports().bridge;
        let active_view = bridge.subscribe(&runs[0], ResumeFrom::Start, Duration::ZERO);
        let active_view = active_view.await.unwrap();

        let threads = DeletedThreads::new(facade.runtime());
        let mut listed = threads.runs_of(&deleted, &Owner::Auto).await;
        let delete = &facade.runtime().ports().delete;
        delete.delete_thread(&deleted).await.unwrap();
        threads.release([&deleted], &listed).await;

        listed.sort();
        assert_eq!(listed, {
            let mut runs = runs.to_vec();
            runs.sort();
            runs
        });
        for run in &runs {
            assert_eq!(stream_of(&facade, run).await, ResumeResult::Unknown);
        }
        assert_eq!(stream_of(&facade, &other_run).await, ENDED);
        let heads = &facade.runtime().registry.heads;
        assert_eq!(
            [&deleted, &other].map(|thread| heads.contains(thread)),
            [false, true]
        );
        let items: Vec<_> = active_view.items.collect().await;
        assert_eq!(items.last(), Some(&StreamItem::End(TerminalKind::End)));
    })
    .await;
}

#[tokio::test]
async fn deleted_run_leaves_no_stream_and_no_state() {
    as_user(async {
        let facade = facade();
        let run = ended_run(&facade, &thread()).await;
        assert_eq!(stream_of(&facade, &run).await, ENDED);
        facade.delete_run(None, &run).await.unwrap();
        assert_eq!(stream_of(&facade, &run).await, ResumeResult::Unknown);
        assert!(!facade.runtime().registry.heads.contains(&thread()));
    })
    .await;
}

#[tokio::test]
async fn only_runs_with_unexpired_streams_are_listed() {
    as_user(async {
        let facade = facade();
        let run = ended_run(&facade, &thread()).await;
        let threads = DeletedThreads::new(facade.runtime());
        assert_eq!(threads.runs_of(&thread(), &Owner::Auto).await, [run]);
        let others = Owner::User("bob".to_owned());
        assert!(threads.runs_of(&thread(), &others).await.is_empty());
        facade.runtime().registry.limits.write().stream_retention = Duration::ZERO;
        assert!(threads.runs_of(&thread(), &Owner::Auto).await.is_empty());
    })
    .await;
}

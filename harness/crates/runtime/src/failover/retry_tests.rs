//! Tests of retries of poisoned runs.

use std::sync::Arc;

use super::*;
use crate::checkpoint::PendingTask;
use crate::ports::StoredRunRequest;
use crate::runs::*;
use crate::test_support::*;
use crate::testkit::{at, checkpoint_write, new_run};
use deerflow_core::actor_context::ActorContext;
use deerflow_core::state::ThreadState;

/// Starts the next process over the same stores; its takeover poisons the orphaned runs.
async fn poisoning(before: &RunsFacade) -> RunsFacade {
    let next = after(before);
    let limits = RunLimits {
        max_attempts: 1,
        ..RunLimits::default()
    };
    lifecycle(&next).set_limits(limits);
    lifecycle(&next).recover().await.unwrap();
    next
}

async fn retry(process: &RunsFacade, run: &RunId) -> Result<RunRecord, RetryError> {
    let ports = process.runtime().ports();
    let retried = retry_poisoned(
        run,
        RetryPorts {
            query: &*ports.query,
            create: &*ports.create,
            checkpointer: &*ports.checkpointer,
            ids: &*ports.ids,
            clock: &*ports.clock,
        },
    )
    .await;
    process.runtime().registry.dispatch_wake.wake();
    retried
}

/// Admits a run that its process never starts.
async fn admit_unstarted(process: &RunsFacade, spec: RunRequest, new: NewRun) -> RunId {
    let recipe = Arc::new(StoredRunRequest {
        spec,
        actor: ActorContext::user("ann"),
        pin: None,
    });
    let create = &process.runtime().ports().create;
    let admitted = create.admit(NewRun { recipe, ..new }).await;
    admitted.unwrap().run.run_id
}

#[test]
fn start_follows_newest_checkpoints() {
    let meta = |of: Option<&str>, source, next: &[&str]| {
        let (mut state, mut tail) = (ThreadState::default(), 0);
        CheckpointMeta {
            source,
            next: next
                .iter()
                .map(|name| PendingTask::new("t", *name))
                .collect(),
            ..checkpoint_write("t1", of, 1, &mut state, &mut tail).meta
        }
    };
    let (own, other) = (Some("r1"), Some("r2"));
    let step = |of| meta(of, CheckpointSource::Loop, &["model"]);
    let update = meta(None, CheckpointSource::Update, &[]);
    let before_input = meta(own, CheckpointSource::Input, &[START]);
    let restored = meta(own, CheckpointSource::Input, &[]);
    for (newest, expected) in [
        (vec![], RetryStart::Input),
        (vec![step(other)], RetryStart::Input),
        (vec![before_input, step(other)], RetryStart::Input),
        (vec![restored], RetryStart::InputWithoutMessages),
        (vec![step(own), step(other)], RetryStart::Continue),
        (
            vec![meta(own, CheckpointSource::Loop, &[])],
            RetryStart::Continue,
        ),
        (vec![step(other), step(own)], RetryStart::Impossible),
        (vec![update, step(own)], RetryStart::Impossible),
    ] {
        let run = crate::testkit::run("r1");
        assert_eq!(decide_start(&run, &newest), expected, "{newest:?}");
    }
}

#[tokio::test]
async fn retried_run_continues_from_last_checkpoint() {
    as_user(async {
        let before = process();
        let run = create_stuck(&before, spec("any")).await;
        let next = poisoning(&before).await;
        let ended = stored(&next, &run).await;
        assert_eq!(ended.stop_reason(), Some(StopReason::AttemptsExhausted));
        let new = retry(&next, &run.run_id).await.unwrap();
        assert_eq!(
            (new.status, &new.metadata[RETRIED_FROM], &new.user_id),
            (
                RunStatus::Pending,
                &Value::from(run.run_id.as_str()),
                &run.user_id
            )
        );
        let outcome = next.join_wait(None, &new.run_id).await.unwrap();
        assert_eq!(texts(&outcome), ["hello", "first", "second"]);
        assert_eq!(stored(&next, &new).await.status, RunStatus::Success);
        assert_eq!(
            stored(&next, &run).await,
            ended,
            "a poisoned run does not change"
        );
    })
    .await;
}

#[tokio::test]
async fn retried_run_without_progress_has_its_input_once() {
    as_user(async {
        let before = facade();
        let run = admit_unstarted(&before, spec("finish"), new_run("left", "t1")).await;
        let next = poisoning(&before).await;
        let new = retry(&next, &run).await.unwrap();
        let outcome = next.join_wait(None, &new.run_id).await.unwrap();
        assert_eq!(texts(&outcome), ["hello", "one two"]);
    })
    .await;
}

#[tokio::test]
async fn repeatedly_poisoned_run_has_its_input_once() {
    as_user(async {
        let before = process();
        let run = create_stuck(&before, spec("any")).await;
        let next = poisoning(&before).await;
        next.runtime().ports().tasks.token().cancel();
        let again = retry(&next, &run.run_id).await.unwrap();
        // A process that claims the new run and dies.
        let create = &next.runtime().ports().create;
        let due = again.created_at;
        let claimed = create
            .claim(&crate::testkit::node("dead"), due, UserRunLimits::default())
            .await;
        assert_eq!(claimed.unwrap().unwrap().losses, 0);
        let last = poisoning(&next).await;
        let new = retry(&last, &again.run_id).await.unwrap();
        let outcome = last.join_wait(None, &new.run_id).await.unwrap();
        assert_eq!(texts(&outcome), ["hello", "first", "second"]);
    })
    .await;
}

#[tokio::test]
async fn only_poisoned_runs_are_retried() {
    as_user(async {
        let process = facade();
        let unknown = crate::testkit::run("unknown");
        let refused = retry(&process, &unknown).await;
        assert!(matches!(refused, Err(RetryError::NotFound(run)) if run == unknown));
        let (run, _) = process.create_and_wait(spec("fail")).await.unwrap();
        let refused = retry(&process, &run.run_id).await;
        assert!(
            matches!(&refused, Err(RetryError::NotPoisoned { status, .. }) if *status == RunStatus::Error),
            "{refused:?}"
        );
    })
    .await;
}

#[tokio::test]
async fn run_is_not_retried_after_change_of_its_thread() {
    as_user(async {
        let before = facade();
        let run = admit_unstarted(&before, spec("finish"), new_run("left", "t1")).await;
        let next = poisoning(&before).await;
        // A run that is due later has no state yet.
        let later = NewRun {
            created_at: next.runtime().ports().clock.now() + TimeDelta::days(1),
            at: at(0),
            ..new_run("later", "t1")
        };
        let later = admit_unstarted(&next, spec("finish"), later).await;
        let refused = retry(&next, &run).await;
        assert!(
            matches!(&refused, Err(RetryError::ThreadBusy { active, .. }) if *active == later),
            "{refused:?}"
        );
        let interrupting = RunRequest {
            multitask: MultitaskStrategy::Interrupt,
            ..spec("finish")
        };
        next.create_and_wait(interrupting).await.unwrap();
        let refused = retry(&next, &run).await;
        assert!(
            matches!(&refused, Err(RetryError::ThreadChanged(_))),
            "{refused:?}"
        );
    })
    .await;
}

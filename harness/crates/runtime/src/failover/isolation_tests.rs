//! Tests of the isolation of runs on their last attempt.

use crate::runs::*;
use crate::test_support::*;
use deerflow_core::ids::ThreadId;

async fn create_hanging(process: &RunsFacade, on: &str) -> RunRecord {
    let request = RunRequest {
        scope: RunScope::Stateful {
            thread_id: ThreadId::parse(on).unwrap(),
            if_not_exists: IfNotExists::Create,
        },
        ..spec("hang")
    };
    process.create_background(request).await.unwrap()
}

async fn states(process: &RunsFacade, runs: &[RunRecord]) -> Vec<(u32, bool)> {
    let mut states = Vec::new();
    for run in runs {
        let run = stored(process, run).await;
        states.push((run.attempt, run.status.is_terminal()));
    }
    states
}

#[tokio::test]
async fn exhausted_run_does_not_exhaust_other_runs() {
    as_user(async {
        let first = facade();
        let runs = [
            create_hanging(&first, "t1").await,
            create_hanging(&first, "t2").await,
        ];
        let second = after(&first);
        assert_eq!(lifecycle(&second).recover().await.unwrap(), 2);
        // Each further loss of both runs would exhaust the attempts of both.
        let third = after(&second);
        assert_eq!(lifecycle(&third).recover().await.unwrap(), 1);
        assert_eq!(states(&third, &runs).await, [(3, false), (2, false)]);
        let fourth = after(&third);
        assert_eq!(lifecycle(&fourth).recover().await.unwrap(), 2);
        assert_eq!(states(&fourth, &runs).await, [(4, true), (3, false)]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn deferred_run_is_taken_over_after_end_of_isolated_run() {
    as_user(async {
        let first = facade();
        let runs = [
            create_hanging(&first, "t1").await,
            create_hanging(&first, "t2").await,
        ];
        let second = after(&first);
        let limits = RunLimits {
            max_attempts: 2,
            ..RunLimits::default()
        };
        lifecycle(&second).set_limits(limits);
        assert_eq!(lifecycle(&second).recover().await.unwrap(), 1);
        assert_eq!(states(&second, &runs).await, [(2, false), (1, false)]);
        for run in &runs {
            // A deferred run ends only after this process has taken it over.
            let cancel = second.cancel(None, &run.run_id, CancelAction::Interrupt, true);
            cancel.await.unwrap();
        }
        assert_eq!(states(&second, &runs).await, [(2, true), (2, true)]);
    })
    .await;
}

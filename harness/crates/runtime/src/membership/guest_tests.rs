//! Tests of a process that joined as a guest.

use std::time::Duration;

use crate::runs::*;
use crate::test_support::*;

#[tokio::test(start_paused = true)]
async fn run_queued_by_guest_is_started_by_another_process() {
    as_user(async {
        let guest = facade();
        lifecycle(&guest).join().await.unwrap();
        let server = over(guest.runtime().ports().clone());
        let busy = server.create_background(spec("hang")).await.unwrap();
        wait_for_tokens(&server, &busy.run_id).await;
        let queued = RunRequest {
            multitask: MultitaskStrategy::Enqueue,
            ..spec("finish")
        };
        let (run, outcome) = RunWaits::new(guest.runtime()).create(queued).await.unwrap();
        server
            .cancel(None, &busy.run_id, CancelAction::Interrupt, true)
            .await
            .unwrap();
        // Longer than the polling interval of a dispatcher.
        tokio::time::sleep(Duration::from_secs(60)).await;
        let stored = guest.get_run(None, &run.run_id).await.unwrap().unwrap();
        assert_eq!(stored.status, RunStatus::Pending);
        lifecycle(&server).recover().await.unwrap();
        assert_eq!(
            texts(&outcome.await),
            ["hello", "one two", "hello", "one two"]
        );
    })
    .await;
}

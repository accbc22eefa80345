//! Tests of totals, journal rows and limits that span the attempts of a run.

use std::sync::Arc;

use chrono::TimeDelta;
use serde_json::json;

use crate::runs::*;
use crate::test_support::*;
use deerflow_core::clock::ManualClock;

#[tokio::test]
async fn usage_is_summed_over_attempts() {
    as_user(async {
        let before = process();
        let run = create_stuck(&before, spec("any")).await;
        assert_eq!(
            before
                .get_run(None, &run.run_id)
                .await
                .unwrap()
                .unwrap()
                .completion,
            RunCompletionData::default()
        );
        let after = after(&before);
        lifecycle(&after).recover().await.unwrap();
        after.join_wait(None, &run.run_id).await.unwrap();
        let cost = stored(&after, &run).await.completion;
        assert_eq!(
            (
                cost.llm_call_count,
                cost.total_tokens,
                cost.lead_agent_tokens
            ),
            (2, 10, 10)
        );
        assert_eq!(
            cost.token_usage_by_model["small"],
            json!({ "input_tokens": 6, "output_tokens": 4, "total_tokens": 10 })
        );
        assert_eq!(
            (
                cost.first_human_message.as_deref(),
                cost.last_ai_message.as_deref()
            ),
            (Some("hello"), Some("second"))
        );
    })
    .await;
}

#[tokio::test]
async fn memory_and_delivery_are_journaled_once_over_attempts() {
    as_user(async {
        let before = process();
        let run = create_stuck(&before, spec("any")).await;
        assert_eq!(rows(&before, "context:memory").await.len(), 1);
        let after = after(&before);
        lifecycle(&after).recover().await.unwrap();
        after.join_wait(None, &run.run_id).await.unwrap();
        assert_eq!(
            rows(&after, "context:memory").await,
            [json!({ "content_sha256": "digest" })]
        );
        let receipt = json!({ "presented": 2, "paths": ["/first", "/second"], "by_tool": {} });
        assert_eq!(rows(&after, "run.delivery").await, [receipt]);
    })
    .await;
}

#[tokio::test]
async fn usage_of_unrecovered_run_is_stored() {
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
        lifecycle(&after).recover().await.unwrap();
        let ended = stored(&after, &run).await;
        assert_eq!(
            (ended.status, ended.completion.total_tokens),
            (RunStatus::Error, 5)
        );
    })
    .await;
}

#[tokio::test]
async fn wall_clock_limit_counts_from_first_attempt() {
    as_user(async {
        let before = process();
        let run = create_stuck(&before, spec("any")).await;
        let later = before.runtime().ports().clock.now() + TimeDelta::days(2);
        let after = over(RuntimePorts {
            clock: Arc::new(ManualClock::starting_at(later)),
            ..after(&before).runtime().ports().clone()
        });
        lifecycle(&after).recover().await.unwrap();
        let outcome = after.join_wait(None, &run.run_id).await.unwrap();
        assert!(matches!(outcome, WaitOutcome::Failed { name, .. } if name == "TimeoutError"));
        assert_eq!(stored(&after, &run).await.status, RunStatus::Timeout);
    })
    .await;
}

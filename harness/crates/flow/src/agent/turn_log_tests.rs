//! Tests of the record of turns.

use std::sync::Arc;

use async_trait::async_trait;
use deerflow_core::ids::RunId;
use deerflow_runtime::agent::ToolLedger;
use deerflow_runtime::runs::store::StoreError;

use super::*;

/// Ledger in which every turn has one progress.
#[derive(Debug)]
struct Former(CallProgress);

#[async_trait]
impl ToolLedger for Former {
    async fn progress(&self, _: &RunId, _: &str) -> Result<Option<CallProgress>, StoreError> {
        Ok(Some(self.0.clone()))
    }
}

fn turn() -> InvocationId {
    InvocationId("t1".to_owned())
}

/// Starts a turn after an earlier process recorded this progress. Refuses all writes.
async fn start_after(
    progress: CallProgress,
    effect: TurnEffect,
) -> Result<Option<AgentTurnResult>, FlowError> {
    let run = RunId::parse("r1").unwrap();
    let (calls, entries) = CallLog::of(run, Some(Arc::new(Former(progress))));
    drop(entries);
    record_start(&calls, &turn(), effect).await
}

async fn code_after(progress: CallProgress, effect: TurnEffect) -> String {
    start_after(progress, effect).await.unwrap_err().code
}

#[tokio::test]
async fn recorded_result_stands_for_a_repetition() {
    let mut result = AgentTurnResult::completed("text");
    result.usage.total_tokens = 7;
    let error = FlowError::new("tool_broke", ErrorCategory::Tool, "no");
    let failed = AgentTurnResult::ended(TurnStatus::Failed, error);
    for result in [result, failed] {
        for effect in [TurnEffect::Keyed, TurnEffect::Unsafe] {
            let done = CallProgress::Done(to_record(&turn(), &result));
            assert_eq!(start_after(done, effect).await, Ok(Some(result.clone())));
        }
    }
}

#[tokio::test]
async fn turn_without_result_is_repeated_if_it_is_keyed() {
    let question = AgentTurnResult {
        status: TurnStatus::Interrupted,
        ..AgentTurnResult::completed("")
    };
    let large = AgentTurnResult::completed("x".repeat(MAX_RESULT_BYTES));
    let unrecorded = [question, large].map(|result| to_record(&turn(), &result));
    let mut former: Vec<_> = unrecorded.into_iter().map(CallProgress::Done).collect();
    former.push(CallProgress::Started);
    former.push(CallProgress::Done(Value::from("no result")));
    for progress in former {
        let doubt = code_after(progress.clone(), TurnEffect::Unsafe).await;
        assert_eq!(doubt, "turn_outcome_unknown");
        // The write that precedes the repetition is refused.
        let repeated = code_after(progress, TurnEffect::Keyed).await;
        assert_eq!(repeated, "storage_unavailable");
    }
}

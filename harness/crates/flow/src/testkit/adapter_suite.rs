//! Promises of adapters.

use tokio_util::sync::CancellationToken;

use super::setup::{AdapterSubject, CollectedDeltas};
use crate::adapter::{CONTRACT_VERSION, InvocationId, SessionId, TurnStatus};

/// The factory names its kind and this major version of the contract, and accepts a valid
/// configuration.
pub fn factory_describes_its_kind(subject: &AdapterSubject) {
    let metadata = subject.factory.metadata();
    assert!(!metadata.adapter_kind.is_empty(), "the kind has a name");
    let major = |version: &str| version.split('.').next().map(str::to_owned);
    assert_eq!(
        major(&metadata.contract_version),
        major(CONTRACT_VERSION),
        "contract version"
    );
    let findings = subject
        .factory
        .validate_config(&serde_json::Map::new(), &subject.agent);
    assert!(
        findings.is_empty(),
        "a valid configuration has no problems: {findings:?}"
    );
}

/// Each call creates another session.
pub async fn sessions_are_distinct(subject: &AdapterSubject) {
    let adapter = subject.adapter().await;
    let first = subject.session(&*adapter).await;
    let second = subject.session(&*adapter).await;
    assert_ne!(first, second, "sessions have distinct ids");
}

/// A session executes one turn after the other.
pub async fn turns_of_a_session_follow_each_other(subject: &AdapterSubject) {
    let adapter = subject.adapter().await;
    let session = subject.session(&*adapter).await;
    for id in ["turn-1", "turn-2"] {
        let invocation = subject.invocation(&session, false, id);
        let result = subject
            .turn(&*adapter, invocation, &CollectedDeltas::default())
            .await;
        assert_eq!(
            result.status,
            TurnStatus::Completed,
            "{id}: {:?}",
            result.error
        );
        assert!(!result.final_text.is_empty(), "{id} has text");
    }
}

/// The deltas of a turn that streams make up its final text, apart from white space at the ends.
pub async fn deltas_make_up_the_final_text(subject: &AdapterSubject) {
    let adapter = subject.adapter().await;
    let session = subject.session(&*adapter).await;
    let deltas = CollectedDeltas::default();
    let result = subject
        .turn(
            &*adapter,
            subject.invocation(&session, false, "turn"),
            &deltas,
        )
        .await;
    let text = deltas.text();
    assert!(
        text.is_empty() || text.trim() == result.final_text.trim(),
        "{text:?}"
    );
}

/// A failure of the other side is a result with an error, or with the default error of its status.
pub async fn failure_is_a_result(subject: &AdapterSubject) {
    let adapter = subject.adapter().await;
    let session = subject.session(&*adapter).await;
    let invocation = subject.invocation(&session, true, "turn");
    let result = subject
        .turn(&*adapter, invocation, &CollectedDeltas::default())
        .await;
    assert_ne!(result.status, TurnStatus::Completed, "the turn fails");
    if let Some(error) = &result.error {
        assert!(
            !error.code.is_empty() && !error.message.is_empty(),
            "{error:?}"
        );
    }
}

/// A turn whose future is dropped leaves an adapter that can abort it, dispose its session and
/// execute other turns.
pub async fn stopped_turn_can_be_dropped(subject: &AdapterSubject) {
    let adapter = subject.adapter().await;
    let session = subject.session(&*adapter).await;
    let cancel = CancellationToken::new();
    cancel.cancel();
    let invocation = subject.invocation(&session, false, "stopped");
    let deltas = CollectedDeltas::default();
    let turn = adapter.run_turn(invocation, subject.runtime.clone(), &deltas, cancel);
    tokio::select! {
        biased;
        _ = turn => {}
        () = tokio::task::yield_now() => {}
    }
    // The other side may not know the turn; that is no reason to panic or to hang.
    let _ = adapter.abort(&InvocationId("stopped".to_owned())).await;
    assert!(
        adapter.dispose(&session).await.is_ok(),
        "the session can be disposed"
    );
    let session = subject.session(&*adapter).await;
    let invocation = subject.invocation(&session, false, "next");
    let result = subject.turn(&*adapter, invocation, &deltas).await;
    assert_eq!(result.status, TurnStatus::Completed, "{:?}", result.error);
}

/// Disposing a session twice succeeds.
pub async fn dispose_is_idempotent(subject: &AdapterSubject) {
    let adapter = subject.adapter().await;
    let session = subject.session(&*adapter).await;
    for _ in 0..2 {
        assert!(
            adapter.dispose(&session).await.is_ok(),
            "the session can be disposed"
        );
    }
    let unknown = SessionId("unknown".to_owned());
    assert!(
        adapter.dispose(&unknown).await.is_ok(),
        "an unknown session is disposed"
    );
}

/// Aborting a turn that does not run does not affect other turns.
pub async fn abort_of_an_unknown_turn_is_harmless(subject: &AdapterSubject) {
    let adapter = subject.adapter().await;
    let session = subject.session(&*adapter).await;
    let _ = adapter.abort(&InvocationId("unknown".to_owned())).await;
    let invocation = subject.invocation(&session, false, "turn");
    let result = subject
        .turn(&*adapter, invocation, &CollectedDeltas::default())
        .await;
    assert_eq!(result.status, TurnStatus::Completed, "{:?}", result.error);
}

/// Runs all promises.
pub async fn adapter_keeps_the_contract(subject: &AdapterSubject) {
    factory_describes_its_kind(subject);
    sessions_are_distinct(subject).await;
    turns_of_a_session_follow_each_other(subject).await;
    deltas_make_up_the_final_text(subject).await;
    failure_is_a_result(subject).await;
    stopped_turn_can_be_dropped(subject).await;
    dispose_is_idempotent(subject).await;
    abort_of_an_unknown_turn_is_harmless(subject).await;
}

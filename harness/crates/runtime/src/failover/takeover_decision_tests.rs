//! Tests of the takeover decision.

use super::*;
use crate::runs::*;
use crate::termination::LOST_TEXT;
use crate::test_support::*;
use crate::testkit::record;

#[test]
fn takeover_decision_follows_losses_and_request() {
    let (run, limits) = (record("r1", "t1"), RunLimits::default());
    let with = |change: &dyn Fn(&mut RunRequest)| {
        let mut spec = spec("any");
        change(&mut spec);
        spec
    };
    let plain = with(&|_| {});
    let exit = with(&|spec| spec.durability = Durability::Exit);
    let fail = with(&|spec| spec.recovery = Some(Recovery::Fail));
    assert_eq!(
        decide_takeover(&run, &exit, 0, false, false, &limits),
        TakeoverDecision::Start
    );
    assert_eq!(
        (
            decide_takeover(&run, &plain, 1, true, false, &limits),
            decide_takeover(&run, &plain, 2, true, false, &limits)
        ),
        (TakeoverDecision::Start, TakeoverDecision::Start)
    );
    assert!(matches!(
        decide_takeover(&run, &plain, 3, true, false, &limits),
        TakeoverDecision::End(StopReason::AttemptsExhausted, _)
    ));
    assert_eq!(
        decide_takeover(&run, &exit, 1, true, false, &limits),
        TakeoverDecision::End(StopReason::NodeLost, LOST_TEXT)
    );
    assert_eq!(
        decide_takeover(&run, &fail, 1, true, false, &limits),
        TakeoverDecision::End(StopReason::OrphanRecovered, LOST_TEXT)
    );
    let stopped = RunRecord {
        cancel: Some(CancelAction::Interrupt),
        ..run.clone()
    };
    assert_eq!(
        decide_takeover(&stopped, &plain, 1, true, false, &limits),
        TakeoverDecision::End(StopReason::OrphanRecovered, LOST_TEXT)
    );
    let unforgiving = RunLimits {
        recovery: Recovery::Fail,
        ..limits
    };
    assert_eq!(
        decide_takeover(&run, &plain, 1, true, false, &unforgiving),
        TakeoverDecision::End(StopReason::OrphanRecovered, LOST_TEXT)
    );
    // A run that was accepted but never started is started by the next process.
    for spec in [&exit, &plain] {
        assert_eq!(
            decide_takeover(&run, spec, 2, false, false, &limits),
            TakeoverDecision::Start
        );
        assert!(matches!(
            decide_takeover(&run, spec, 3, false, false, &limits),
            TakeoverDecision::End(StopReason::AttemptsExhausted, _)
        ));
    }
}

#[test]
fn run_that_blocks_this_process_is_poisoned() {
    let (run, limits, spec) = (record("r1", "t1"), RunLimits::default(), spec("any"));
    let decision = decide_takeover(&run, &spec, 1, true, true, &limits);
    assert!(
        matches!(decision, TakeoverDecision::End(StopReason::AttemptsExhausted, text) if text == STALLED_TEXT)
    );
    let cancelled = RunRecord {
        cancel: Some(CancelAction::Interrupt),
        ..run
    };
    assert_eq!(
        decide_takeover(&cancelled, &spec, 1, true, true, &limits),
        TakeoverDecision::End(StopReason::OrphanRecovered, LOST_TEXT)
    );
}

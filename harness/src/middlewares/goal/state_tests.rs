//! Tests of the decision to continue towards a goal.

use serde_json::json;

use super::*;
use crate::ids::SystemIds;
use crate::state::StateUpdate;

fn unsatisfied(progress: &str) -> Evaluation {
    Evaluation {
        satisfied: false,
        blocker: Blocker::GoalNotMetYet,
        reason: "half of it is missing".to_owned(),
        evidence_summary: None,
        run_id: None,
        evaluated_at: None,
        progress_key: Some(progress.to_owned()),
        stand_down_reason: None,
    }
}

fn now() -> DateTime<Utc> {
    DateTime::UNIX_EPOCH
}

/// Applies the evaluations in order; returns the number of continuations and the stand-down
/// reason.
fn run_evaluations(
    mut goal: Goal,
    evaluations: impl IntoIterator<Item = Evaluation>,
) -> (u64, Option<String>) {
    for evaluation in evaluations {
        match goal.clone().decide(evaluation, now()) {
            GoalDecision::Continue(next, _) => goal = next,
            GoalDecision::StandDown(goal, evaluation) => {
                return (goal.continuation_count, evaluation.stand_down_reason);
            }
            GoalDecision::Reached(_) => return (goal.continuation_count, None),
        }
    }
    (goal.continuation_count, None)
}

#[test]
fn goal_continues_with_progress_up_to_limit() {
    let steps = || (0..).map(|step: u32| unsatisfied(&step.to_string()));
    let ends = |most: u64| run_evaluations(Goal::new("g", most, now()), steps().take(20));
    let capped = Some("max_continuations".to_owned());
    assert_eq!(
        [ends(0), ends(3), ends(99)],
        [(0, capped.clone()), (3, capped.clone()), (8, capped)]
    );
    assert_eq!(
        run_evaluations(
            Goal::new("g", 8, now()),
            (0..9).map(|_| unsatisfied("same"))
        ),
        (2, Some("no_progress".to_owned()))
    );
    let stuck_once = ["a", "a", "b", "b", "c"].map(unsatisfied);
    assert_eq!(
        run_evaluations(Goal::new("g", 8, now()), stuck_once),
        (5, None)
    );
}

#[test]
fn external_blockers_stand_down() {
    let blocked = |blocker| {
        [Evaluation {
            blocker,
            ..unsatisfied("a")
        }]
    };
    let stand_down_reason_for =
        |blocker| run_evaluations(Goal::new("g", 8, now()), blocked(blocker)).1;
    assert_eq!(
        stand_down_reason_for(Blocker::NeedsUserInput).as_deref(),
        Some("needs_user_input")
    );
    assert_eq!(
        stand_down_reason_for(Blocker::RunFailed).as_deref(),
        Some("run_failed")
    );
    assert_eq!(
        stand_down_reason_for(Blocker::None).as_deref(),
        Some("missing_evidence")
    );
    let reached = Evaluation {
        satisfied: true,
        ..unsatisfied("a")
    };
    assert!(matches!(
        Goal::new("g", 8, now()).decide(reached, now()),
        GoalDecision::Reached(_)
    ));
}

#[test]
fn invalid_goal_is_none_and_client_limits_are_capped() {
    let parsed = |value| {
        let mut state = ThreadState::default();
        state
            .apply(StateUpdate::channel(GOAL, value), &SystemIds::default())
            .unwrap();
        Goal::of(&state)
    };
    let goal = Goal::new("g", 8, now());
    assert_eq!(parsed(json!(goal)), Some(goal.clone()));
    let greedy = Goal {
        max_continuations: 1_000,
        max_no_progress_continuations: 1_000,
        ..goal.clone()
    };
    assert_eq!(parsed(json!(greedy)), Some(goal.clone()));
    for none in [
        json!("win"),
        json!({}),
        json!([1]),
        json!(Goal {
            objective: " ".to_owned(),
            ..goal.clone()
        }),
    ] {
        assert_eq!(parsed(none), None);
    }
    assert_eq!(
        parsed(json!(Goal {
            objective: "x".repeat(5_000),
            ..goal
        })),
        None
    );
}

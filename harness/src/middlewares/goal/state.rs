//! A thread's goal as its state keeps it, and what an evaluation makes of it. Pure.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::ids::RunId;
use crate::state::ThreadState;

/// The channel with the goal.
pub const GOAL: &str = "goal";
/// The longest objective, in characters.
pub const MAX_OBJECTIVE_CHARS: usize = 4_000;
/// How often an agent is sent on towards one goal at most.
pub const MAX_CONTINUATIONS: u64 = 8;
/// How often it is sent on in vain, one time after the other.
const MAX_IN_VAIN: u64 = 2;

/// What a user wants to be reached in a thread. A goal that is reached is gone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Goal {
    /// In the user's words.
    pub objective: String,
    /// `active`.
    pub status: String,
    /// When it was set.
    pub created_at: DateTime<Utc>,
    /// When it or its evaluation changed.
    pub updated_at: DateTime<Utc>,
    /// How often the agent was sent on.
    #[serde(default)]
    pub continuation_count: u64,
    /// How often it is at most.
    #[serde(default)]
    pub max_continuations: u64,
    /// How often nothing had come of it, one time after the other.
    #[serde(default)]
    pub no_progress_count: u64,
    /// When that is enough.
    #[serde(default)]
    pub max_no_progress_continuations: u64,
    /// What came out when it was last looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_evaluation: Option<Evaluation>,
}

/// What keeps a goal from being reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Blocker {
    /// Nothing.
    None,
    /// Nobody can tell from the conversation whether it is.
    MissingEvidence,
    /// Only the user can go on.
    NeedsUserInput,
    /// The run did not come to a good end.
    RunFailed,
    /// Something outside has to happen first.
    ExternalWait,
    /// There is work left that the agent can do.
    GoalNotMetYet,
}

/// How a goal stood at the end of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    /// Whether it is reached.
    pub satisfied: bool,
    /// What is in the way.
    pub blocker: Blocker,
    /// Why, for the user and the agent.
    pub reason: String,
    /// What in the conversation says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence_summary: Option<String>,
    /// The run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// When.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evaluated_at: Option<DateTime<Utc>>,
    /// The same when nothing has come about since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress_key: Option<String>,
    /// Why the agent is not sent on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stand_down_reason: Option<String>,
}

/// What follows from an evaluation.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Judged {
    /// The goal is reached.
    Reached(Evaluation),
    /// The agent is sent on.
    GoesOn(Goal, Evaluation),
    /// The goal stays and the agent rests.
    StandsDown(Goal, Evaluation),
}

impl Goal {
    /// A goal that nobody has worked on.
    pub fn new(objective: impl Into<String>, max_continuations: u64, now: DateTime<Utc>) -> Self {
        Self {
            objective: objective.into(),
            status: "active".to_owned(),
            created_at: now,
            updated_at: now,
            continuation_count: 0,
            max_continuations: max_continuations.min(MAX_CONTINUATIONS),
            no_progress_count: 0,
            max_no_progress_continuations: MAX_IN_VAIN,
            last_evaluation: None,
        }
    }

    /// The goal of a thread. A client may have written anything there: what is no goal counts as none, and no limit goes beyond ours.
    pub fn of(state: &ThreadState) -> Option<Self> {
        let goal = Self::deserialize(state.channel(GOAL)?).ok()?;
        let usable = !goal.objective.trim().is_empty()
            && goal.objective.chars().count() <= MAX_OBJECTIVE_CHARS;
        usable.then(|| Self {
            max_continuations: goal.max_continuations.min(MAX_CONTINUATIONS),
            max_no_progress_continuations: goal.max_no_progress_continuations.min(MAX_IN_VAIN),
            ..goal
        })
    }

    /// What becomes of the goal when it was found to stand so.
    pub(super) fn judged(mut self, mut evaluation: Evaluation, now: DateTime<Utc>) -> Judged {
        if evaluation.satisfied {
            return Judged::Reached(evaluation);
        }
        let before = self
            .last_evaluation
            .as_ref()
            .and_then(|last| last.progress_key.as_ref());
        let in_vain = self.continuation_count > 0
            && before.is_some()
            && before == evaluation.progress_key.as_ref();
        self.no_progress_count = if in_vain {
            self.no_progress_count.saturating_add(1)
        } else {
            0
        };
        evaluation.stand_down_reason =
            evaluation
                .stand_down_reason
                .or_else(|| match evaluation.blocker {
                    Blocker::GoalNotMetYet
                        if self.no_progress_count >= self.max_no_progress_continuations =>
                    {
                        Some("no_progress".to_owned())
                    }
                    Blocker::GoalNotMetYet if self.continuation_count >= self.max_continuations => {
                        Some("max_continuations".to_owned())
                    }
                    Blocker::GoalNotMetYet => None,
                    Blocker::MissingEvidence | Blocker::None => Some("missing_evidence".to_owned()),
                    Blocker::NeedsUserInput => Some("needs_user_input".to_owned()),
                    Blocker::RunFailed => Some("run_failed".to_owned()),
                    Blocker::ExternalWait => Some("external_wait".to_owned()),
                });
        self.updated_at = now;
        self.last_evaluation = Some(evaluation.clone());
        if evaluation.stand_down_reason.is_some() {
            return Judged::StandsDown(self, evaluation);
        }
        self.continuation_count += 1;
        Judged::GoesOn(self, evaluation)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::ids::SystemIds;
    use crate::state::StateUpdate;

    fn unmet(progress: &str) -> Evaluation {
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

    /// Judges one evaluation after the other: how often the agent was sent on, and why it rests.
    fn played(
        mut goal: Goal,
        evaluations: impl IntoIterator<Item = Evaluation>,
    ) -> (u64, Option<String>) {
        for evaluation in evaluations {
            match goal.clone().judged(evaluation, now()) {
                Judged::GoesOn(next, _) => goal = next,
                Judged::StandsDown(goal, evaluation) => {
                    return (goal.continuation_count, evaluation.stand_down_reason);
                }
                Judged::Reached(_) => return (goal.continuation_count, None),
            }
        }
        (goal.continuation_count, None)
    }

    #[test]
    fn an_agent_is_sent_on_while_there_is_progress_and_no_more_often_than_allowed() {
        let steps = || (0..).map(|step: u32| unmet(&step.to_string()));
        let ends = |most: u64| played(Goal::new("g", most, now()), steps().take(20));
        let capped = Some("max_continuations".to_owned());
        assert_eq!(
            [ends(0), ends(3), ends(99)],
            [(0, capped.clone()), (3, capped.clone()), (8, capped)]
        );
        assert_eq!(
            played(Goal::new("g", 8, now()), (0..9).map(|_| unmet("same"))),
            (2, Some("no_progress".to_owned()))
        );
        let stuck_once = ["a", "a", "b", "b", "c"].map(unmet);
        assert_eq!(played(Goal::new("g", 8, now()), stuck_once), (5, None));
    }

    #[test]
    fn what_an_agent_cannot_clear_away_lets_it_rest() {
        let blocked = |blocker| {
            [Evaluation {
                blocker,
                ..unmet("a")
            }]
        };
        let rests = |blocker| played(Goal::new("g", 8, now()), blocked(blocker)).1;
        assert_eq!(
            rests(Blocker::NeedsUserInput).as_deref(),
            Some("needs_user_input")
        );
        assert_eq!(rests(Blocker::RunFailed).as_deref(), Some("run_failed"));
        assert_eq!(rests(Blocker::None).as_deref(), Some("missing_evidence"));
        let reached = Evaluation {
            satisfied: true,
            ..unmet("a")
        };
        assert!(matches!(
            Goal::new("g", 8, now()).judged(reached, now()),
            Judged::Reached(_)
        ));
    }

    #[test]
    fn what_is_no_goal_counts_as_none_and_limits_of_clients_do_not_widen_ours() {
        let held = |value| {
            let mut state = ThreadState::default();
            state
                .apply(StateUpdate::channel(GOAL, value), &SystemIds::default())
                .unwrap();
            Goal::of(&state)
        };
        let goal = Goal::new("g", 8, now());
        assert_eq!(held(json!(goal)), Some(goal.clone()));
        let greedy = Goal {
            max_continuations: 1_000,
            max_no_progress_continuations: 1_000,
            ..goal.clone()
        };
        assert_eq!(held(json!(greedy)), Some(goal.clone()));
        for none in [
            json!("win"),
            json!({}),
            json!([1]),
            json!(Goal {
                objective: " ".to_owned(),
                ..goal.clone()
            }),
        ] {
            assert_eq!(held(none), None);
        }
        assert_eq!(
            held(json!(Goal {
                objective: "x".repeat(5_000),
                ..goal
            })),
            None
        );
    }
}

//! Goal of a thread as stored in its state, and the decision that follows from an evaluation. Pure.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::ids::RunId;
use crate::state::ThreadState;

/// State channel with the goal.
pub const GOAL: &str = "goal";
/// Maximum length of an objective, in characters.
pub const MAX_OBJECTIVE_CHARS: usize = 4_000;
/// Maximum number of continuations towards one goal.
pub const MAX_CONTINUATIONS: u64 = 8;
/// Maximum number of consecutive continuations without progress.
const MAX_NO_PROGRESS: u64 = 2;

/// Objective of a user for a thread. A goal is removed when it is reached.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Goal {
    /// Objective as the user wrote it.
    pub objective: String,
    /// Always `active`.
    pub status: String,
    /// Time at which the goal was set.
    pub created_at: DateTime<Utc>,
    /// Time at which the goal or its evaluation last changed.
    pub updated_at: DateTime<Utc>,
    /// Number of continuations so far.
    #[serde(default)]
    pub continuation_count: u64,
    /// Maximum number of continuations.
    #[serde(default)]
    pub max_continuations: u64,
    /// Number of consecutive continuations without progress.
    #[serde(default)]
    pub no_progress_count: u64,
    /// Maximum number of consecutive continuations without progress.
    #[serde(default)]
    pub max_no_progress_continuations: u64,
    /// Result of the last evaluation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_evaluation: Option<Evaluation>,
}

/// Obstacle to reaching a goal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Blocker {
    /// No obstacle.
    None,
    /// The conversation does not show whether the goal is reached.
    MissingEvidence,
    /// Only the user can resolve the obstacle.
    NeedsUserInput,
    /// The run failed.
    RunFailed,
    /// An external event must happen first.
    ExternalWait,
    /// The agent can do the remaining work.
    GoalNotMetYet,
}

/// Evaluation of a goal at the end of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    /// `true` if the goal is reached.
    pub satisfied: bool,
    /// Obstacle to reaching the goal.
    pub blocker: Blocker,
    /// Reason, for the user and the agent.
    pub reason: String,
    /// Evidence in the conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence_summary: Option<String>,
    /// Run that was evaluated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// Time of the evaluation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evaluated_at: Option<DateTime<Utc>>,
    /// Digest of the progress; the same value means no progress since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress_key: Option<String>,
    /// Reason for not continuing the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stand_down_reason: Option<String>,
}

/// Decision that follows from an evaluation.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum GoalDecision {
    /// The goal is reached.
    Reached(Evaluation),
    /// The agent continues.
    Continue(Goal, Evaluation),
    /// The goal stays, and the agent does not continue.
    StandDown(Goal, Evaluation),
}

impl Goal {
    /// Creates a new goal.
    pub fn new(objective: impl Into<String>, max_continuations: u64, now: DateTime<Utc>) -> Self {
        Self {
            objective: objective.into(),
            status: "active".to_owned(),
            created_at: now,
            updated_at: now,
            continuation_count: 0,
            max_continuations: max_continuations.min(MAX_CONTINUATIONS),
            no_progress_count: 0,
            max_no_progress_continuations: MAX_NO_PROGRESS,
            last_evaluation: None,
        }
    }

    /// Returns the goal of a thread. A client may have written anything to the channel: an invalid
    /// goal counts as none, and limits are capped at the maximum.
    pub fn of(state: &ThreadState) -> Option<Self> {
        let goal = Self::deserialize(state.channel(GOAL)?).ok()?;
        let usable = !goal.objective.trim().is_empty()
            && goal.objective.chars().count() <= MAX_OBJECTIVE_CHARS;
        usable.then(|| Self {
            max_continuations: goal.max_continuations.min(MAX_CONTINUATIONS),
            max_no_progress_continuations: goal.max_no_progress_continuations.min(MAX_NO_PROGRESS),
            ..goal
        })
    }

    /// Decides how to proceed after an evaluation.
    pub(super) fn decide(mut self, mut evaluation: Evaluation, now: DateTime<Utc>) -> GoalDecision {
        if evaluation.satisfied {
            return GoalDecision::Reached(evaluation);
        }
        let before = self
            .last_evaluation
            .as_ref()
            .and_then(|last| last.progress_key.as_ref());
        let no_progress = self.continuation_count > 0
            && before.is_some()
            && before == evaluation.progress_key.as_ref();
        self.no_progress_count = if no_progress {
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
            return GoalDecision::StandDown(self, evaluation);
        }
        self.continuation_count += 1;
        GoalDecision::Continue(self, evaluation)
    }
}

#[cfg(test)]
#[path = "state_tests.rs"]
mod tests;

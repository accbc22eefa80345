//! Runs as their operator sees them: whoever has them, and whether somebody works on them.

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use harness::runtime::runs::RunStatus;
use harness::runtime::runs::store::StoreError;

/// A run in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunLine {
    /// The run.
    pub run_id: String,
    /// Its thread.
    pub thread_id: String,
    /// Whose it is.
    pub user_id: Option<String>,
    /// The assistant's name.
    pub assistant: String,
    /// How far it is.
    pub status: RunStatus,
    /// Which attempt is under way.
    pub attempt: i64,
    /// How many processes died with it.
    pub losses: i64,
    /// Which process has it.
    pub owner: Option<String>,
    /// Whether that process has a lease.
    pub owner_lives: bool,
    /// Whether another run of its thread is at work.
    pub waits_behind: bool,
    /// Whether it was told to stop.
    pub told_to_stop: bool,
    /// When it was accepted, or may begin.
    pub created_at: DateTime<Utc>,
    /// When it last wrote something.
    pub updated_at: DateTime<Utc>,
}

/// How long the next process may take to go on with a run, before that is worth a word.
const TURN: TimeDelta = TimeDelta::seconds(60);

impl RunLine {
    /// Why nobody seems to work on it, if so. `idle` is how long one that is at work may write nothing.
    pub fn stuck_because(&self, now: DateTime<Utc>, idle: TimeDelta) -> Option<&'static str> {
        let silent = now - self.updated_at;
        match self.status {
            status if status.is_terminal() => None,
            RunStatus::Pending if self.told_to_stop && silent > TURN => {
                Some("told to stop, and not ended")
            }
            RunStatus::Pending
                if !self.waits_behind && now - self.created_at.max(self.updated_at) > TURN =>
            {
                Some("its turn has come, and nobody begins it")
            }
            RunStatus::Pending => None,
            _ if self.owner.is_none() || !self.owner_lives => Some("its process is gone"),
            _ if silent > idle => Some("it writes nothing"),
            _ => None,
        }
    }
}

/// Lists runs.
#[async_trait]
pub trait OperationsStore: Send + Sync + std::fmt::Debug {
    /// Runs in one of these statuses, of all users, newest first, at most `limit`.
    async fn runs(&self, statuses: &[RunStatus], limit: usize) -> Result<Vec<RunLine>, StoreError>;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(1_700_000_000 + seconds, 0).unwrap()
    }

    fn line(status: RunStatus) -> RunLine {
        RunLine {
            run_id: "r".to_owned(),
            thread_id: "t".to_owned(),
            user_id: None,
            assistant: "a".to_owned(),
            status,
            attempt: 1,
            losses: 0,
            owner: Some("n".to_owned()),
            owner_lives: true,
            waits_behind: false,
            told_to_stop: false,
            created_at: at(0),
            updated_at: at(0),
        }
    }

    #[test]
    fn what_is_stuck_has_a_reason() {
        let idle = TimeDelta::minutes(10);
        let why = |line: RunLine, now: i64| line.stuck_because(at(now), idle);
        let (running, pending) = (line(RunStatus::Running), line(RunStatus::Pending));
        assert_eq!(why(running.clone(), 600), None);
        assert_eq!(why(running.clone(), 601), Some("it writes nothing"));
        assert_eq!(
            why(
                RunLine {
                    owner_lives: false,
                    ..running.clone()
                },
                1
            ),
            Some("its process is gone")
        );
        assert_eq!(
            why(
                RunLine {
                    owner: None,
                    ..running
                },
                1
            ),
            Some("its process is gone")
        );
        assert_eq!(why(pending.clone(), 60), None);
        assert_eq!(
            why(pending.clone(), 61),
            Some("its turn has come, and nobody begins it")
        );
        assert_eq!(
            why(
                RunLine {
                    waits_behind: true,
                    ..pending.clone()
                },
                9_999
            ),
            None
        );
        assert_eq!(
            why(
                RunLine {
                    created_at: at(9_999),
                    ..pending.clone()
                },
                9_000
            ),
            None
        );
        assert_eq!(
            why(
                RunLine {
                    waits_behind: true,
                    told_to_stop: true,
                    ..pending
                },
                61
            ),
            Some("told to stop, and not ended")
        );
        assert_eq!(why(line(RunStatus::Success), 9_999), None);
    }
}

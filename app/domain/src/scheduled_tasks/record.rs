//! Records of tasks and of their runs.

use chrono::{DateTime, Utc};
use deerflow_core::ids::{RunId, ThreadId};

use super::timing::TaskSchedule;

/// Thread in which a task runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContextMode {
    /// Each run creates a thread.
    FreshThread,
    /// All runs use the task's thread.
    ReuseThread,
}

impl ContextMode {
    const WORDS: [(Self, &str); 2] = [
        (Self::FreshThread, "fresh_thread_per_run"),
        (Self::ReuseThread, "reuse_thread"),
    ];

    /// Returns the value used on the wire and in the store.
    pub fn as_str(self) -> &'static str {
        word_of(&Self::WORDS, self)
    }

    /// Parses the value used on the wire and in the store.
    pub fn parse(word: &str) -> Option<Self> {
        meaning_of(&Self::WORDS, word)
    }
}

/// Stored status of a task. A task with an active run is shown as `running`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskStatus {
    /// Fires at its next time.
    Enabled,
    /// Does not fire until it is resumed.
    Paused,
    /// Fired once and succeeded.
    Completed,
    /// Fired once and failed.
    Failed,
    /// Fired once, and its run was cancelled.
    Cancelled,
}

impl TaskStatus {
    const WORDS: [(Self, &str); 5] = [
        (Self::Enabled, "enabled"),
        (Self::Paused, "paused"),
        (Self::Completed, "completed"),
        (Self::Failed, "failed"),
        (Self::Cancelled, "cancelled"),
    ];

    /// Returns the value used on the wire and in the store.
    pub fn as_str(self) -> &'static str {
        word_of(&Self::WORDS, self)
    }

    /// Parses the value used in the store.
    pub fn parse(word: &str) -> Option<Self> {
        meaning_of(&Self::WORDS, word)
    }
}

/// Prompt that runs at scheduled times.
#[derive(Debug, Clone, PartialEq)]
pub struct ScheduledTask {
    /// Id: `task-` and 32 hexadecimal digits.
    pub task_id: String,
    /// Owner of the task and of its runs.
    pub user_id: String,
    /// Thread of its runs.
    pub context_mode: ContextMode,
    /// Thread that is reused; only with [`ContextMode::ReuseThread`].
    pub thread_id: Option<ThreadId>,
    /// Title.
    pub title: String,
    /// Text that each run receives.
    pub prompt: String,
    /// Times at which the task fires.
    pub schedule: TaskSchedule,
    /// IANA time zone of the schedule.
    pub timezone: String,
    /// Status.
    pub status: TaskStatus,
    /// Next firing; `None` means never.
    pub next_run_at: Option<DateTime<Utc>>,
    /// Start of the last run.
    pub last_run_at: Option<DateTime<Utc>>,
    /// Id of the last run.
    pub last_run_id: Option<RunId>,
    /// Thread of the last run.
    pub last_thread_id: Option<ThreadId>,
    /// Error of the last firing, if it failed.
    pub last_error: Option<String>,
    /// Number of started runs.
    pub run_count: u64,
    /// Number of the stored state; each write increases it.
    pub version: u64,
    /// Creation time.
    pub created_at: DateTime<Utc>,
    /// Time of the last change.
    pub updated_at: DateTime<Utc>,
}

/// Cause of a task's run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskTrigger {
    /// The schedule.
    Scheduled,
    /// A request of the user.
    Manual,
}

impl TaskTrigger {
    const WORDS: [(Self, &str); 2] = [(Self::Scheduled, "scheduled"), (Self::Manual, "manual")];

    /// Returns the value used on the wire and in the store.
    pub fn as_str(self) -> &'static str {
        word_of(&Self::WORDS, self)
    }

    /// Parses the value used in the store.
    pub fn parse(word: &str) -> Option<Self> {
        meaning_of(&Self::WORDS, word)
    }
}

/// Status of a task's run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskRunStatus {
    /// Accepted; the run of the thread is not created yet.
    Queued,
    /// The run of the thread exists and has not ended.
    Running,
    /// The run succeeded.
    Success,
    /// The run failed or could not be created.
    Failed,
    /// The run was cancelled or deleted.
    Interrupted,
    /// No run was created, because another one was active.
    Skipped,
}

impl TaskRunStatus {
    const WORDS: [(Self, &str); 6] = [
        (Self::Queued, "queued"),
        (Self::Running, "running"),
        (Self::Success, "success"),
        (Self::Failed, "failed"),
        (Self::Interrupted, "interrupted"),
        (Self::Skipped, "skipped"),
    ];

    /// Returns the value used on the wire and in the store.
    pub fn as_str(self) -> &'static str {
        word_of(&Self::WORDS, self)
    }

    /// Parses the value used in the store.
    pub fn parse(word: &str) -> Option<Self> {
        meaning_of(&Self::WORDS, word)
    }

    /// Reports whether the run has not ended.
    pub fn is_active(self) -> bool {
        matches!(self, Self::Queued | Self::Running)
    }
}

/// One firing of a task.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskRun {
    /// Id: `task-run-` and 32 hexadecimal digits.
    pub task_run_id: String,
    /// Task that fired.
    pub task_id: String,
    /// Owner of the task.
    pub user_id: String,
    /// Thread of the run.
    pub thread_id: ThreadId,
    /// Id of the run. It exists from [`TaskRun::started_at`] on.
    pub run_id: RunId,
    /// Scheduled time, or the time of the user's request.
    pub scheduled_for: DateTime<Utc>,
    /// Cause.
    pub trigger: TaskTrigger,
    /// Status.
    pub status: TaskRunStatus,
    /// Reason of a firing that did not succeed.
    pub error: Option<String>,
    /// Time at which the run was created.
    pub started_at: Option<DateTime<Utc>>,
    /// Time of the end.
    pub finished_at: Option<DateTime<Utc>>,
    /// Time of the last attempt to create the run. Attempts that are not finished are repeated.
    pub claimed_at: DateTime<Utc>,
    /// Time of the firing.
    pub created_at: DateTime<Utc>,
}

impl TaskRun {
    /// Returns the row as it is after its end.
    #[must_use]
    pub fn ended(&self, status: TaskRunStatus, error: Option<String>, at: DateTime<Utc>) -> Self {
        Self {
            status,
            error,
            finished_at: Some(at),
            ..self.clone()
        }
    }

    /// Returns the row as it is after the creation of the run.
    #[must_use]
    pub fn started(&self, at: DateTime<Utc>) -> Self {
        Self {
            status: TaskRunStatus::Running,
            started_at: Some(at),
            ..self.clone()
        }
    }
}

/// State of the run that a task started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunProgress {
    /// The run has not ended.
    Unfinished,
    /// The run ended.
    Ended {
        /// Terminal status.
        status: TaskRunStatus,
        /// Error of a failed run.
        error: Option<String>,
        /// Time of the end.
        at: DateTime<Utc>,
    },
    /// The run does not exist.
    Missing,
}

fn word_of<T: Copy + PartialEq>(words: &[(T, &'static str)], value: T) -> &'static str {
    words
        .iter()
        .find(|(meaning, _)| *meaning == value)
        .map_or("", |(_, word)| word)
}

fn meaning_of<T: Copy>(words: &[(T, &str)], text: &str) -> Option<T> {
    words
        .iter()
        .find(|(_, word)| *word == text)
        .map(|(meaning, _)| *meaning)
}

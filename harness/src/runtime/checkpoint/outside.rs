//! A change of a thread from outside a run: a checkpoint and the thread's row, planned on what was read.

use chrono::{DateTime, Utc};
use serde_json::Value;

use super::{
    CheckpointError, CheckpointMeta, CheckpointSource, CheckpointWrite, PendingTask, Snapshot,
};
use crate::ids::{CheckpointId, IdSource, RunId, ThreadId};
use crate::runtime::runs::ThreadStatus;
use crate::state::ThreadState;

/// A change from outside a run, as it was read and as it shall be.
#[derive(Debug)]
pub struct OutsideChange<'a> {
    /// The thread.
    pub thread_id: &'a ThreadId,
    /// The checkpoint that the change follows.
    pub base: Option<&'a Snapshot>,
    /// The thread's newest checkpoint.
    pub newest: Option<&'a Snapshot>,
    /// The last place of the thread's log.
    pub log_tail: u64,
    /// The state after the change.
    pub after: ThreadState,
    /// What makes the checkpoint.
    pub source: CheckpointSource,
    /// What is due after the change.
    pub next: Vec<PendingTask>,
    /// Where the agent stands then.
    pub machine: Option<Value>,
}

impl OutsideChange<'_> {
    /// The checkpoint to be written: one step behind its base, and newer than all that the thread has.
    pub fn planned(self, ids: &dyn IdSource, at: DateTime<Utc>) -> OutsideWrite {
        let Self {
            thread_id,
            base,
            newest,
            log_tail,
            mut after,
            source,
            next,
            machine,
        } = self;
        if let Some(newest) = newest {
            ids.heed(&newest.meta.checkpoint_id);
        }
        let meta = CheckpointMeta {
            checkpoint_id: ids.checkpoint_id(),
            thread_id: thread_id.clone(),
            parent_id: base.map(|base| base.meta.checkpoint_id.clone()),
            run_id: None,
            source,
            step: base.map_or(-1, |base| base.meta.step + 1),
            machine,
            metadata: base
                .map(|base| base.meta.metadata.clone())
                .unwrap_or_default(),
            next,
            created_at: at,
        };
        OutsideWrite {
            newest: newest.map(|newest| newest.meta.checkpoint_id.clone()),
            log_tail,
            title: after.title().map(str::to_owned),
            status: ThreadStatus::at_rest(!meta.next.is_empty()),
            write: CheckpointWrite::plan(meta, &mut after, &mut log_tail.clone()),
        }
    }
}

/// A checkpoint to be written from outside a run, and what becomes of its thread.
#[derive(Debug, Clone)]
pub struct OutsideWrite {
    /// The checkpoint. The thread was changed at its moment.
    pub write: CheckpointWrite,
    /// The thread's newest checkpoint when the write was planned.
    pub newest: Option<CheckpointId>,
    /// The last place of the thread's log when the write was planned.
    pub log_tail: u64,
    /// The thread's title; `None` when there is none.
    pub title: Option<String>,
    /// The thread's status.
    pub status: ThreadStatus,
}

/// Why a change from outside a run was refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PutError {
    /// A run holds the thread.
    #[error("run {run_id} is in flight on thread {thread_id}")]
    Busy {
        /// The thread.
        thread_id: ThreadId,
        /// The run.
        run_id: RunId,
    },
    /// The thread is no longer as it was when the write was planned; read it again.
    #[error("thread {0} was changed meanwhile")]
    Moved(ThreadId),
    /// There is no such thread.
    #[error("there is no thread {0}")]
    NoThread(ThreadId),
    /// It could not be written.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
}

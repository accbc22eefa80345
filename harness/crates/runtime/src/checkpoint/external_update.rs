//! Update of a thread from outside a run. It is planned from the state that was read, and writes a
//! checkpoint and the thread's row.

use chrono::{DateTime, Utc};
use serde_json::Value;

use super::pending_task::PendingTask;
use super::snapshot::{CheckpointMeta, CheckpointWrite, Snapshot};
use super::source::CheckpointSource;
use crate::definition::ThreadStatus;
use deerflow_core::ids::{CheckpointId, IdSource, ThreadId};
use deerflow_core::state::ThreadState;

/// An update from outside a run: the thread as read, and the intended state.
#[derive(Debug)]
pub struct ExternalUpdate<'a> {
    /// Id of the thread.
    pub thread_id: &'a ThreadId,
    /// Checkpoint that the update is based on.
    pub base: Option<&'a Snapshot>,
    /// Newest checkpoint of the thread.
    pub newest: Option<&'a Snapshot>,
    /// Last position of the thread's log.
    pub log_tail: u64,
    /// State after the update. The plan adds the positions of its new messages.
    pub after: &'a mut ThreadState,
    /// Source of the new checkpoint.
    pub source: CheckpointSource,
    /// Pending tasks after the update.
    pub next: Vec<PendingTask>,
    /// State machine of the agent after the update.
    pub machine: Option<Value>,
}

impl ExternalUpdate<'_> {
    /// Plans the checkpoint. Its step is one after that of its base, and its id is newer than all
    /// checkpoints of the thread.
    pub fn planned(self, ids: &dyn IdSource, at: DateTime<Utc>) -> ExternalWrite {
        let Self {
            thread_id,
            base,
            newest,
            log_tail,
            after,
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
        ExternalWrite {
            newest: newest.map(|newest| newest.meta.checkpoint_id.clone()),
            log_tail,
            title: after.title().map(str::to_owned),
            status: ThreadStatus::at_rest(!meta.next.is_empty()),
            write: CheckpointWrite::plan(meta, after, &mut log_tail.clone()),
        }
    }
}

/// A checkpoint to be written from outside a run, with the new values of its thread.
#[derive(Debug, Clone)]
pub struct ExternalWrite {
    /// The checkpoint. Its time becomes the time of the thread's last change.
    pub write: CheckpointWrite,
    /// Newest checkpoint of the thread when the write was planned.
    pub newest: Option<CheckpointId>,
    /// Last position of the thread's log when the write was planned.
    pub log_tail: u64,
    /// Title of the thread; `None` if there is none.
    pub title: Option<String>,
    /// Status of the thread.
    pub status: ThreadStatus,
}

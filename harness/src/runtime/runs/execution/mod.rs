//! One run, executed: start, prepare, stream, finish, and what always comes after. Reads top to bottom.

mod end;
mod finish;
mod journal;
mod nested;
mod partial;
mod prepare;
mod read;
mod resume;
mod start;
mod stream;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use serde_json::Value;
use tokio::sync::mpsc;

use super::callbacks::Callbacks;
use super::live::{LiveRun, RunOutcome};
use super::parts::RuntimeParts;
use super::plan::ExecutionPlan;
use super::record::RunRecord;
use crate::ids::CheckpointId;
use crate::runtime::agent::{CallLine, CallLog};
use crate::runtime::checkpoint::{CheckpointMeta, CheckpointWrite, PendingTask};
use crate::runtime::fail_points;
use crate::runtime::serialization::{Frame, ModeEncoder};
use crate::runtime::stream_bridge::{BridgeError, StreamKey};
use crate::runtime::tasks::panic_text;
use crate::state::ThreadState;
use end::StreamEnd;
use journal::Journal;
use partial::PartialAnswer;

/// The longest that reading a thread may take.
const PREPARE_LIMIT: Duration = Duration::from_secs(60);

/// A run under way and everything known of it so far.
struct Execution {
    plan: ExecutionPlan,
    record: RunRecord,
    parts: RuntimeParts,
    live: Arc<LiveRun>,
    key: StreamKey,
    journal: Journal,
    callbacks: Callbacks,
    encoder: ModeEncoder,
    frames: Vec<Frame>,
    partial: PartialAnswer,
    /// Where the agent writes its calls down, and where they come out.
    calls: CallLog,
    lines: mpsc::UnboundedReceiver<CallLine>,
    /// With durability `exit`, the checkpoint that will be written at the end.
    held: Option<CheckpointWrite>,
    progress: Progress,
}

/// Where the thread stands.
#[derive(Debug, Default)]
struct Progress {
    state: Arc<ThreadState>,
    log_tail: u64,
    parent: Option<CheckpointId>,
    step: i64,
    next: Vec<PendingTask>,
    machine: Option<Value>,
    /// Whether the state differs from the last checkpoint.
    dirty: bool,
    /// Nodes that were due before the run: what a rollback returns to.
    due_before: bool,
    /// The state the run found: what a rollback returns to.
    before: Arc<ThreadState>,
    /// Whether the input is in the state but in no checkpoint yet.
    input_unsaved: bool,
    /// The last checkpoint that this run wrote.
    own_checkpoint: Option<CheckpointMeta>,
    /// The checkpoint that the run goes on from, unless it began with an input.
    found: Option<CheckpointMeta>,
}

/// Executes a run to its end, or until it goes on elsewhere: then there is no outcome. Nothing an agent does, not even a panic,
/// keeps it from ending.
#[tracing::instrument(name = "run", skip_all, fields(run_id = %record.run_id, thread_id = %record.thread_id))]
pub(super) async fn run(
    plan: ExecutionPlan,
    record: RunRecord,
    parts: RuntimeParts,
    live: Arc<LiveRun>,
) -> Option<RunOutcome> {
    // Each hop in a box of its own: a run that streams for minutes holds the memory of no other hop.
    let mut execution = Box::new(Box::pin(Execution::start(plan, record, parts, live)).await);
    let work = AssertUnwindSafe(async {
        match tokio::time::timeout(PREPARE_LIMIT, Box::pin(execution.prepare())).await {
            Ok(Ok(events)) => {
                fail_points::pass("run.prepared");
                Box::pin(execution.stream(events)).await
            }
            Ok(Err(end)) => end,
            Err(_) if execution.journal.is_unconfirmed() => StreamEnd::Away,
            Err(_) => StreamEnd::failed("StorageError", "the thread could not be read in time"),
        }
    });
    let end = work.catch_unwind().await.unwrap_or_else(|panic| {
        let text = panic_text(panic.as_ref());
        tracing::error!(panic = %text, "the agent panicked");
        StreamEnd::failed("InternalError", "the agent failed unexpectedly")
    });
    let outcome = Box::pin(execution.finish(end)).await;
    if outcome.is_some() {
        fail_points::pass("end.published");
        execution.always_after().await;
        fail_points::pass("end.tidied");
    }
    outcome
}

impl Execution {
    /// Sends the collected frames on their way. Only a stream that was taken over ends the run; a failing transport must not.
    async fn publish_frames(&mut self) -> Result<(), StreamEnd> {
        for frame in self.frames.drain(..) {
            match self
                .parts
                .bridge
                .publish(&self.key, frame.event, frame.data)
                .await
            {
                Ok(_) => {}
                Err(BridgeError::Fenced { .. }) => return Err(StreamEnd::Lost),
                // Shutdown: viewers were aborted and come back elsewhere; the run goes on to its next durable step.
                Err(BridgeError::Closed) => {}
                Err(error) => tracing::warn!(%error, "an event did not reach the stream"),
            }
        }
        Ok(())
    }
}

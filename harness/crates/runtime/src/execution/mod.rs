//! Execution of one run, in four phases: start, prepare, stream, finish.

mod commit_buffer;
mod commit_retry;
mod context;
mod end_record;
mod finish;
mod known_head;
mod nested;
mod prepare;
mod read;
mod reconcile;
mod release;
mod resume;
mod sent_commit;
mod start;
mod stream;
mod stream_end;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use serde_json::Value;
use tracing::Instrument;

use crate::admission::RunPlan;
use crate::agent::{CallLog, PendingCallEntry, QueueReceiver};
use crate::callbacks::Callbacks;
use crate::checkpoint::{CheckpointMeta, CheckpointWrite, PendingTask, ThreadHead};
use crate::definition::RunRecord;
use crate::encoding::{Frame, ModeEncoder, OpenMessages};
use crate::kernel::{ActiveRun, RunOutcome, Runtime, StateSize};
use crate::ports::RuntimePorts;
use crate::stream_bridge::{BridgeError, StreamKey};
use commit_buffer::CommitBuffer;
use deerflow_core::fail_points;
use deerflow_core::ids::CheckpointId;
use deerflow_core::state::ThreadState;
use deerflow_core::tasks::panic_text;
use stream_end::StreamEnd;

pub(crate) use prepare::{MAX_SUCCESSORS, START};

/// Timeout of the prepare phase.
const PREPARE_LIMIT: Duration = Duration::from_secs(60);

/// Execution of one run, with its progress so far.
struct Execution {
    plan: RunPlan,
    record: RunRecord,
    /// Head of the thread at admission, if it is known.
    head: Option<ThreadHead>,
    runtime: Arc<Runtime>,
    ports: RuntimePorts,
    active: Arc<ActiveRun>,
    key: StreamKey,
    commit_buffer: CommitBuffer,
    callbacks: Callbacks,
    encoder: ModeEncoder,
    frames: Vec<Frame>,
    /// Messages that are being streamed. A cancel stores their text, which viewers have received.
    open_messages: OpenMessages,
    /// Sender of the agent's tool call records, and its receiver.
    calls: CallLog,
    call_entries: QueueReceiver<PendingCallEntry>,
    /// With durability `exit`, the checkpoint to be written at the end.
    deferred_checkpoint: Option<Box<CheckpointWrite>>,
    progress: Progress,
}

/// Progress of the thread.
#[derive(Debug, Default)]
struct Progress {
    state: Arc<ThreadState>,
    log_tail: u64,
    parent: Option<CheckpointId>,
    step: i64,
    next: Vec<PendingTask>,
    machine: Option<Value>,
    /// `true` if the state differs from the last checkpoint.
    dirty: bool,
    /// `true` if nodes were pending before the run; a rollback restores that.
    pending_before: bool,
    /// State before the run; a rollback restores it.
    before: Arc<ThreadState>,
    /// Size of that state, if this process retained it.
    size_before: Option<StateSize>,
    /// `true` if the input is in the state, but not in a checkpoint.
    has_unsaved_input: bool,
    /// Last checkpoint that this run wrote.
    own_checkpoint: Option<CheckpointMeta>,
    /// Checkpoint that the run resumes from, unless it started with an input.
    base_checkpoint: Option<CheckpointMeta>,
}

/// Executes a run to its end. Returns `None` if this process did not end the run: another process
/// continues it or has ended it, or its end could not be stored. The run ends even if the agent
/// panics.
pub(crate) fn run(
    plan: RunPlan,
    record: RunRecord,
    head: Option<ThreadHead>,
    runtime: Arc<Runtime>,
    active: Arc<ActiveRun>,
) -> impl Future<Output = Option<RunOutcome>> + Send {
    let span = tracing::info_span!("run", run_id = %record.run_id, thread_id = %record.thread_id);
    // Not an `async fn`, which would store the arguments twice. Each phase is boxed, so that a long
    // stream phase does not hold the memory of the others.
    let started = Box::pin(Execution::start(plan, record, head, runtime, active));
    let work = async move {
        let mut execution = Box::new(started.await);
        let outcome = execute(&mut execution).await;
        execution
            .ports
            .file_changes
            .discard(&execution.record.run_id);
        if outcome.is_some() {
            fail_points::pass("end.published");
            execution.clean_up().await;
            fail_points::pass("end.tidied");
        }
        outcome
    };
    work.instrument(span)
}

/// Prepares, streams and finishes the run. A panic of the agent fails it.
async fn execute(execution: &mut Execution) -> Option<RunOutcome> {
    let work = AssertUnwindSafe(async {
        match tokio::time::timeout(PREPARE_LIMIT, Box::pin(execution.prepare())).await {
            Ok(Ok(events)) => {
                fail_points::pass("run.prepared");
                Box::pin(execution.stream(events)).await
            }
            Ok(Err(end)) => end,
            Err(_) if execution.commit_buffer.is_unconfirmed() => StreamEnd::StoreUnavailable,
            Err(_) => StreamEnd::failed("StorageError", "reading the thread timed out"),
        }
    });
    let end = work.catch_unwind().await.unwrap_or_else(|panic| {
        let text = panic_text(panic.as_ref());
        tracing::error!(panic = %text, "the agent panicked");
        StreamEnd::failed("InternalError", "the agent failed unexpectedly")
    });
    Box::pin(execution.finish(end)).await
}

impl Execution {
    /// Publishes the collected frames. Fails only if a later attempt owns the stream; other
    /// transport errors do not end the run.
    async fn publish_frames(&mut self) -> Result<(), StreamEnd> {
        for frame in self.frames.drain(..) {
            match self
                .ports
                .bridge
                .publish(&self.key, frame.event, frame.data)
                .await
            {
                Ok(_) => {}
                Err(BridgeError::Fenced { .. }) => return Err(StreamEnd::Lost),
                // Shutdown: subscribers were disconnected and reconnect to another process. The run
                // continues to its next durable step.
                Err(BridgeError::Closed) => {}
                Err(error) => tracing::warn!(%error, "cannot publish an event to the stream"),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::AgentStream;

    fn size_of_future<A, F: Future>(_: impl FnOnce(A) -> F) -> usize {
        size_of::<F>()
    }

    #[test]
    fn streaming_run_has_at_most_eight_kilobytes() {
        let run = size_of_future(|(plan, record, head, runtime, active)| {
            super::run(plan, record, head, runtime, active)
        });
        let stream = size_of_future(
            |(execution, events): (&'static mut Execution, AgentStream)| execution.stream(events),
        );
        let total = size_of::<Execution>() + run + stream;
        assert!(total <= 8 << 10, "{total} bytes");
    }
}

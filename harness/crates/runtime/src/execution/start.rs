//! First phase of an execution: marks the run as running and opens its stream.

use std::sync::Arc;

use super::commit_buffer::CommitBuffer;
use super::stream_end::StreamEnd;
use crate::admission::RunPlan;
use crate::agent::CallLog;
use crate::callbacks::{Callbacks, RunEventCallback};
use crate::checkpoint::ThreadHead;
use crate::definition::{RunRecord, RunStatus};
use crate::encoding::{ModeEncoder, OpenMessages, RunFacts, StreamOptions, metadata_frame};
use crate::execution::{Execution, Progress};
use crate::kernel::{ActiveRun, Runtime};
use crate::ports::{LifecycleKind, RuntimePorts, WakeSignal};
use crate::stream_bridge::StreamKey;
use deerflow_core::fail_points;
use deerflow_core::ids::CheckpointId;

impl Execution {
    /// Opens the stream of a first attempt, marks the run as running, and notifies the observer.
    #[tracing::instrument(name = "start", skip_all)]
    pub(super) async fn start(
        plan: RunPlan,
        record: RunRecord,
        head: Option<ThreadHead>,
        runtime: Arc<Runtime>,
        active: Arc<ActiveRun>,
    ) -> Self {
        let ports = runtime.ports.clone();
        let key = StreamKey {
            run_id: record.run_id.clone(),
            attempt: record.attempt,
        };
        let events = RunEventCallback::new(
            record.thread_id.clone(),
            record.run_id.clone(),
            record.user_id.clone(),
            ports.clock.clone(),
            plan.limits().max_trace_chars,
        );
        let former = (record.attempt > 1).then(|| ports.ledger.clone());
        let (calls, call_entries) = CallLog::of(record.run_id.clone(), former);
        let mut execution = Self {
            key,
            calls,
            call_entries,
            commit_buffer: CommitBuffer::new(&record, ports.clone()),
            callbacks: Callbacks::new(events, record.completion.clone()),
            encoder: encoder(&plan, &record, &ports),
            frames: vec![metadata_frame(
                &record.run_id,
                &record.thread_id,
                record.attempt,
                None,
            )],
            open_messages: OpenMessages::default(),
            deferred_checkpoint: None,
            progress: Progress::default(),
            plan,
            record,
            head,
            runtime,
            ports,
            active,
        };
        // A later attempt opens its stream once its checkpoint is known.
        if execution.record.attempt == 1 && execution.announce().await.is_err() {
            tracing::warn!("a newer attempt owns the stream");
        }
        execution.active.set_status(RunStatus::Running);
        execution.commit_buffer.advance(RunStatus::Running);
        let assistant = execution.plan.request().assistant.clone();
        execution.callbacks.events.run_started(&assistant);
        execution.notify(LifecycleKind::RunStarted).await;
        execution
    }

    /// Opens the stream of the attempt with a `metadata` event.
    async fn announce(&mut self) -> Result<(), StreamEnd> {
        let published = self.publish_frames().await;
        fail_points::pass("run.announced");
        self.active.opened.cancel();
        let thread = self.record.thread_id.clone();
        self.ports.bell.ring(WakeSignal::Started(thread));
        published
    }

    /// Opens the stream of a later attempt that resumes from this checkpoint.
    pub(super) async fn announce_resumed(
        &mut self,
        from: Option<&CheckpointId>,
    ) -> Result<(), StreamEnd> {
        self.frames = vec![metadata_frame(
            &self.record.run_id,
            &self.record.thread_id,
            self.record.attempt,
            from,
        )];
        self.announce().await
    }
}

fn encoder(plan: &RunPlan, record: &RunRecord, ports: &RuntimePorts) -> ModeEncoder {
    let request = plan.request();
    let options = StreamOptions {
        modes: request.stream_modes,
        subgraphs: request.stream_subgraphs,
        echo_input: request.presentation.echo_input,
        describe_messages: request.presentation.describe_messages,
    };
    ModeEncoder::new(options, ports.clock.clone(), || RunFacts {
        run_id: record.run_id.clone(),
        thread_id: record.thread_id.clone(),
        attempt: record.attempt,
        assistant: request.assistant.clone(),
        metadata: request.metadata.clone(),
    })
}

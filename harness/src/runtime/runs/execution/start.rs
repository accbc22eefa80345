//! The first hop of an execution: the run is running, and its viewers know.

use std::sync::Arc;

use super::super::callbacks::{Callbacks, RunEventCallback};
use super::super::live::LiveRun;
use super::super::observer::LifecycleKind;
use super::super::parts::RuntimeParts;
use super::super::plan::ExecutionPlan;
use super::super::record::RunRecord;
use super::super::status::RunStatus;
use super::end::StreamEnd;
use super::journal::Journal;
use super::partial::PartialAnswer;
use super::{Execution, Progress};
use crate::ids::CheckpointId;
use crate::runtime::agent::CallLog;
use crate::runtime::fail_points;
use crate::runtime::serialization::{ModeEncoder, RunFacts, Wanted, metadata_frame};
use crate::runtime::stream_bridge::StreamKey;

impl Execution {
    /// Announces a first attempt, marks the run as running, tells the observer.
    #[tracing::instrument(name = "start", skip_all)]
    pub(super) async fn start(
        plan: ExecutionPlan,
        record: RunRecord,
        parts: RuntimeParts,
        live: Arc<LiveRun>,
    ) -> Self {
        let key = StreamKey {
            run_id: record.run_id.clone(),
            attempt: record.attempt,
        };
        let events = RunEventCallback::new(
            record.thread_id.clone(),
            record.run_id.clone(),
            record.user_id.clone(),
            parts.clock.clone(),
            plan.limits.max_trace_chars,
        );
        let former = (record.attempt > 1).then(|| parts.ledger.clone());
        let (calls, lines) = CallLog::of(record.run_id.clone(), former);
        let mut execution = Self {
            key,
            calls,
            lines,
            journal: Journal::new(&record, parts.clone()),
            callbacks: Callbacks::new(events, record.completion.clone()),
            encoder: encoder(&plan, &record, &parts),
            frames: vec![metadata_frame(
                &record.run_id,
                &record.thread_id,
                record.attempt,
                None,
            )],
            partial: PartialAnswer::default(),
            held: None,
            progress: Progress::default(),
            plan,
            record,
            parts,
            live,
        };
        // A later one says first where it goes on.
        if execution.record.attempt == 1 && execution.announce().await.is_err() {
            tracing::warn!("a newer attempt owns the stream already");
        }
        execution.live.set_status(RunStatus::Running);
        execution.journal.advance(RunStatus::Running);
        let assistant = execution.plan.assistant.clone();
        execution.callbacks.events.run_started(&assistant);
        execution.tell(LifecycleKind::RunStarted).await;
        execution
    }

    /// Opens the attempt's stream with `metadata`.
    async fn announce(&mut self) -> Result<(), StreamEnd> {
        let published = self.publish_frames().await;
        fail_points::pass("run.announced");
        self.live.opened.cancel();
        published
    }

    /// The same for a later attempt, which goes on from this checkpoint.
    pub(super) async fn announce_going_on(
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

fn encoder(plan: &ExecutionPlan, record: &RunRecord, parts: &RuntimeParts) -> ModeEncoder {
    let wanted = Wanted {
        modes: plan.modes,
        subgraphs: plan.subgraphs,
        echo_input: plan.echo_input,
        describe_messages: plan.describe_messages,
    };
    ModeEncoder::new(wanted, parts.clock.clone(), || RunFacts {
        run_id: record.run_id.clone(),
        thread_id: record.thread_id.clone(),
        attempt: record.attempt,
        assistant: plan.assistant.clone(),
        metadata: plan.metadata.clone(),
    })
}

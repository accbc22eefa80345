//! Run whose frames are being converted.

use std::sync::Arc;
use std::time::Duration;

use harness::ids::RunId;
use harness::runtime::runs::RunRecord;
use tokio::time::Instant;

use super::convert::RunConverter;
use super::event::Draft;
use super::log::ThreadLog;
use super::numbering::RunNumbers;

/// Minimum time between the start of a live run and the event of its end. The JavaScript client
/// opens further streams right after it has created a run, and a subscription whose stream opens
/// after the end of the run gets no events of it.
const MIN_LIFE: Duration = Duration::from_millis(200);

/// Run whose frames are converted.
pub(super) struct CurrentRun {
    pub(super) record: RunRecord,
    /// Id of the run, which its events share.
    id: Arc<RunId>,
    pub(super) numbers: RunNumbers,
    pub(super) converter: RunConverter,
    /// `true` after the event that the run started. A later attempt does not repeat it.
    is_announced: bool,
    /// Earliest time of the event of its end.
    pub(super) may_end_at: Instant,
}

impl CurrentRun {
    /// Begins a run whose first event has the position `first`.
    pub(super) fn new(record: RunRecord, first: u64) -> Self {
        let min_life = if record.status.is_terminal() {
            Duration::ZERO
        } else {
            MIN_LIFE
        };
        let id = Arc::new(record.run_id.clone());
        Self {
            converter: RunConverter::new(&record.assistant),
            numbers: RunNumbers::new(id.clone(), first),
            id,
            record,
            is_announced: false,
            may_end_at: Instant::now() + min_life,
        }
    }

    /// Numbers events and adds them to the log, which notifies its readers.
    pub(super) fn append(&mut self, mut drafts: Vec<Draft>, now: i64, log: &ThreadLog) {
        self.add(&mut drafts, now, log);
        log.publish();
    }

    /// Numbers the events of `drafts` and moves them to the log, which does not notify its readers
    /// of them yet.
    pub(super) fn add(&mut self, drafts: &mut Vec<Draft>, now: i64, log: &ThreadLog) {
        // A run that ended earlier has its time.
        let timestamp = if self.record.status.is_terminal() {
            self.record.updated_at.timestamp_millis()
        } else {
            now
        };
        let (numbers, is_announced) = (&mut self.numbers, &mut self.is_announced);
        let numbered = drafts.drain(..).filter_map(|draft| {
            let identity = numbers.next(&draft, timestamp);
            let starts_run = draft.namespace.is_empty()
                && draft
                    .change
                    .as_ref()
                    .is_some_and(|change| change.status == "running");
            let is_repeated = starts_run && std::mem::replace(is_announced, true);
            (!is_repeated).then_some((draft, identity))
        });
        log.add(&self.id, self.record.created_at, numbered);
    }
}

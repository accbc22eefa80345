//! Poller of a node: reads the followed runs when a signal arrives, and at an interval in case a
//! signal was lost.

use std::sync::Arc;
use std::time::Duration;

use deerflow_core::ids::RunId;
use deerflow_core::tasks::TaskKind;
use deerflow_runtime::runs::store::StoreError;
use deerflow_runtime::stream_bridge::EventId;
use futures_util::StreamExt;
use futures_util::future::join_all;

use super::poll::{PollOutcome, PollRequest};
use super::protocol::StreamSignal;
use super::run_log::RunLog;
use super::shared::BridgeShared;
use super::stream_head::StreamHead;
use super::stream_state::BATCH_EVENTS;

/// Number of runs that are read in one round trip.
const RUNS_PER_POLL: usize = 64;
/// A subscription without a message for this long is dead. Nodes publish keepalives more often.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(15);
const KEEPALIVE_EVERY: u32 = 5;
const RECONNECT_DELAY: Duration = Duration::from_millis(500);

impl BridgeShared {
    /// Listens for signals until the bridge closes.
    pub(super) async fn listen_loop(self: Arc<Self>) {
        let stop = self.tasks.token().clone();
        let listen = async {
            loop {
                match self.sources.client.subscribe_signals().await {
                    Ok(signals) => {
                        tokio::pin!(signals);
                        while let Ok(Some(signal)) =
                            tokio::time::timeout(SILENCE_TIMEOUT, signals.next()).await
                        {
                            signal.iter().for_each(|signal| self.on_signal(signal));
                        }
                        tracing::debug!("no signal for too long, subscribing again");
                    }
                    Err(outage) => {
                        tracing::debug!(%outage, "cannot subscribe to signals, runs are polled")
                    }
                }
                tokio::time::sleep(RECONNECT_DELAY).await;
            }
        };
        stop.run_until_cancelled(listen).await;
    }

    /// Polls the signalled runs, and at an interval all runs, until the bridge closes.
    pub(super) async fn poll_loop(self: Arc<Self>) {
        let stop = self.tasks.token().clone();
        let poll = async {
            let mut ticks = tokio::time::interval(self.sources.options.poll_interval);
            ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
            let mut count = 0_u32;
            loop {
                let logs: Vec<_> = tokio::select! {
                    biased;
                    _ = ticks.tick() => {
                        count = count.wrapping_add(1);
                        self.maintain(count).await;
                        self.runs.all()
                    }
                    () = self.wakeup.notified() => {
                        let wakeup = std::mem::take(&mut *self.woken_runs.lock());
                        wakeup.iter().filter_map(|run_id| self.runs.get(run_id)).collect()
                    }
                };
                join_all(logs.chunks(RUNS_PER_POLL).map(|logs| self.poll_runs(logs))).await;
            }
        };
        stop.run_until_cancelled(poll).await;
    }

    /// Requests a poll of one run.
    pub(super) fn schedule_poll(&self, log: &RunLog) {
        self.woken_runs.lock().insert(log.run_id().clone());
        self.wakeup.notify_one();
    }

    fn on_signal(&self, signal: &StreamSignal) {
        // A publisher knows its own appends.
        if let Some(log) = self
            .runs
            .get(&signal.run_id)
            .filter(|log| !log.publishes(signal.attempt) || signal.ended)
        {
            self.schedule_poll(&log);
        }
    }

    async fn poll_runs(self: &Arc<Self>, logs: &[Arc<RunLog>]) {
        let requests: Vec<(RunId, PollRequest)> = logs
            .iter()
            .map(|log| (log.run_id().clone(), log.poll_request()))
            .collect();
        let events: Vec<_> = requests
            .iter()
            .map(|(run_id, poll_request)| (run_id.clone(), poll_request.events()))
            .collect();
        let mut snapshots = self
            .sources
            .read_streams(&events)
            .await
            .unwrap_or_default()
            .into_iter();
        for (log, (_, request)) in logs.iter().zip(requests) {
            let snapshot = snapshots.next();
            if let Some(seen) = log.needs_log_read(snapshot.as_ref()) {
                let (shared, log) = (self.clone(), log.clone());
                self.tasks
                    .spawn(TaskKind::Finish, "stream log reader", async move {
                        let stop = shared.tasks.token().clone();
                        stop.run_until_cancelled(shared.read_durable_log(&log, seen))
                            .await;
                    });
            }
            let observed = snapshot.map_or(PollOutcome::UpToDate, |snapshot| {
                log.observe(snapshot, request, &self.sources.options)
            });
            self.act_on(log, &observed);
        }
    }

    fn act_on(self: &Arc<Self>, log: &Arc<RunLog>, observed: &PollOutcome) {
        match observed {
            PollOutcome::UpToDate => {}
            PollOutcome::More => self.schedule_poll(log),
            PollOutcome::Lost => self.ensure_sender(log),
        }
        log.notify_viewers();
        if log.has_ended() {
            self.runs.remove(log);
        }
    }

    /// Reads events from the durable log when the server has fewer than were seen here. Runs in a
    /// task, so that a slow database does not delay other runs.
    async fn read_durable_log(self: &Arc<Self>, log: &Arc<RunLog>, seen: EventId) {
        let observed = self.read_more(log, seen).await.unwrap_or_else(|error| {
            tracing::debug!(run_id = %log.run_id(), %error, "cannot read the rest of a stream from the durable log");
            log.observe_logged(seen, None)
        });
        self.act_on(log, &observed);
    }

    async fn read_more(&self, log: &RunLog, seen: EventId) -> Result<PollOutcome, StoreError> {
        let Ok(_permit) = self.log_reads.acquire().await else {
            return Ok(PollOutcome::UpToDate);
        };
        let run_id = log.run_id();
        let page = self
            .sources
            .logged_page(run_id, seen.seq.max(1), BATCH_EVENTS)
            .await?;
        if page
            .events
            .first()
            .is_some_and(|first| first.id.seq == seen.seq && first.id.attempt != seen.attempt)
        {
            log.start_over_after(
                seen,
                StreamHead::default().with(&self.sources.logged(run_id).await?),
            );
            return Ok(PollOutcome::UpToDate);
        }
        let page = match page.events.is_empty() && page.end.is_none() && seen.seq > 0 {
            true => {
                self.sources
                    .logged_page(run_id, seen.seq + 1, BATCH_EVENTS)
                    .await?
            }
            false => page,
        };
        Ok(log.observe_logged(seen, Some(page)))
    }

    async fn maintain(&self, count: u32) {
        if count.is_multiple_of(KEEPALIVE_EVERY) {
            // Outages are reported by the requests that need the server.
            _ = self.sources.client.send_keepalive().await;
        }
        self.check_policy_once().await;
        self.runs.remove_unused();
        for log in self
            .runs
            .all()
            .into_iter()
            .filter(|log| log.is_idle(&self.sources.options))
        {
            tracing::warn!(run_id = %log.run_id(), "no event for too long, the stream is abandoned");
            log.retire();
            self.runs.remove(&log);
            log.notify_viewers();
        }
    }
}

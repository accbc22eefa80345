//! The one reader of a node: woken by the doorbell, and by the clock should the bell be lost.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::join_all;
use harness::ids::RunId;
use harness::runtime::runs::store::StoreError;
use harness::runtime::stream_bridge::EventId;
use harness::runtime::tasks::TaskKind;

use super::inner::Inner;
use super::link::Bell;
use super::log::{BATCH_EVENTS, Observed, RunLog, Wants};
use super::outline::Outline;

/// How many runs are looked at in one round trip.
const AT_ONCE: usize = 64;
/// A doorbell that is silent for so long is dead: somebody rings it for nothing more often.
const DEAF_AFTER: Duration = Duration::from_secs(15);
const RING_EVERY: u32 = 5;
const LISTEN_AGAIN_AFTER: Duration = Duration::from_millis(500);

impl Inner {
    /// Listens to the doorbell until the bridge closes.
    pub(super) async fn keep_listening(self: Arc<Self>) {
        let stop = self.tasks.token().clone();
        let listen = async {
            loop {
                match self.around.link.listen().await {
                    Ok(line) => {
                        tokio::pin!(line);
                        while let Ok(Some(bell)) =
                            tokio::time::timeout(DEAF_AFTER, line.next()).await
                        {
                            bell.iter().for_each(|bell| self.hear(bell));
                        }
                        tracing::debug!("the doorbell went dead, it is hung up and taken again");
                    }
                    Err(outage) => {
                        tracing::debug!(%outage, "the doorbell cannot be heard, runs are polled")
                    }
                }
                tokio::time::sleep(LISTEN_AGAIN_AFTER).await;
            }
        };
        stop.run_until_cancelled(listen).await;
    }

    /// Looks at what rang, and now and then at everything, until the bridge closes.
    pub(super) async fn keep_looking(self: Arc<Self>) {
        let stop = self.tasks.token().clone();
        let look = async {
            let mut ticks = tokio::time::interval(self.around.options.poll_interval);
            ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
            let mut count = 0_u32;
            loop {
                let logs: Vec<_> = tokio::select! {
                    biased;
                    _ = ticks.tick() => {
                        count = count.wrapping_add(1);
                        self.tidy(count).await;
                        self.runs.all()
                    }
                    () = self.rang.notified() => {
                        let rang = std::mem::take(&mut *self.bells.lock());
                        rang.iter().filter_map(|run_id| self.runs.get(run_id)).collect()
                    }
                };
                join_all(logs.chunks(AT_ONCE).map(|logs| self.look_at(logs))).await;
            }
        };
        stop.run_until_cancelled(look).await;
    }

    /// A run is to be looked at soon.
    pub(super) fn wake_for(&self, log: &RunLog) {
        self.bells.lock().insert(log.run_id().clone());
        self.rang.notify_one();
    }

    fn hear(&self, bell: &Bell) {
        // An owner knows what it did itself.
        if let Some(log) = self
            .runs
            .get(&bell.run_id)
            .filter(|log| !log.publishes(bell.attempt) || bell.ended)
        {
            self.wake_for(&log);
        }
    }

    async fn look_at(self: &Arc<Self>, logs: &[Arc<RunLog>]) {
        let wanted: Vec<(RunId, Wants)> = logs
            .iter()
            .map(|log| (log.run_id().clone(), log.wants()))
            .collect();
        let events: Vec<_> = wanted
            .iter()
            .map(|(run_id, wants)| (run_id.clone(), wants.events()))
            .collect();
        let mut looks = self
            .around
            .look(&events)
            .await
            .unwrap_or_default()
            .into_iter();
        for (log, (_, asked)) in logs.iter().zip(wanted) {
            let look = looks.next();
            if let Some(seen) = log.lacks(look.as_ref()) {
                let (inner, log) = (self.clone(), log.clone());
                self.tasks
                    .spawn(TaskKind::Finish, "stream log reader", async move {
                        let stop = inner.tasks.token().clone();
                        stop.run_until_cancelled(inner.look_into_the_log(&log, seen))
                            .await;
                    });
            }
            let observed = look.map_or(Observed::Fine, |look| {
                log.observe(look, asked, &self.around.options)
            });
            self.act_on(log, &observed);
        }
    }

    fn act_on(self: &Arc<Self>, log: &Arc<RunLog>, observed: &Observed) {
        match observed {
            Observed::Fine => {}
            Observed::More => self.wake_for(log),
            Observed::Lost => self.work_on(log),
        }
        log.ring();
        if log.has_ended() {
            self.runs.forget(log);
        }
    }

    /// Goes on with what the durable log has of a run that the server knows less of than was seen here. A slow database delays no
    /// other run.
    async fn look_into_the_log(self: &Arc<Self>, log: &Arc<RunLog>, seen: EventId) {
        let observed = self.read_on(log, seen).await.unwrap_or_else(|error| {
            tracing::debug!(run_id = %log.run_id(), %error, "a stream cannot be read on");
            log.observe_logged(seen, None)
        });
        self.act_on(log, &observed);
    }

    async fn read_on(&self, log: &RunLog, seen: EventId) -> Result<Observed, StoreError> {
        let Ok(_place) = self.log_reads.acquire().await else {
            return Ok(Observed::Fine);
        };
        let run_id = log.run_id();
        let page = self
            .around
            .logged_page(run_id, seen.seq.max(1), BATCH_EVENTS)
            .await?;
        if page
            .events
            .first()
            .is_some_and(|first| first.id.seq == seen.seq && first.id.attempt != seen.attempt)
        {
            log.start_over_after(
                seen,
                Outline::default().with(&self.around.logged(run_id).await?),
            );
            return Ok(Observed::Fine);
        }
        let page = match page.events.is_empty() && page.end.is_none() && seen.seq > 0 {
            true => {
                self.around
                    .logged_page(run_id, seen.seq + 1, BATCH_EVENTS)
                    .await?
            }
            false => page,
        };
        Ok(log.observe_logged(seen, Some(page)))
    }

    async fn tidy(&self, count: u32) {
        if count.is_multiple_of(RING_EVERY) {
            // An outage is told where it matters.
            _ = self.around.link.ring().await;
        }
        self.judge_policy_once().await;
        self.runs.forget_unused();
        for log in self
            .runs
            .all()
            .into_iter()
            .filter(|log| log.is_idle(&self.around.options))
        {
            tracing::warn!(run_id = %log.run_id(), "a stream without a publish for long is given up");
            log.retire();
            self.runs.forget(&log);
            log.ring();
        }
    }
}

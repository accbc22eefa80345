//! What goes when nobody needs it any more: keys of requests, dead letters, events of streams that were kept for viewers, and the
//! journal of old runs and old checkpoints if their operator says so.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use harness::clock::Clock;
use harness::ids::ThreadId;
use harness::runtime::checkpoint::{CheckpointError, Checkpointer, KeptHistory};
use harness::runtime::runs::store::{RequestStore, StoreError, WebhookOutbox};

/// How long things stay that have no other end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// Calls of webhooks that nobody took.
    pub dead_letters: TimeDelta,
    /// Events of streams in the durable log, from their run's end on.
    pub streams: TimeDelta,
    /// Journals of runs that are over, from their end on; for ever when absent.
    pub run_events: Option<TimeDelta>,
    /// Checkpoints of threads; for ever when absent.
    pub histories: Option<HistoryRule>,
}

/// Which checkpoints of each thread stay. A thread's newest does, and one that another follows that stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HistoryRule {
    /// So many of the newest.
    pub newest: u64,
    /// Those that are younger, if any stay for that.
    pub days: Option<u64>,
}

/// A way through the threads in the order in which their states were changed, and what stays of the history of each.
struct Walk {
    name: String,
    until: DateTime<Utc>,
    keep: KeptHistory,
}

impl HistoryRule {
    /// The ways that are to be gone. Each begins anew under another rule.
    fn walks(self, now: DateTime<Utc>) -> Vec<Walk> {
        let since = self.days.map(|days| before(now, days_of(days)));
        let keep = KeptHistory {
            newest: self.newest,
            since,
        };
        let rule = format!(
            "histories looked through: {} and {:?} days",
            self.newest, self.days
        );
        // What was changed a moment ago may not be all that was changed then.
        let changed = Walk {
            name: rule.clone(),
            until: before(now, SETTLED),
            keep,
        };
        // Whatever is in a thread that was left alone for so long is old by now.
        let at_rest = since.map(|until| Walk {
            name: format!("{rule}, at rest"),
            until,
            keep,
        });
        [changed].into_iter().chain(at_rest).collect()
    }
}

/// So many days, as far as time goes.
pub fn days_of(days: u64) -> TimeDelta {
    i64::try_from(days)
        .ok()
        .and_then(TimeDelta::try_days)
        .unwrap_or(TimeDelta::MAX)
}

/// A thread, and when its state was last changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedThread {
    /// When.
    pub at: DateTime<Utc>,
    /// Which.
    pub thread: ThreadId,
}

/// What a look found to be over.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Forgotten {
    /// Keys of requests.
    pub requests: usize,
    /// Dead letters.
    pub letters: usize,
    /// Batches of events of streams.
    pub batches: usize,
    /// Rows of the journal.
    pub events: usize,
    /// Checkpoints.
    pub checkpoints: usize,
}

/// What upkeep asks of a store.
#[async_trait]
pub trait UpkeepStore: Send + Sync + std::fmt::Debug {
    /// Gives a duty to `holder` for `ttl` by the store's clock, unless another one has it. Who has it has it for longer then.
    async fn take_duty(&self, duty: &str, holder: &str, ttl: Duration) -> Result<bool, StoreError>;

    /// Removes up to `most` rows of the journal of runs that were over at `before`, and says how many those were.
    async fn forget_events(&self, before: DateTime<Utc>, most: usize) -> Result<usize, StoreError>;

    /// Removes up to `most` batches of the streams of runs that were over at `before`, and says how many those were.
    async fn forget_streams(&self, before: DateTime<Utc>, most: usize)
    -> Result<usize, StoreError>;

    /// Up to `most` threads whose states were changed at `until` or before, in the order of these changes, from behind where
    /// the walk of this name has come.
    async fn changed_threads(
        &self,
        walk: &str,
        until: DateTime<Utc>,
        most: usize,
    ) -> Result<Vec<ChangedThread>, StoreError>;

    /// Notes how far a walk has come.
    async fn note_walked(&self, walk: &str, up_to: &ChangedThread) -> Result<(), StoreError>;
}

/// The duty of [`Upkeep`].
const DUTY: &str = "upkeep";
/// How long it is given for; a look that takes longer asks again.
const HELD: Duration = Duration::from_secs(120);
/// Rows that go in one transaction.
const BATCH: usize = 200;
/// Threads that are looked at in one step.
const THREADS: usize = 50;
/// After so long nothing is written any more that says it was written before.
const SETTLED: TimeDelta = TimeDelta::minutes(2);
/// The pause after each, in which others write.
const PAUSE: Duration = Duration::from_millis(50);

/// Looks what is over, on one node at a time.
#[derive(Debug, Clone)]
pub struct Upkeep {
    /// Where duties and journals are.
    pub store: Arc<dyn UpkeepStore>,
    /// Where keys of requests are.
    pub requests: Arc<dyn RequestStore>,
    /// Where dead letters are.
    pub outbox: Arc<dyn WebhookOutbox>,
    /// Where checkpoints are.
    pub checkpoints: Arc<dyn Checkpointer>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// This process.
    pub holder: String,
}

impl Upkeep {
    /// Forgets all that is over now, in small steps; `None` when another process does.
    pub async fn look(&self, rules: Retention) -> Result<Option<Forgotten>, StoreError> {
        let now = self.clock.now();
        let mut forgotten = Forgotten::default();
        loop {
            // Asked for with each step: a look may take long, and the duty passes on when this process freezes.
            if !self.store.take_duty(DUTY, &self.holder, HELD).await? {
                return Ok((forgotten != Forgotten::default()).then_some(forgotten));
            }
            let requests = self.requests.sweep(now, BATCH).await?;
            let letters = self
                .outbox
                .sweep(before(now, rules.dead_letters), BATCH)
                .await?;
            let batches = self
                .store
                .forget_streams(before(now, rules.streams), BATCH)
                .await?;
            let events = match rules.run_events {
                Some(stay) => self.store.forget_events(before(now, stay), BATCH).await?,
                None => 0,
            };
            forgotten.requests += requests;
            forgotten.letters += letters;
            forgotten.batches += batches;
            forgotten.events += events;
            let mut is_through = true;
            for walk in rules
                .histories
                .map(|rule| rule.walks(now))
                .unwrap_or_default()
            {
                is_through &= self.walk_on(&walk, &mut forgotten.checkpoints).await?;
            }
            if is_through && requests.max(letters).max(batches).max(events) < BATCH {
                return Ok(Some(forgotten));
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}

impl Upkeep {
    /// Goes a step of a walk, and says whether there is nothing left of it.
    async fn walk_on(&self, walk: &Walk, forgotten: &mut usize) -> Result<bool, StoreError> {
        let threads = self
            .store
            .changed_threads(&walk.name, walk.until, THREADS)
            .await?;
        let (mut left, mut seen) = (BATCH, None);
        for changed in &threads {
            let gone = self
                .checkpoints
                .forget_history(&changed.thread, &walk.keep, left)
                .await
                .map_err(|error| match error {
                    CheckpointError::Store(error) => error,
                    other => StoreError::Failed(other.to_string()),
                })?;
            *forgotten += gone;
            left -= gone.min(left);
            if left == 0 {
                // It may have more.
                break;
            }
            seen = Some(changed);
        }
        if let Some(seen) = seen {
            self.store.note_walked(&walk.name, seen).await?;
        }
        Ok(left > 0 && threads.len() < THREADS)
    }
}

/// The moment that lies `span` back.
fn before(now: DateTime<Utc>, span: TimeDelta) -> DateTime<Utc> {
    now.checked_sub_signed(span).unwrap_or(DateTime::UNIX_EPOCH)
}

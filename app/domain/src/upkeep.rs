//! What goes when nobody needs it any more: keys of requests, dead letters, and the journal of old runs if its operator says so.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use harness::clock::Clock;
use harness::runtime::runs::store::{RequestStore, StoreError, WebhookOutbox};

/// How long things stay that have no other end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// Calls of webhooks that nobody took.
    pub dead_letters: TimeDelta,
    /// Journals of runs that are over, from their end on; for ever when absent.
    pub run_events: Option<TimeDelta>,
}

/// What a look found to be over.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Forgotten {
    /// Keys of requests.
    pub requests: usize,
    /// Dead letters.
    pub letters: usize,
    /// Rows of the journal.
    pub events: usize,
}

/// What upkeep asks of a store.
#[async_trait]
pub trait UpkeepStore: Send + Sync + std::fmt::Debug {
    /// Gives a duty to `holder` for `ttl` by the store's clock, unless another one has it. Who has it has it for longer then.
    async fn take_duty(&self, duty: &str, holder: &str, ttl: Duration) -> Result<bool, StoreError>;

    /// Removes up to `most` rows of the journal of runs that were over at `before`, and says how many those were.
    async fn forget_events(&self, before: DateTime<Utc>, most: usize) -> Result<usize, StoreError>;
}

/// The duty of [`Upkeep`].
const DUTY: &str = "upkeep";
/// How long it is given for; a look that takes longer asks again.
const HELD: Duration = Duration::from_secs(120);
/// Rows that go in one transaction.
const BATCH: usize = 200;
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
            let letters = self.outbox.sweep(before(now, rules.dead_letters), BATCH).await?;
            let events = match rules.run_events {
                Some(stay) => self.store.forget_events(before(now, stay), BATCH).await?,
                None => 0,
            };
            forgotten.requests += requests;
            forgotten.letters += letters;
            forgotten.events += events;
            if requests.max(letters).max(events) < BATCH {
                return Ok(Some(forgotten));
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}

/// The moment that lies `span` back.
fn before(now: DateTime<Utc>, span: TimeDelta) -> DateTime<Utc> {
    now.checked_sub_signed(span).unwrap_or(DateTime::UNIX_EPOCH)
}

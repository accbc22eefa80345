//! Fills a database with many short threads and a long one.

use std::sync::Arc;

use anyhow::Context as _;
use chrono::{DateTime, TimeDelta, Utc};
use deerflow_domain::threads::{Created, NewThread, ThreadPatch, ThreadStore};
use deerflow_stores::{Database, SqlCheckpointer, SqlThreadStore};
use futures_util::{StreamExt as _, stream};
use harness::ids::{IdSource, SeededIds, ThreadId};
use harness::messages::Message;
use harness::runtime::actor_context::{DEFAULT_USER_ID, Owner};
use harness::runtime::checkpoint::{
    CheckpointMeta, CheckpointSource, CheckpointWrite, Checkpointer,
};
use harness::state::{StateUpdate, ThreadState};
use serde_json::{Map, Value, json};

/// The thread with a long conversation.
pub(super) const LONG_THREAD: &str = "00000000-0000-4000-8000-000000000001";
/// Number of concurrent writes: the database's writer groups waiting writes into one transaction.
const CONCURRENT_WRITES: usize = 512;

struct Seed {
    threads: SqlThreadStore,
    checkpoints: SqlCheckpointer,
    ids: SeededIds,
}

/// Creates the threads, unless the long one already exists.
pub(super) async fn fill(db: &Database, threads: usize, messages: usize) -> anyhow::Result<()> {
    let seed = Arc::new(Seed {
        threads: SqlThreadStore::new(db.clone()),
        checkpoints: SqlCheckpointer::new(db.clone()),
        ids: SeededIds::new(1),
    });
    let long = ThreadId::parse(LONG_THREAD)?;
    if seed.threads.get(&long, &Owner::None).await?.is_some() {
        return Ok(());
    }
    let mut created = stream::iter(0..threads)
        .map(|n| seed.short(n))
        .buffer_unordered(CONCURRENT_WRITES);
    while let Some(created) = created.next().await {
        created?;
    }
    seed.long(long, messages).await
}

fn moment(n: usize) -> DateTime<Utc> {
    let seconds = i64::try_from(n).unwrap_or_default();
    DateTime::from_timestamp(1_700_000_000, 0).unwrap_or_default() + TimeDelta::seconds(seconds)
}

fn metadata(n: usize) -> Map<String, Value> {
    let metadata = json!({
        "n": n, "thousandth": n % 1000, "thirtieth": n % 30, "common": true,
        "of": { "team": n % 1000, "name": "some team" }, "tags": ["x", format!("t{}", n % 7)],
    });
    metadata.as_object().cloned().unwrap_or_default()
}

impl Seed {
    async fn make(&self, thread_id: ThreadId, n: usize) -> anyhow::Result<ThreadId> {
        let new = NewThread {
            thread_id,
            user_id: Some(DEFAULT_USER_ID.to_owned()),
            assistant: Some("lead_agent".to_owned()),
            assistant_id: None,
            metadata: metadata(n),
            ttl: None,
            request: None,
            at: moment(n),
        };
        match self.threads.create(new).await? {
            Created::New(made) => Ok(made.thread_id),
            other => anyhow::bail!("not made: {other:?}"),
        }
    }

    async fn short(&self, n: usize) -> anyhow::Result<()> {
        let thread = self.make(self.ids.thread_id(), n).await?;
        let title = format!("Thread {n}");
        let mut state = ThreadState::default();
        let mut update = StateUpdate::messages([
            Message::human(format!("Question {n}")),
            Message::ai(format!("Answer {n}")),
        ]);
        update
            .channels
            .insert("title".to_owned(), title.as_str().into());
        state.apply(update, &self.ids)?;
        let write = CheckpointWrite::plan(self.meta(&thread, n, 0), &mut state, &mut 0);
        self.checkpoints.put(write).await?;
        let patch = ThreadPatch {
            title: Some(Some(title)),
            ..ThreadPatch::default()
        };
        self.threads
            .patch(&thread, patch, &Owner::None, moment(n))
            .await?
            .context("the thread is gone")?;
        Ok(())
    }

    /// Adds a checkpoint after each question and answer.
    async fn long(&self, thread: ThreadId, messages: usize) -> anyhow::Result<()> {
        let thread = self.make(thread, 0).await?;
        let (mut state, mut tail) = (ThreadState::default(), 0);
        for n in 0..messages / 2 {
            let text =
                |who: &str| format!("{who} {n}: {}", "some words of usual length ".repeat(6));
            state.apply(
                StateUpdate::messages([
                    Message::human(text("Question")),
                    Message::ai(text("Answer")),
                ]),
                &self.ids,
            )?;
            let write = CheckpointWrite::plan(self.meta(&thread, n, n), &mut state, &mut tail);
            self.checkpoints.put(write).await?;
        }
        Ok(())
    }

    fn meta(&self, thread: &ThreadId, n: usize, step: usize) -> CheckpointMeta {
        CheckpointMeta {
            checkpoint_id: self.ids.checkpoint_id(),
            thread_id: thread.clone(),
            parent_id: None,
            run_id: None,
            source: CheckpointSource::Loop,
            step: i64::try_from(step).unwrap_or_default(),
            next: Vec::new(),
            machine: None,
            metadata: Map::new(),
            created_at: moment(n),
        }
    }
}

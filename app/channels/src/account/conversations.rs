//! Tasks that handle the messages of conversations in order.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use deerflow_domain::channels::{ChannelStoreError, InboxEnd, InboxMessage, InboxState, Urgency};
use harness::runtime::fail_points;
use harness::runtime::tasks::TaskKind;

use super::retry::{AfterFailure, after_failure, has_too_many_claims};
use crate::bot::{Bot, LaneTask};
use crate::outbox;
use crate::turn::{self, ReceivedMessage, TurnError};

/// Messages read at once.
const READ: u64 = 21;
/// Pause after a store failure.
const STORE_PAUSE: Duration = Duration::from_secs(1);

type Conversation = LaneTask<(String, Urgency)>;

/// Notifies the task of a conversation, and starts it if none runs.
pub(crate) fn wake(bot: &Arc<Bot>, conversation: String, urgency: Urgency) {
    if bot.stop.is_cancelled() {
        return;
    }
    if let Some(task) = bot.conversations.wake((conversation, urgency)) {
        let bot = bot.clone();
        let tasks = bot.hub.tasks.clone();
        tasks.spawn(TaskKind::Service, "conversation", async move {
            let stop = bot.stop.clone();
            tokio::select! {
                () = work(&bot, &task) => {}
                () = stop.cancelled() => {}
            }
        });
    }
}

/// Handles messages until none is waiting.
async fn work(bot: &Arc<Bot>, task: &Conversation) {
    loop {
        task.begin_reading();
        match step(bot, task).await {
            Ok(Step::Done) => {}
            Ok(Step::WaitUntil(at)) => {
                let delay = (at - bot.hub.clock.now()).to_std().unwrap_or_default();
                tokio::select! {
                    () = tokio::time::sleep(delay) => {}
                    () = task.lane.notified() => {}
                }
            }
            Ok(Step::Empty) => {
                if task.try_end() {
                    return;
                }
            }
            Err(error) => {
                bot.check_fence(&error);
                tracing::warn!(%error, account = %bot.claim.account, "a conversation cannot be read or written, retrying");
                tokio::time::sleep(STORE_PAUSE).await;
            }
        }
    }
}

enum Step {
    /// A group of messages was handled or postponed.
    Done,
    /// The next message is due at this time.
    WaitUntil(DateTime<Utc>),
    /// No message is waiting.
    Empty,
}

async fn step(bot: &Arc<Bot>, task: &Conversation) -> Result<Step, ChannelStoreError> {
    let (conversation, urgency) = &task.key;
    // A stop does not wait behind the answer that it stops.
    let _permit = match urgency {
        Urgency::InOrder => bot.handling.acquire().await.ok(),
        Urgency::Immediate => None,
    };
    // A chat is not renamed between the read of its rows and their begin.
    let beginning = bot.beginning.read().await;
    let inbox = &bot.hub.stores.inbox;
    let rows = inbox
        .waiting(&bot.claim.account, conversation, *urgency, READ)
        .await?;
    let now = bot.hub.clock.now();
    let Some(first) = rows.first() else {
        return Ok(Step::Empty);
    };
    if let Some(due) = first.not_before.filter(|due| *due > now) {
        return Ok(Step::WaitUntil(due));
    }
    let first_id = first.id;
    if has_too_many_claims(first) {
        set_aside(
            bot,
            first.clone(),
            "its handling ended the process repeatedly",
        )
        .await?;
        return Ok(Step::Done);
    }
    let mut received = Vec::new();
    for row in rows {
        match turn::stored_event(&row) {
            Ok(event) => received.push(ReceivedMessage { row, event }),
            Err(error) if row.id == first_id => {
                let end = InboxEnd {
                    state: InboxState::SetAside,
                    note: Some(format!("its stored event cannot be read: {error}")),
                };
                bot.end(&[row.id], end, Vec::new()).await?;
                return Ok(Step::Done);
            }
            Err(_) => break,
        }
    }
    let group = match turn::first_group(received, now) {
        Ok(group) => group,
        Err(until) => return Ok(Step::WaitUntil(until)),
    };
    let ids: Vec<_> = group.iter().map(|received| received.row.id).collect();
    let rows: Vec<InboxMessage> = group.iter().map(|received| received.row.clone()).collect();
    inbox.begin(&bot.claim, &ids).await?;
    drop(beginning);
    fail_points::pass("channel.begun");
    match turn::handle(bot, group, &task.lane).await {
        Ok(chats) => chats.into_iter().for_each(|chat| outbox::wake(bot, chat)),
        Err(TurnError::Stopped) => bot.stop.cancelled().await,
        Err(TurnError::Store(error)) => return Err(error),
        Err(TurnError::QuotaExceeded(exceeded)) => {
            failed(bot, rows, &exceeded.to_string()).await?;
        }
        Err(TurnError::Retry(note)) => failed(bot, rows, &note).await?,
    }
    Ok(Step::Done)
}

async fn failed(
    bot: &Arc<Bot>,
    rows: Vec<InboxMessage>,
    note: &str,
) -> Result<(), ChannelStoreError> {
    let now = bot.hub.clock.now();
    let Some(first) = rows.first() else {
        return Ok(());
    };
    tracing::warn!(account = %bot.claim.account, row = %first.id, failures = first.failures + 1, note, "a message could not be handled");
    match after_failure(first, now) {
        AfterFailure::RetryAt(at) => {
            let ids: Vec<_> = rows.iter().map(|row| row.id).collect();
            let inbox = &bot.hub.stores.inbox;
            inbox.fail(&bot.claim, &ids, note, at, now).await
        }
        AfterFailure::SetAside => {
            for row in rows {
                set_aside(bot, row, note).await?;
            }
            Ok(())
        }
    }
}

async fn set_aside(bot: &Arc<Bot>, row: InboxMessage, note: &str) -> Result<(), ChannelStoreError> {
    tracing::error!(account = %bot.claim.account, row = %row.id, note, "a message is set aside");
    let replies = turn::set_aside_notice(bot, &row);
    let end = InboxEnd {
        state: InboxState::SetAside,
        note: Some(note.to_owned()),
    };
    bot.end(&[row.id], end, replies).await?;
    outbox::wake(bot, row.key.chat);
    Ok(())
}

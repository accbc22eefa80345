//! Tasks that send the messages of chats in order.

use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;
use deerflow_domain::channels::{ChannelStoreError, NewOutgoing, Outgoing};
use harness::artifacts::ArtifactError;
use harness::client::ClientError;
use harness::ids::ThreadId;
use harness::runtime::actor_context::scope;
use harness::runtime::fail_points;
use harness::runtime::tasks::TaskKind;
use serde_json::Value;
use tokio::time::{Instant, sleep_until};
use uuid::Uuid;

use super::retry::{AfterSend, after_send};
use crate::bot::{Bot, LaneTask, Purpose, close_lane, show};
use crate::measures;
use crate::platform::{
    Content, Delivery, FileBody, OUTPUTS, OutgoingMessage, Part, PlatformError, Receipt, Sent,
    SinkError,
};
use crate::words;

/// Pause after a store failure.
const STORE_PAUSE: Duration = Duration::from_secs(1);
/// Timeout of one call, larger than those of the adapters.
const SEND_TIMEOUT: Duration = Duration::from_secs(300);
/// Timeout of the call that distinguishes an outage from the failure of one message.
const PROBE_TIMEOUT: Duration = Duration::from_secs(10);

/// Notifies the task of a chat, and starts it if none runs.
pub(crate) fn wake(bot: &Arc<Bot>, chat: String) {
    if bot.stop.is_cancelled() {
        return;
    }
    if let Some(task) = bot.chats.wake(chat) {
        let bot = bot.clone();
        let tasks = bot.hub.tasks.clone();
        let sending = bot.sending.token();
        tasks.spawn(TaskKind::Service, "outbox of a chat", async move {
            work(&bot, &task).await;
            drop(sending);
        });
    }
}

/// Sends messages until none is pending. A stop ends every wait, but not a call in progress: its
/// result must be recorded, or the next holder repeats it.
async fn work(bot: &Arc<Bot>, task: &LaneTask<String>) {
    while !bot.stop.is_cancelled() {
        task.begin_reading();
        let outbox = &bot.hub.stores.outbox;
        let next = outbox.next(&bot.claim.account, &task.key).await;
        let result = match next {
            Ok(None) => {
                if task.try_end() {
                    return;
                }
                continue;
            }
            Ok(Some(row)) => send_when_due(bot, row, task).await,
            Err(error) => Err(error),
        };
        if let Err(error) = result {
            bot.check_fence(&error);
            tracing::warn!(%error, account = %bot.claim.account, "the outbox cannot be read or written, retrying");
            tokio::select! {
                () = tokio::time::sleep(STORE_PAUSE) => {}
                () = bot.stop.cancelled() => {}
            }
        }
    }
}

async fn send_when_due(
    bot: &Arc<Bot>,
    row: Outgoing,
    task: &LaneTask<String>,
) -> Result<(), ChannelStoreError> {
    let delay = (row.not_before - bot.hub.clock.now())
        .to_std()
        .unwrap_or_default();
    if !delay.is_zero() {
        tokio::select! {
            () = tokio::time::sleep(delay) => {}
            () = task.lane.notified() => {}
            () = bot.stop.cancelled() => {}
        }
        return Ok(());
    }
    let id = row.message.id;
    let message = match message_of(&row) {
        Ok(message) => message,
        Err(error) => {
            let note = format!("its stored body cannot be read: {error}");
            return bury(bot, &row, &note).await;
        }
    };
    let chat = &task.key;
    let is_group = !message.target.is_direct();
    let permit = loop {
        let now = Instant::now();
        let at = match bot.pacing.take(chat, is_group, Purpose::Final, now) {
            Ok(permit) => break permit,
            Err(at) => at,
        };
        tokio::select! {
            () = sleep_until(at) => {}
            () = bot.stop.cancelled() => return Ok(()),
        }
    };
    let outbox = &bot.hub.stores.outbox;
    outbox.begin(&bot.claim, id).await?;
    fail_points::pass("channel.sending");
    let mut delivery = Delivery {
        id,
        attempt: row.attempts.saturating_add(1),
        progress: row.progress.clone(),
    };
    let sent = match read_file(bot, &message.content).await {
        Ok(_) if !bot.is_serving() => Err(SinkError::Fenced.into()),
        Ok(file) => {
            let sending = bot.platform.send(&message, file, &mut delivery);
            tokio::time::timeout(SEND_TIMEOUT, sending)
                .await
                .unwrap_or_else(|_| {
                    Err(PlatformError::Unavailable("the call timed out".to_owned()))
                })
        }
        Err(error) => Err(error),
    };
    drop(permit);
    match sent {
        Ok(Sent { ids }) => {
            fail_points::pass("channel.sent");
            record_sent(bot, id, ids).await?;
            fail_points::pass("channel.delivered");
            if message.last {
                show(bot, &message.target, Receipt::Done);
            }
            Ok(())
        }
        Err(error) => {
            measures::failed(bot.provider, &error);
            not_sent(bot, &row, &error, delivery).await
        }
    }
}

/// Records that a message was sent. A store failure is no reason to send it again, so the record is
/// repeated until the service stops.
async fn record_sent(bot: &Bot, id: Uuid, ids: Vec<String>) -> Result<(), ChannelStoreError> {
    let outbox = &bot.hub.stores.outbox;
    loop {
        let now = bot.hub.clock.now();
        match outbox.sent(&bot.claim, id, ids.clone(), now).await {
            Err(error) if error != ChannelStoreError::Fenced && !bot.stop.is_cancelled() => {
                tracing::warn!(%error, account = %bot.claim.account, message = %id, "a sent message cannot be recorded, retrying");
                tokio::select! {
                    () = tokio::time::sleep(STORE_PAUSE) => {}
                    // A last attempt follows.
                    () = bot.stop.cancelled() => {}
                }
            }
            recorded => return recorded,
        }
    }
}

async fn not_sent(
    bot: &Arc<Bot>,
    row: &Outgoing,
    error: &PlatformError,
    delivery: Delivery,
) -> Result<(), ChannelStoreError> {
    let (id, chat) = (row.message.id, &row.message.chat);
    let outbox = &bot.hub.stores.outbox;
    let file = file_name(row);
    let mut after = after_send(row, file.is_some(), error, bot.hub.clock.now());
    if let AfterSend::Abandon { delay } = after {
        after = if is_reachable(bot).await {
            AfterSend::Bury
        } else {
            AfterSend::Retry {
                delay,
                counts: true,
            }
        };
    }
    let now = bot.hub.clock.now();
    match after {
        AfterSend::Stop => {
            bot.stop.cancel();
            Ok(())
        }
        AfterSend::Bury | AfterSend::Abandon { .. } => {
            if let Some(name) = file {
                let notice = unsent_file(row, &name, error);
                outbox.enqueue(&bot.claim, notice, now).await?;
            }
            bury(bot, row, &error.to_string()).await
        }
        AfterSend::Retry { delay, counts } => {
            close_lane(bot, chat, error).await;
            tracing::warn!(%error, account = %bot.claim.account, message = %id, delay_ms = delay.as_millis() as u64, "a message was not sent, retrying");
            if delivery.progress != row.progress {
                outbox
                    .save_progress(&bot.claim, id, delivery.progress)
                    .await?;
            }
            let at = now + TimeDelta::from_std(delay).unwrap_or(TimeDelta::hours(1));
            outbox
                .retry(&bot.claim, id, &error.to_string(), at, counts)
                .await
        }
    }
}

/// Reports whether the platform answers another call. During an outage no message is abandoned.
async fn is_reachable(bot: &Bot) -> bool {
    let asked = tokio::time::timeout(PROBE_TIMEOUT, bot.platform.identify()).await;
    matches!(asked, Ok(Ok(_)))
}

async fn bury(bot: &Arc<Bot>, row: &Outgoing, note: &str) -> Result<(), ChannelStoreError> {
    tracing::error!(account = %bot.claim.account, message = %row.message.id, note, "a message became a dead letter");
    let now = bot.hub.clock.now();
    let outbox = &bot.hub.stores.outbox;
    outbox.bury(&bot.claim, row.message.id, note, now).await
}

/// Reads the message of a row. If the chat has got another id since, ids of messages in the former
/// one, such as that of the live message, have no meaning.
fn message_of(row: &Outgoing) -> Result<OutgoingMessage, serde_json::Error> {
    let mut message: OutgoingMessage = serde_json::from_value(row.message.body.clone())?;
    let chat = &mut message.target.chat.id;
    if *chat != row.message.chat {
        chat.clone_from(&row.message.chat);
        message.target.reply_to = None;
        message.live = Value::Null;
    }
    Ok(message)
}

/// Reads the file of a message from the outputs of its thread.
async fn read_file(bot: &Bot, content: &Content) -> Result<Option<FileBody>, PlatformError> {
    match content {
        Content::Text(_) | Content::Buttons { .. } => Ok(None),
        Content::TextFile { name, text } => Ok(Some(FileBody {
            name: name.clone(),
            media_type: "text/markdown; charset=utf-8".to_owned(),
            bytes: text.clone().into(),
        })),
        Content::File {
            user_id,
            thread_id,
            path,
        } => {
            let refused = |error: &dyn std::fmt::Display| {
                PlatformError::Refused(format!("the file cannot be read: {error}"))
            };
            if !path.starts_with(OUTPUTS) {
                return Err(refused(&"it is not in the outputs"));
            }
            let thread = ThreadId::parse(thread_id).map_err(|error| refused(&error))?;
            let read = bot.hub.client.get_artifact(&thread, path);
            let (bytes, media_type) =
                scope(bot.actor(user_id), read)
                    .await
                    .map_err(|error| match error {
                        ClientError::Artifact(ArtifactError::File(error)) => {
                            PlatformError::Unavailable(format!("the file cannot be read: {error}"))
                        }
                        error => refused(&error),
                    })?;
            let limits = bot.platform.abilities().files;
            if limits.is_some_and(|limits| bytes.len() as u64 > limits.send) {
                return Err(PlatformError::Refused("the file is too large".to_owned()));
            }
            let name = path.rsplit('/').next().unwrap_or("file").to_owned();
            Ok(Some(FileBody {
                name,
                media_type,
                bytes: bytes.into(),
            }))
        }
    }
}

/// Returns the name of a row's file.
fn file_name(row: &Outgoing) -> Option<String> {
    let message: OutgoingMessage = serde_json::from_value(row.message.body.clone()).ok()?;
    match message.content {
        Content::File { path, .. } => path.rsplit('/').next().map(str::to_owned),
        Content::TextFile { name, .. } => Some(name),
        Content::Text(_) | Content::Buttons { .. } => None,
    }
}

/// Builds the text that replaces a file which cannot be sent.
fn unsent_file(row: &Outgoing, name: &str, error: &PlatformError) -> Vec<NewOutgoing> {
    let text = words::unsent_file(name, &error.to_string());
    let Ok(message) = serde_json::from_value::<OutgoingMessage>(row.message.body.clone()) else {
        return Vec::new();
    };
    let message = OutgoingMessage {
        content: Content::Text(Part {
            markup: text.clone(),
            plain: text,
        }),
        ..message
    };
    let id = Uuid::new_v5(&row.message.id, b"unsent");
    let body = serde_json::to_value(&message).unwrap_or_default();
    vec![NewOutgoing {
        id,
        body,
        ..row.message.clone()
    }]
}

//! Live message of an answer in progress.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio::time::{Instant, sleep_until, timeout};

use crate::bot::{Bot, Purpose, close_lane};
use crate::measures;
use crate::platform::{LivePacing, LiveReply, PlatformError};

/// Delay after a failed update.
const FAILURE_DELAY: Duration = Duration::from_secs(5);
/// Time that the final text waits for an update in progress.
const FINISH_TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum time of each step that finds an earlier live message.
const RECOVERY_TIMEOUT: Duration = Duration::from_secs(10);

type Update = BoxFuture<'static, (LiveReply, Result<(), PlatformError>)>;

/// Shows the newest text of an answer at the pace of the platform. Each update replaces the one
/// before; none is queued.
pub(super) struct LiveView {
    bot: Arc<Bot>,
    pacing: Option<LivePacing>,
    /// Reply between updates; `None` during one.
    reply: Option<LiveReply>,
    update: Option<Update>,
    /// Newest known state.
    state: Value,
    text: String,
    shown: String,
    next_at: Instant,
    shown_at: Instant,
    /// `true` if the live message exists or was prepared.
    is_prepared: bool,
}

impl LiveView {
    pub(super) fn new(bot: Arc<Bot>, reply: LiveReply) -> Self {
        let (now, pacing) = (Instant::now(), bot.platform.abilities().live);
        let interval = pacing.map_or(Duration::ZERO, |pacing| {
            if reply.target.is_direct() {
                pacing.direct
            } else {
                pacing.group
            }
        });
        Self {
            pacing,
            is_prepared: !reply.state.is_null(),
            state: reply.state.clone(),
            bot,
            reply: Some(reply),
            update: None,
            text: String::new(),
            shown: String::new(),
            // An answer that is complete at once needs no update, which would delay it.
            next_at: now + interval / 2,
            shown_at: now,
        }
    }

    /// Replaces the text by the first part of a new message.
    pub(super) fn restart(&mut self, text: &str) {
        self.text.clear();
        self.text.push_str(text);
    }

    /// Appends a text.
    pub(super) fn push(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// Performs the next step: starts an update when one is due, and waits for its end. Returns the
    /// new state if it changed. Never returns if there is nothing to do; it is cancel-safe.
    pub(super) async fn step(&mut self) -> Option<Value> {
        loop {
            if let Some(update) = &mut self.update {
                let (reply, result) = update.await;
                self.update = None;
                return self.updated(reply, result);
            }
            let Some(pacing) = self.pacing else {
                return std::future::pending().await;
            };
            let keep_alive = pacing
                .keep_alive
                .filter(|_| !self.shown.is_empty())
                .map(|interval| self.shown_at + interval);
            let due = if self.text != self.shown && !self.text.trim().is_empty() {
                self.next_at
            } else if let Some(at) = keep_alive {
                at.max(self.next_at)
            } else {
                return std::future::pending().await;
            };
            sleep_until(due).await;
            self.start(pacing);
        }
    }

    fn start(&mut self, pacing: LivePacing) {
        let now = Instant::now();
        let Some(reply) = &self.reply else {
            return;
        };
        if !self.bot.is_serving() {
            self.pacing = None;
            return;
        }
        let (chat, is_group) = (&reply.target.chat.id, !reply.target.is_direct());
        if !self.is_prepared && !self.bot.pacing.is_closed(chat, now) {
            self.is_prepared = true;
            return self.call(None);
        }
        if let Err(at) = self.bot.pacing.take(chat, is_group, Purpose::Live, now) {
            self.next_at = at;
            return;
        }
        let interval = if is_group {
            pacing.group
        } else {
            pacing.direct
        };
        (self.next_at, self.shown_at) = (now + interval, now);
        self.shown.clone_from(&self.text);
        self.call(Some(self.text.clone()));
    }

    /// Starts an update with a text, or the preparation of the live message. The first update
    /// follows when the state of the preparation is stored.
    fn call(&mut self, text: Option<String>) {
        let Some(mut reply) = self.reply.take() else {
            return;
        };
        let bot = self.bot.clone();
        let call = async move {
            let result = match &text {
                Some(text) => bot.platform.update_live(&mut reply, text).await,
                None => bot.platform.prepare_live(&mut reply).await,
            };
            if let Err(error) = &result {
                close_lane(&bot, &reply.target.chat.id, error).await;
            }
            (reply, result)
        };
        self.update = Some(call.boxed());
    }

    fn updated(&mut self, reply: LiveReply, result: Result<(), PlatformError>) -> Option<Value> {
        self.state.clone_from(&reply.state);
        if let Err(error) = result {
            measures::failed(self.bot.provider, &error);
            tracing::debug!(%error, account = %self.bot.claim.account, "a live update failed");
            let now = Instant::now();
            match error {
                // The closed lane delays the next update.
                PlatformError::RateLimited { .. } => {}
                PlatformError::Refused(_) | PlatformError::Rejected(_) => self.pacing = None,
                _ => self.next_at = now + FAILURE_DELAY,
            }
            self.shown.clear();
        }
        self.reply = Some(reply);
        Some(self.state.clone())
    }

    /// Waits briefly for an update in progress and returns the newest known state.
    pub(super) async fn finish(mut self) -> Value {
        if let Some(update) = self.update.take()
            && let Ok((reply, _)) = timeout(FINISH_TIMEOUT, update).await
        {
            return reply.state;
        }
        self.state
    }
}

/// Finds the live message that an earlier attempt may have begun without recording it, or begins one,
/// and returns its state. Null on a platform that cannot find it.
pub(super) async fn recover(bot: &Bot, mut reply: LiveReply, text: &str) -> Value {
    if !bot.platform.finds_live() || text.trim().is_empty() {
        return Value::Null;
    }
    let (chat, is_group) = (reply.target.chat.id.clone(), !reply.target.is_direct());
    let end = Instant::now() + RECOVERY_TIMEOUT;
    while let Err(at) = bot
        .pacing
        .take(&chat, is_group, Purpose::Live, Instant::now())
    {
        if at > end {
            return Value::Null;
        }
        sleep_until(at).await;
    }
    if !bot.is_serving() {
        return Value::Null;
    }
    let updating = bot.platform.update_live(&mut reply, text);
    let updated = timeout(RECOVERY_TIMEOUT, updating).await;
    if let Ok(Err(error)) = updated {
        close_lane(bot, &chat, &error).await;
        tracing::debug!(%error, account = %bot.claim.account, "a live message was not recovered");
    }
    reply.state
}

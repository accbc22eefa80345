//! Live message of an answer in progress.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio::time::{Instant, timeout};

use crate::bot::{Bot, Permit, Purpose, close_lane};
use crate::measures;
use crate::platform::{LivePacing, LiveReply, PlatformError};

/// Delay after a failed update.
const FAILURE_DELAY: Duration = Duration::from_secs(5);
/// Time that the final text waits for an update in progress.
const FINISH_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum time for finding a live message whose state was lost, and delay between attempts. The
/// limits of a platform may delay the search by minutes; without it the answer may be repeated.
const RECOVERY_TIMEOUT: Duration = Duration::from_secs(180);
const RECOVERY_DELAY: Duration = Duration::from_secs(1);
/// Delay of an update that has to wait for an earlier answer, or for the lease.
const POSTPONEMENT: Duration = Duration::from_millis(500);

/// Result of an update.
#[derive(Debug)]
enum Updated {
    Shown,
    /// The live message can be shown; it is not visible yet.
    Prepared,
    /// Earlier messages of the chat are not sent yet, or another node may serve the account.
    Postponed,
    Failed(PlatformError),
}

type Update = BoxFuture<'static, (LiveReply, Updated)>;

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
    /// `true` until people see the live message.
    is_first: bool,
    /// `true` if a live message may exist whose state is unknown: the answer to its creation was
    /// lost, or an earlier process did not store it.
    is_lost: bool,
}

impl LiveView {
    /// Creates the view of an answer. `resumed` is `true` if an earlier process may have begun it.
    pub(super) fn new(bot: Arc<Bot>, reply: LiveReply, resumed: bool) -> Self {
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
            is_first: reply.state.is_null(),
            state: reply.state.clone(),
            bot,
            reply: Some(reply),
            update: None,
            text: String::new(),
            shown: String::new(),
            // An answer that is complete at once needs no update, which would delay it.
            next_at: now + interval / 2,
            shown_at: now,
            is_lost: resumed,
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
            tokio::time::sleep_until(due).await;
            self.start(pacing);
        }
    }

    fn start(&mut self, pacing: LivePacing) {
        let now = Instant::now();
        let Some(reply) = &self.reply else {
            return;
        };
        if self.bot.stop.is_cancelled() {
            self.pacing = None;
            return;
        }
        // A late renewal of the lease may still succeed.
        if !self.bot.is_serving() {
            self.next_at = now + POSTPONEMENT;
            return;
        }
        let (chat, is_group) = (&reply.target.chat.id, !reply.target.is_direct());
        if !self.is_prepared && !self.bot.pacing.is_closed(chat, now) {
            return self.prepare(now);
        }
        let permit = match self.bot.pacing.take(chat, is_group, Purpose::Live, now) {
            Ok(permit) => permit,
            Err(at) => {
                self.next_at = at;
                return;
            }
        };
        let interval = if is_group {
            pacing.group
        } else {
            pacing.direct
        };
        (self.next_at, self.shown_at) = (now + interval, now);
        self.shown.clone_from(&self.text);
        self.call(Some(self.text.clone()), Some(permit));
    }

    fn prepare(&mut self, now: Instant) {
        let counts = self.bot.platform.prepares_live();
        let permit = counts.then(|| self.bot.pacing.take_preparation(now));
        match permit.transpose() {
            Ok(permit) => {
                self.is_prepared = true;
                self.call(None, permit);
            }
            Err(at) => self.next_at = at,
        }
    }

    /// Starts an update with a text, or the preparation of the live message. The first update
    /// follows when the state of the preparation is stored.
    fn call(&mut self, text: Option<String>, permit: Option<Permit>) {
        let Some(mut reply) = self.reply.take() else {
            return;
        };
        reply.may_exist = self.is_lost;
        let (bot, is_first) = (self.bot.clone(), self.is_first);
        let call = async move {
            // Until a refusal has closed the lane, no other call of the chat is permitted.
            let _permit = permit;
            let is_early = is_first && has_earlier(&bot, &reply).await;
            if is_early || !bot.is_serving() {
                return (reply, Updated::Postponed);
            }
            let result = match &text {
                Some(text) => bot.platform.update_live(&mut reply, text).await,
                None => bot.platform.prepare_live(&mut reply).await,
            };
            let updated = match result {
                Ok(()) if text.is_some() => Updated::Shown,
                Ok(()) => Updated::Prepared,
                Err(error) => {
                    close_lane(&bot, &reply.target.chat.id, &error).await;
                    Updated::Failed(error)
                }
            };
            (reply, updated)
        };
        self.update = Some(call.boxed());
    }

    fn updated(&mut self, reply: LiveReply, updated: Updated) -> Option<Value> {
        self.state.clone_from(&reply.state);
        match updated {
            Updated::Prepared => {}
            Updated::Shown => (self.is_first, self.is_lost) = (false, false),
            Updated::Postponed => {
                self.next_at = self.next_at.max(Instant::now() + POSTPONEMENT);
                self.is_prepared = !self.state.is_null();
                self.shown.clear();
            }
            Updated::Failed(error) => self.failed(&error),
        }
        self.reply = Some(reply);
        Some(self.state.clone())
    }

    fn failed(&mut self, error: &PlatformError) {
        // An update without a stored state could show a message that nothing finds again.
        self.is_prepared &= !self.state.is_null();
        match error {
            PlatformError::Unavailable(_) => self.is_lost = true,
            PlatformError::LiveExpired(_) => self.is_lost = false,
            _ => {}
        }
        measures::failed(self.bot.provider, error);
        tracing::debug!(%error, account = %self.bot.claim.account, "a live update failed");
        match error {
            // The closed lane delays the next update.
            PlatformError::RateLimited { .. } => {}
            PlatformError::Refused(_) | PlatformError::Rejected(_) => self.pacing = None,
            _ => self.next_at = Instant::now() + FAILURE_DELAY,
        }
        self.shown.clear();
    }

    /// Waits briefly for an update in progress and returns the newest known state. A live message
    /// that may exist is found by one more update, with the final text: its key is the same. Where
    /// a live message is prepared first, none exists without a stored state, and the final text
    /// completes the one that is prepared now. On a platform that cannot find it, it stays as it is.
    pub(super) async fn finish(mut self, text: &str) -> Value {
        let _ = timeout(FINISH_TIMEOUT, self.end_update()).await;
        self.restart(text);
        // What is not found in time stays as it is; the final text is a message of its own then.
        let _ = timeout(RECOVERY_TIMEOUT, self.recover()).await;
        self.state
    }

    async fn end_update(&mut self) {
        if let Some(update) = &mut self.update {
            let (reply, updated) = update.await;
            self.update = None;
            self.updated(reply, updated);
        }
    }

    async fn recover(&mut self) {
        if !self.bot.platform.finds_live() {
            return;
        }
        while let Some(pacing) = self.pacing
            && self.is_lost
            && self.state.is_null()
            && !self.text.trim().is_empty()
        {
            self.next_at = self.next_at.min(Instant::now() + RECOVERY_DELAY);
            tokio::time::sleep_until(self.next_at).await;
            self.start(pacing);
            self.end_update().await;
        }
    }
}

/// Reports whether messages of the chat, such as the answer to an earlier question, are not sent
/// yet. A new live message would appear before them.
async fn has_earlier(bot: &Bot, reply: &LiveReply) -> bool {
    let (outbox, account) = (&bot.hub.stores.outbox, &bot.claim.account);
    let next = outbox.next(account, &reply.target.chat.id).await;
    !matches!(next, Ok(None))
}

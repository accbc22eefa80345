//! Holds the lease of an account and serves it until the lease or the configuration ends.

use std::sync::Arc;
use std::time::Duration;

use deerflow_domain::channels::{Account, ChannelState, ChannelStoreError};
use harness::runtime::fail_points;
use harness::runtime::tasks::TaskKind;
use parking_lot::Mutex;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::conversations;
use super::lease::{SAFE_PERIOD, acquire, renew};
use super::sink::InboxSink;
use crate::bot::{ActiveTurns, Bot, Exchanges, Hub, Pacing, StatusCell, restore_lanes};
use crate::commands::COMMANDS;
use crate::config::Rules;
use crate::measures::{self, Backlog};
use crate::outbox;
use crate::platform::{Identity, Platform, PlatformError, SinkError};

/// Interval of polls for work whose wake-up signal was lost, or that another process requested.
const POLL: Duration = Duration::from_secs(5);
/// Delays before a reconnection: the first, and the maximum.
const FIRST_DELAY: Duration = Duration::from_millis(500);
const MAX_DELAY: Duration = Duration::from_secs(30);
/// Duration of a connection after which the delays start again.
const STABLE: Duration = Duration::from_secs(60);
/// Delays before a reconnection after another connection took over. The first is short, because it
/// may be the last call of the former holder; the last one repeats. Connecting ends the other
/// connection on some platforms, so the two must not fight.
const DISPLACED: [Duration; 4] = [
    Duration::from_secs(5),
    Duration::from_secs(60),
    Duration::from_secs(600),
    Duration::from_secs(3_600),
];
/// Duration of a connection after which these delays start again.
const UNDISPUTED: Duration = Duration::from_secs(1_800);
/// Time after a stop for calls and renewals in progress to end, and for the listener to close its
/// connection, before the lease is released. After [`SAFE_PERIOD`] it fits into the lease.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(1_900);

/// Reason why the service of a channel ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum HolderEnd {
    /// It was stopped.
    Stopped,
    /// The platform rejected the bot; a restart would not help without another configuration.
    Rejected(String),
}

/// Serves the account of a bot while this node holds its lease, and waits for the lease otherwise.
pub(crate) async fn serve_account(
    hub: &Arc<Hub>,
    provider: &'static str,
    platform: &Arc<dyn Platform>,
    rules: &Arc<Rules>,
    status: &Arc<StatusCell>,
    stop: &CancellationToken,
) -> HolderEnd {
    let identity = match identify(provider, platform, status, stop).await {
        Ok(identity) => identity,
        Err(end) => return end,
    };
    status.identified(&identity);
    let account = Account::new(provider, &identity.account);
    // Closed lanes stay closed when the account is acquired again.
    let pacing = Arc::new(Pacing::new(platform.abilities().rates));
    let (conversations, threads) = (&*hub.stores.conversations, &*hub.threads);
    tokio::select! {
        () = hub.importer.import(&account, conversations, threads, hub.clock.now()) => {}
        () = stop.cancelled() => return HolderEnd::Stopped,
    }
    loop {
        let Some((claim, acquired)) = acquire(hub, &account, status, stop).await else {
            return HolderEnd::Stopped;
        };
        fail_points::pass("channel.leased");
        tracing::info!(%account, epoch = claim.epoch, "serving the account");
        let bot = Arc::new(Bot {
            hub: hub.clone(),
            provider,
            platform: platform.clone(),
            pacing: pacing.clone(),
            beginning: Default::default(),
            handling: hub.handling.permits(rules.max_concurrency),
            sending: TaskTracker::new(),
            claim: claim.clone(),
            rules: rules.clone(),
            conversations: Default::default(),
            chats: Default::default(),
            active: ActiveTurns::default(),
            exchanges: Exchanges::new(rules.max_exchanges_per_minute),
            valid_until: Mutex::new(acquired + SAFE_PERIOD),
            stop: stop.child_token(),
        });
        let end = serve(&bot, status).await;
        let released = hub.stores.leases.release(&claim, hub.clock.now()).await;
        fail_points::pass("channel.released");
        if let Err(error) = released {
            tracing::warn!(%error, %account, "the account's lease cannot be released, it expires");
        }
        if let Some(end) = end {
            return end;
        }
        if stop.is_cancelled() {
            return HolderEnd::Stopped;
        }
        tracing::warn!(%account, "this node no longer serves the account");
    }
}

/// Asks the platform who the bot is, until it answers.
async fn identify(
    provider: &'static str,
    platform: &Arc<dyn Platform>,
    status: &StatusCell,
    stop: &CancellationToken,
) -> Result<Identity, HolderEnd> {
    status.set(ChannelState::Connecting);
    let mut delay = FIRST_DELAY;
    loop {
        let asked = tokio::select! {
            asked = platform.identify() => asked,
            () = stop.cancelled() => return Err(HolderEnd::Stopped),
        };
        if let Err(error) = &asked {
            measures::failed(provider, error);
        }
        let wait = match asked {
            Ok(identity) => {
                for warning in &identity.warnings {
                    tracing::warn!(channel = provider, "{warning}");
                }
                return Ok(identity);
            }
            Err(PlatformError::Rejected(reason)) => return Err(HolderEnd::Rejected(reason)),
            Err(PlatformError::RateLimited { retry_after, .. }) => retry_after,
            Err(error) => {
                tracing::warn!(%error, channel = provider, "the platform cannot be reached, retrying");
                delay
            }
        };
        delay = (delay * 2).min(MAX_DELAY);
        tokio::select! {
            () = sleep(wait) => {}
            () = stop.cancelled() => return Err(HolderEnd::Stopped),
        }
    }
}

/// Serves an account until its end, and ends all its work then. `None` means that the lease was
/// lost, or `stop`.
async fn serve(bot: &Arc<Bot>, status: &Arc<StatusCell>) -> Option<HolderEnd> {
    let renewing = {
        let bot = bot.clone();
        let tasks = bot.hub.tasks.clone();
        tasks.spawn(TaskKind::Control, "lease of an account", async move {
            renew(&bot).await;
        })
    };
    let serving = async {
        let end = connections(bot, status).await;
        bot.stop.cancel();
        end
    };
    let ending = async {
        bot.stop.cancelled().await;
        bot.sending.close();
        // The renewals in progress end before the release.
        let ended = async { tokio::join!(bot.sending.wait(), renewing) };
        if timeout(CLOSE_TIMEOUT, ended).await.is_err() {
            tracing::warn!(account = %bot.claim.account, "a call of the account did not end in time");
        }
    };
    let (end, ()) = tokio::join!(serving, ending);
    measures::backlog(bot.provider, Backlog::default());
    end
}

/// Connects again and again, and performs the work of the account meanwhile, until the platform
/// rejects the bot or the service stops.
async fn connections(bot: &Arc<Bot>, status: &Arc<StatusCell>) -> Option<HolderEnd> {
    if !restore(bot).await {
        return None;
    }
    let working = async {
        tokio::join!(poll(bot), register_commands(bot));
        // A stop ends this work at once. The listener still closes its connection.
        std::future::pending().await
    };
    tokio::select! {
        end = listen(bot, status) => end,
        end = working => end,
    }
}

/// Restores closed lanes before the first call; `false` if the service stops.
async fn restore(bot: &Bot) -> bool {
    while let Err(error) = restore_lanes(bot).await {
        tracing::warn!(%error, account = %bot.claim.account, "closed lanes cannot be read, retrying");
        tokio::select! {
            () = sleep(FIRST_DELAY) => {}
            () = bot.stop.cancelled() => return false,
        }
    }
    true
}

/// Registers the command list, when the platform permits calls of the account.
async fn register_commands(bot: &Bot) {
    if let Some(at) = bot.pacing.account_closed_until() {
        sleep_until(at).await;
    }
    if let Err(error) = bot.platform.register_commands(COMMANDS).await {
        tracing::warn!(%error, account = %bot.claim.account, "the command list cannot be registered");
    }
}

/// Wakes the tasks of all waiting work: at the start, and again for lost signals.
async fn poll(bot: &Arc<Bot>) {
    let mut ticks = interval(POLL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            () = bot.stop.cancelled() => return,
        }
        if let Err(error) = wake_all(bot).await {
            tracing::warn!(%error, account = %bot.claim.account, "waiting work cannot be read");
        }
    }
}

async fn wake_all(bot: &Arc<Bot>) -> Result<(), ChannelStoreError> {
    let (stores, account) = (&bot.hub.stores, &bot.claim.account);
    for (conversation, urgency) in stores.inbox.waiting_conversations(account).await? {
        conversations::wake(bot, conversation, urgency);
    }
    for chat in stores.outbox.pending_chats(account).await? {
        outbox::wake(bot, chat);
    }
    let (inbox, oldest) = stores.inbox.backlog(account).await?;
    let backlog = Backlog {
        inbox,
        age: oldest.map_or(0.0, |at| {
            (bot.hub.clock.now() - at).as_seconds_f64().max(0.0)
        }),
        outbox: stores.outbox.depth(account).await?,
    };
    measures::backlog(bot.provider, backlog);
    Ok(())
}

/// Connects again and again, until the platform rejects the bot or the service stops.
async fn listen(bot: &Arc<Bot>, status: &Arc<StatusCell>) -> Option<HolderEnd> {
    let mut delay = FIRST_DELAY;
    let mut displacements = 0;
    while !bot.stop.is_cancelled() {
        if displacements < 2 {
            status.set(ChannelState::Connecting);
        }
        let started = Instant::now();
        let error = match connect(bot, status).await {
            Ok(()) => return None,
            Err(PlatformError::Rejected(reason)) => return Some(HolderEnd::Rejected(reason)),
            Err(PlatformError::Sink(SinkError::Fenced)) => return None,
            Err(error) => error,
        };
        if started.elapsed() > STABLE {
            delay = FIRST_DELAY;
        }
        if started.elapsed() > UNDISPUTED {
            displacements = 0;
        }
        status.reconnecting();
        measures::failed(bot.provider, &error);
        let wait = match &error {
            PlatformError::Displaced(reason) => {
                if displacements > 0 {
                    status.set(ChannelState::Displaced(reason.clone()));
                }
                displacements += 1;
                DISPLACED[(displacements - 1).min(DISPLACED.len() - 1)]
            }
            PlatformError::RateLimited { retry_after, .. } => *retry_after,
            _ => delay.mul_f64(rand::random_range(0.5..1.0)),
        };
        tracing::warn!(%error, account = %bot.claim.account, wait_ms = wait.as_millis() as u64, "the connection ended, connecting again");
        delay = (delay * 2).min(MAX_DELAY);
        tokio::select! {
            () = sleep(wait) => {}
            () = bot.stop.cancelled() => {}
        }
    }
    None
}

/// Connects and listens until the connection ends. After a stop, the listener has
/// [`CLOSE_TIMEOUT`] to close it.
async fn connect(bot: &Arc<Bot>, status: &Arc<StatusCell>) -> Result<(), PlatformError> {
    let sink = InboxSink {
        bot: bot.clone(),
        status: status.clone(),
    };
    let listening = async {
        let inbox = &bot.hub.stores.inbox;
        let cursor = inbox
            .cursor(&bot.claim.account)
            .await
            .map_err(|error| PlatformError::Unavailable(error.to_string()))?;
        fail_points::pass("channel.cursor-read");
        let listener = bot.platform.listen(&sink, cursor, bot.stop.clone());
        listener.await
    };
    let stopped = async {
        bot.stop.cancelled().await;
        sleep(CLOSE_TIMEOUT).await;
    };
    tokio::select! {
        ended = listening => ended,
        () = stopped => Ok(()),
    }
}

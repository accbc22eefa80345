//! Lease of an account: its acquisition and its renewal.

use std::time::Duration;

use deerflow_domain::channels::{Account, AccountClaim, ChannelState, ChannelStoreError};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use harness::runtime::fail_points;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::bot::{Bot, Hub, StatusCell};

/// Duration of a lease, and the interval of its renewal.
const LEASE: Duration = Duration::from_secs(10);
const RENEWAL: Duration = Duration::from_secs(3);
/// Time without a renewal after which the service stops, before the lease can be acquired.
pub(super) const SAFE_PERIOD: Duration = Duration::from_secs(8);
/// Interval of attempts to acquire the lease.
const ACQUISITION: Duration = Duration::from_secs(2);
/// Acquires the lease, or returns `None` after `stop`. The time is one before the acquisition.
pub(super) async fn acquire(
    hub: &Hub,
    account: &Account,
    status: &StatusCell,
    stop: &CancellationToken,
) -> Option<(AccountClaim, Instant)> {
    loop {
        let (now, started) = (hub.clock.now(), Instant::now());
        match hub
            .stores
            .leases
            .acquire(account, &hub.node, LEASE, now)
            .await
        {
            Ok(Some(claim)) => return Some((claim, started)),
            Ok(None) => status.set(ChannelState::Elsewhere),
            Err(error) => tracing::warn!(%error, %account, "the account's lease cannot be read"),
        }
        tokio::select! {
            () = sleep(ACQUISITION) => {}
            () = stop.cancelled() => return None,
        }
    }
}

/// Renews the lease until it is lost or the service stops. A renewal that takes long is not abandoned:
/// the next one runs concurrently, and the first success counts.
pub(super) async fn renew(bot: &Bot) {
    let mut ticks = interval(RENEWAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut renewals = FuturesUnordered::new();
    while bot.is_serving() {
        let valid_until = *bot.valid_until.lock();
        tokio::select! {
            _ = ticks.tick() => {
                if !renewals.is_empty() {
                    tracing::warn!(account = %bot.claim.account, "the renewal of the account's lease takes long");
                }
                renewals.push(renew_once(bot));
            }
            Some(renewed) = renewals.next() => match renewed {
                Ok(started) => {
                    fail_points::pass("channel.renewed");
                    let mut valid_until = bot.valid_until.lock();
                    *valid_until = (*valid_until).max(started + SAFE_PERIOD);
                }
                Err(ChannelStoreError::Fenced) => break,
                Err(error) => {
                    tracing::warn!(%error, account = %bot.claim.account, "the account's lease cannot be renewed");
                }
            },
            () = sleep_until(valid_until) => {}
            () = bot.stop.cancelled() => {}
        }
    }
    bot.stop.cancel();
    // A renewal in progress must not follow the release.
    while renewals.next().await.is_some() {}
}

/// Renews the lease. Returns a time before the renewal.
async fn renew_once(bot: &Bot) -> Result<Instant, ChannelStoreError> {
    let (now, started) = (bot.hub.clock.now(), Instant::now());
    let leases = &bot.hub.stores.leases;
    leases.renew(&bot.claim, LEASE, now).await?;
    Ok(started)
}

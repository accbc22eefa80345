//! Runs one channel and restarts it when its settings change.

use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;
use deerflow_domain::channels::{AccountClaim, ChannelState, ChannelStoreError, LeaseRecord};
use tokio::sync::watch;

use super::parts::Inner;
use crate::account::{HolderEnd, serve_account};
use crate::bot::Hub;
use crate::config::{ChannelEntry, Rules};
use crate::platform::Settings;

/// Interval at which old rows are deleted, their age, and their number per transaction.
const RETENTION_POLL: Duration = Duration::from_secs(600);
const RETENTION: TimeDelta = TimeDelta::days(7);
/// Age of links that are deleted. A reply to an older message begins a conversation.
const LINK_RETENTION: TimeDelta = TimeDelta::days(365);
const RETENTION_BATCH: u64 = 500;

/// Interval at which a failed channel reads whether an operator requested a restart.
const REVOCATION_POLL: Duration = Duration::from_secs(5);

/// Settings of a channel in effect.
#[derive(Debug, Clone, PartialEq)]
struct Effective {
    enabled: bool,
    configured: bool,
    settings: Settings,
    rules: Arc<Rules>,
}

/// Runs a channel until the service ends. At most one listener exists at any time: the former one
/// has closed before the next one starts.
pub(super) async fn supervise(inner: &Inner, hub: &Arc<Hub>, provider: &'static str) {
    let Some(channel) = inner.channels.get(provider) else {
        return;
    };
    let stop = hub.tasks.token();
    let mut config = inner.config.clone();
    let mut credentials = inner.vault.subscribe();
    let mut restarts = channel.restarts.subscribe();
    // The first poll of the store; without it a channel would start twice.
    if inner.vault.refresh().await.is_err() {
        tracing::warn!(channel = provider, "stored credentials cannot be read yet");
    }
    while !stop.is_cancelled() {
        config.mark_unchanged();
        credentials.mark_unchanged();
        restarts.mark_unchanged();
        let effective = effective(inner, provider);
        channel
            .status
            .configure(effective.enabled, effective.configured);
        let changed = async {
            loop {
                tokio::select! {
                    () = changed(&mut config) => {}
                    () = changed(&mut credentials) => {}
                    () = changed(&mut restarts) => return,
                }
                if self::effective(inner, provider) != effective {
                    return;
                }
            }
        };
        let token = stop.child_token();
        let running = run(inner, hub, provider, &effective, &token);
        tokio::pin!(running);
        tokio::select! {
            () = &mut running => {}
            () = changed => {
                token.cancel();
                running.await;
            }
        }
    }
}

/// Serves the channel with these settings until `token`.
async fn run(
    inner: &Inner,
    hub: &Arc<Hub>,
    provider: &'static str,
    effective: &Effective,
    token: &tokio_util::sync::CancellationToken,
) {
    let Some(channel) = inner.channels.get(provider) else {
        return;
    };
    let status = &channel.status;
    if !effective.enabled {
        status.set(ChannelState::Off);
        return token.cancelled().await;
    }
    let built = channel.factory.build(&effective.settings, &inner.context);
    let reason = match built {
        Ok(platform) => {
            let rules = &effective.rules;
            match serve_account(hub, provider, &platform, rules, status, token).await {
                HolderEnd::Stopped => return status.set(ChannelState::Off),
                HolderEnd::Rejected(reason) => reason,
            }
        }
        Err(error) => error.to_string(),
    };
    tracing::error!(
        channel = provider,
        reason,
        "the channel is off until its configuration changes or an operator restarts it"
    );
    status.set(ChannelState::Failed(reason));
    tokio::select! {
        () = token.cancelled() => {}
        () = revoked(inner, provider) => {}
    }
}

/// Waits until an operator revokes a lease of the platform, which requests a restart.
async fn revoked(inner: &Inner, provider: &str) {
    let mut known: Option<Vec<AccountClaim>> = None;
    loop {
        if let Ok(leases) = inner.stores.leases.all().await {
            let found = revocations(leases, provider);
            match &known {
                Some(known) if found.iter().any(|claim| !known.contains(claim)) => return,
                Some(_) => {}
                None => known = Some(found),
            }
        }
        tokio::time::sleep(REVOCATION_POLL).await;
    }
}

/// Returns the revoked claims of a platform. A later acquisition has the name of its node.
fn revocations(leases: Vec<LeaseRecord>, provider: &str) -> Vec<AccountClaim> {
    leases
        .into_iter()
        .map(|lease| lease.claim)
        .filter(|claim| claim.account.provider == provider && claim.node.is_empty())
        .collect()
}

/// Waits for a change; never returns once the sender is gone.
async fn changed<T>(receiver: &mut watch::Receiver<T>) {
    if receiver.changed().await.is_err() {
        std::future::pending::<()>().await;
    }
}

fn effective(inner: &Inner, provider: &'static str) -> Effective {
    let ChannelEntry {
        enabled,
        settings,
        rules,
    } = inner.channels_config().entry(provider);
    let stored = inner.vault.of(provider);
    let has_stored = stored.is_some();
    let settings = settings.with_fields(stored.unwrap_or_default());
    let fields = inner.channels[provider].factory.fields();
    let configured = fields
        .iter()
        .all(|field| settings.text(field.name).is_some());
    Effective {
        // Entered credentials switch the channel on.
        enabled: enabled || has_stored,
        configured,
        settings,
        rules: Arc::new(rules),
    }
}

/// Deletes rows of the inbox and of the outbox that ended long ago.
pub(super) async fn forget_old_rows(hub: Arc<Hub>) {
    let stop = hub.tasks.token();
    loop {
        tokio::select! {
            () = tokio::time::sleep(RETENTION_POLL) => {}
            () = stop.cancelled() => return,
        }
        let now = hub.clock.now();
        let (before, links_before) = (now - RETENTION, now - LINK_RETENTION);
        let stores = &hub.stores;
        let forgetting = async {
            while stores.inbox.forget(before, RETENTION_BATCH).await? == RETENTION_BATCH {}
            let outbox = &stores.outbox;
            while outbox.forget(before, links_before, RETENTION_BATCH).await? == RETENTION_BATCH {}
            Ok::<(), ChannelStoreError>(())
        };
        if let Err(error) = forgetting.await {
            tracing::warn!(%error, "old rows of channels cannot be deleted");
        }
    }
}

//! Creates the sender of webhooks.

use anyhow::Context as _;
use deerflow_gateway::webhooks::{SenderOptions, SigningKey, WebhookPolicy, WebhookSender};
use harness::config::AppConfig;

use super::context::Context;
use super::stores::Stores;

/// Returns the configured options; fails if the secret cannot be used.
pub(super) fn options(config: &AppConfig) -> anyhow::Result<SenderOptions> {
    let section = &config.webhooks;
    Ok(SenderOptions {
        policy: WebhookPolicy {
            allow_private: section.allow_private,
        },
        key: section
            .secret
            .as_ref()
            .map(SigningKey::new)
            .transpose()
            .context("`webhooks.secret` cannot be used")?,
        ..SenderOptions::default()
    })
}

/// Starts the sender of pending webhooks.
pub(super) fn start(
    context: &Context<'_>,
    stores: &Stores,
    options: SenderOptions,
) -> anyhow::Result<()> {
    WebhookSender::new(stores.webhooks.clone(), stores.clock.clone(), options)?
        .start(&context.tasks);
    Ok(())
}

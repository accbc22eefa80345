//! Creates the service of chat channels.

use anyhow::Context as _;
use deerflow_channels::{ChannelParts, ChannelService, CredentialKey, http_client, platforms};
use harness::ids::IdSource;

use super::context::Context;
use super::stores::Stores;

/// Variable with the key of entered credentials.
pub(super) const KEY_VARIABLE: &str = "DEER_FLOW_CHANNELS_KEY";
/// File with that key below the home, if the variable is not set.
pub(super) const KEY_FILE: &str = "channels/credentials.key";

pub(super) fn open(context: &Context<'_>, stores: &Stores) -> anyhow::Result<ChannelService> {
    Ok(ChannelService::new(ChannelParts {
        stores: stores.channels.clone(),
        threads: stores.of_events.threads.clone(),
        clock: stores.clock.clone(),
        tasks: context.tasks.clone(),
        node: context.ids.node_id().to_string(),
        home: context.settings.home.as_path().to_owned(),
        http: http_client().context("cannot create the HTTP client of channels")?,
        config: context.config.subscribe(),
        platforms: platforms(),
        key: key(context)?,
    }))
}

fn key(context: &Context<'_>) -> anyhow::Result<CredentialKey> {
    match context.config.environment().filled(KEY_VARIABLE) {
        Some(text) => {
            CredentialKey::parse(text).with_context(|| format!("{KEY_VARIABLE} cannot be used"))
        }
        None => {
            let path = context.settings.home.as_path().join(KEY_FILE);
            CredentialKey::from_file(&path)
                .with_context(|| format!("{} cannot be used", path.display()))
        }
    }
}

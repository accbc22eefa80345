//! Starts the services of a server that use its gateway.

use std::sync::Arc;

use deerflow_channels::ChannelService;
use deerflow_gateway::GatewayState;
use harness::client::Client;

use super::context::Context;
use super::schedules;
use super::stores::Stores;
use crate::freed_memory;
use crate::services::{expiry, turn_weights};

/// Starts the removal of expired threads, the weights of users, the schedulers and the chat channels.
pub(super) fn start(
    context: &Context<'_>,
    stores: &Stores,
    gateway: &Arc<GatewayState>,
    channels: &ChannelService,
    client: &Client,
) -> anyhow::Result<()> {
    expiry::spawn_sweep_loop(context.config, gateway.clone(), &context.tasks);
    freed_memory::spawn_return_loop(&context.tasks);
    let accounts = stores.accounts.accounts.clone();
    turn_weights::spawn_update_loop(context.config, accounts, &context.tasks);
    schedules::start(context, stores, gateway)?;
    channels.start(client.clone());
    Ok(())
}

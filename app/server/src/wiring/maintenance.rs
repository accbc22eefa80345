//! Starts the deletion of expired data.

use deerflow_domain::maintenance::Maintenance;
use harness::ids::IdSource;

use super::context::Context;
use super::stores::Stores;
use crate::services::maintenance::spawn_sweep_loop;

pub(super) fn start(context: &Context<'_>, stores: &Stores) {
    let maintenance = Maintenance {
        store: stores.maintenance.clone(),
        requests: stores.requests.clone(),
        outbox: stores.webhooks.clone(),
        checkpoints: stores.checkpoints.clone(),
        flows: stores.flows.clone(),
        accounts: stores.accounts.clone(),
        clock: stores.clock.clone(),
        holder: context.ids.node_id().to_string(),
    };
    spawn_sweep_loop(context.config, maintenance, &context.tasks);
}

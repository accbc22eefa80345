//! Start of the channel service.

use std::sync::Arc;

use harness::client::Client;
use harness::runtime::tasks::TaskKind;

use super::parts::ChannelService;
use super::supervisor;
use crate::bot::{Handling, Hub};
use crate::import::Importer;

impl ChannelService {
    /// Starts the configured channels, and follows changes of the configuration and of stored
    /// credentials. `client` is a client of the runtime with access to the installation.
    pub fn start(&self, client: Client) {
        let inner = &self.inner;
        let hub = Arc::new(Hub {
            stores: inner.stores.clone(),
            client,
            threads: inner.threads.clone(),
            clock: inner.clock.clone(),
            tasks: inner.tasks.clone(),
            node: inner.node.clone(),
            importer: Importer::new(inner.home.clone()),
            handling: Handling::default(),
        });
        for key in inner.channels_config().inert {
            tracing::info!("channels.{key} has no effect: channels run in this process");
        }
        let tasks = &inner.tasks;
        let of_vault = inner.clone();
        tasks.spawn(TaskKind::Service, "channel credentials", async move {
            of_vault.vault.follow(of_vault.tasks.token()).await;
        });
        for provider in &inner.order {
            let (inner, hub, provider) = (inner.clone(), hub.clone(), *provider);
            tasks.spawn(TaskKind::Service, "channel", async move {
                supervisor::supervise(&inner, &hub, provider).await;
            });
        }
        let forgetting = supervisor::forget_old_rows(hub);
        tasks.spawn(TaskKind::Service, "retention of channels", forgetting);
    }
}

//! The channel service of a process: it starts, restarts and stops channels as their configuration
//! says.

mod control;
mod inspector;
mod key;
mod profile;
mod status;
mod supervisor;
mod vault;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use deerflow_domain::channels::{ChannelState, ChannelStatus, ChannelStores};
use deerflow_domain::threads::ThreadStore;
use harness::client::Client;
use harness::clock::Clock;
use harness::config::AppConfig;
use harness::runtime::tasks::{TaskKind, Tasks};
use tokio::sync::watch;

use crate::account::Hub;
use crate::config::ChannelsConfig;
use crate::import::Importer;
use crate::platform::{PlatformContext, PlatformFactory};

pub use inspector::{ChannelInspector, InspectedChannel};
pub use key::{CredentialKey, KeyError};
pub(crate) use status::StatusCell;
use vault::Vault;

/// Parts of a channel service.
#[derive(Debug)]
pub struct ChannelParts {
    /// Stores of channels.
    pub stores: ChannelStores,
    /// Thread records.
    pub threads: Arc<dyn ThreadStore>,
    /// Clock of the stores.
    pub clock: Arc<dyn Clock>,
    /// Set of the service's tasks; its token ends the service.
    pub tasks: Tasks,
    /// Id of this node.
    pub node: String,
    /// Folder of the installation, in which DeerFlow stored conversations.
    pub home: PathBuf,
    /// HTTP client with the proxies of the environment, without redirects.
    pub http: reqwest::Client,
    /// Current configuration.
    pub config: watch::Receiver<Arc<AppConfig>>,
    /// Platforms, in the order of the settings page.
    pub platforms: Vec<Arc<dyn PlatformFactory>>,
    /// Key of stored credentials.
    pub key: CredentialKey,
}

/// One channel of the service.
#[derive(Debug)]
struct Channel {
    factory: Arc<dyn PlatformFactory>,
    status: Arc<StatusCell>,
    /// Incremented to request a restart.
    restarts: watch::Sender<u64>,
}

/// Runs the channels of a process. Clones share it.
#[derive(Debug, Clone)]
pub struct ChannelService {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    stores: ChannelStores,
    threads: Arc<dyn ThreadStore>,
    clock: Arc<dyn Clock>,
    tasks: Tasks,
    node: String,
    home: PathBuf,
    context: PlatformContext,
    config: watch::Receiver<Arc<AppConfig>>,
    vault: Vault,
    channels: BTreeMap<&'static str, Channel>,
    /// Keys of `channels` in the order of the settings page.
    order: Vec<&'static str>,
}

impl ChannelService {
    /// Creates the service without starting channels.
    pub fn new(parts: ChannelParts) -> Self {
        let context = PlatformContext {
            http: parts.http,
            clock: parts.clock.clone(),
        };
        let order = parts.platforms.iter().map(|one| one.provider()).collect();
        let channels = parts
            .platforms
            .into_iter()
            .map(|factory| {
                let status = ChannelStatus {
                    provider: factory.provider().to_owned(),
                    profile: profile::of_factory(&*factory),
                    enabled: false,
                    configured: false,
                    state: ChannelState::Off,
                    account: None,
                    bot_name: None,
                    since: parts.clock.now(),
                };
                let channel = Channel {
                    status: Arc::new(StatusCell::new(status, parts.clock.clone())),
                    restarts: watch::Sender::new(0),
                    factory,
                };
                (channel.factory.provider(), channel)
            })
            .collect();
        let vault = Vault::new(parts.stores.credentials.clone(), parts.key);
        Self {
            inner: Arc::new(Inner {
                stores: parts.stores,
                threads: parts.threads,
                clock: parts.clock,
                tasks: parts.tasks,
                node: parts.node,
                home: parts.home,
                context,
                config: parts.config,
                vault,
                channels,
                order,
            }),
        }
    }

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
        });
        let config = inner.channels_config();
        for key in &config.inert {
            tracing::info!(
                "channels.{key} has no effect: channels run in the process of the server"
            );
        }
        for name in config.channels.keys() {
            let is_enabled = config.entry(name).enabled;
            if is_enabled && !inner.channels.contains_key(name.as_str()) {
                tracing::warn!(channel = %name, "this channel is not supported; it stays off");
            }
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

impl Inner {
    fn channels_config(&self) -> ChannelsConfig {
        ChannelsConfig::of(&self.config.borrow())
    }
}

//! The channel service and its parts.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use deerflow_domain::channels::{ChannelState, ChannelStatus, ChannelStores};
use deerflow_domain::threads::ThreadStore;
use harness::clock::Clock;
use harness::config::AppConfig;
use harness::runtime::tasks::Tasks;
use tokio::sync::watch;

use super::key::CredentialKey;
use super::profile;
use super::vault::Vault;
use crate::bot::StatusCell;
use crate::config::ChannelsConfig;
use crate::platform::{PlatformContext, PlatformFactory};

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
pub(super) struct Channel {
    pub(super) factory: Arc<dyn PlatformFactory>,
    pub(super) status: Arc<StatusCell>,
    /// Incremented to request a restart.
    pub(super) restarts: watch::Sender<u64>,
}

/// Runs the channels of a process. Clones share it.
#[derive(Debug, Clone)]
pub struct ChannelService {
    pub(super) inner: Arc<Inner>,
}

#[derive(Debug)]
pub(super) struct Inner {
    pub(super) stores: ChannelStores,
    pub(super) threads: Arc<dyn ThreadStore>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) tasks: Tasks,
    pub(super) node: String,
    pub(super) home: PathBuf,
    pub(super) context: PlatformContext,
    pub(super) config: watch::Receiver<Arc<AppConfig>>,
    pub(super) vault: Vault,
    pub(super) channels: BTreeMap<&'static str, Channel>,
    /// Keys of `channels` in the order of the settings page.
    pub(super) order: Vec<&'static str>,
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
}

impl Inner {
    /// Returns the current configuration of channels.
    pub(super) fn channels_config(&self) -> ChannelsConfig {
        ChannelsConfig::of(&self.config.borrow())
    }
}

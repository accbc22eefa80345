//! A channel service over parts in memory.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use deerflow_domain::channels::{ChannelStores, InMemoryChannels};
use deerflow_domain::threads::{
    Created, Deleted, NewThread, SweptThreads, ThreadContent, ThreadPatch, ThreadRecord,
    ThreadSearch, ThreadStorage, ThreadStore,
};
use harness::client::Client;
use harness::clock::SystemClock;
use harness::config::AppConfig;
use harness::ids::ThreadId;
use harness::models::ScriptedModel;
use harness::runtime::actor_context::Owner;
use harness::runtime::runs::ThreadStatus;
use harness::runtime::runs::store::StoreError;
use harness::runtime::tasks::Tasks;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::service::{ChannelParts, ChannelService, CredentialKey};
use crate::testkit::{MemoryPlatform, MemoryPlatformFactory};

/// Time in which every wait of a test must end.
pub(super) const LIMIT: Duration = Duration::from_secs(20);

/// Thread records that remember created ones and find none.
#[derive(Debug, Default)]
pub(crate) struct CreatedThreads(pub(super) parking_lot::Mutex<Vec<NewThread>>);

fn unused<T>() -> Result<T, StoreError> {
    unreachable!("channels only create threads")
}

#[async_trait]
impl ThreadStore for CreatedThreads {
    async fn create(&self, thread: NewThread) -> Result<Created, StoreError> {
        self.0.lock().push(thread.clone());
        Ok(Created::New(ThreadRecord {
            thread_id: thread.thread_id,
            user_id: thread.user_id,
            assistant: None,
            assistant_id: None,
            title: None,
            status: ThreadStatus::Idle,
            metadata: thread.metadata,
            created_at: thread.at,
            updated_at: thread.at,
            state_updated_at: thread.at,
            ttl: None,
        }))
    }
    async fn get(&self, _: &ThreadId, _: &Owner) -> Result<Option<ThreadRecord>, StoreError> {
        Ok(None)
    }
    async fn search(&self, _: &ThreadSearch, _: &Owner) -> Result<Vec<ThreadRecord>, StoreError> {
        unused()
    }
    async fn count(&self, _: &ThreadSearch, _: &Owner) -> Result<u64, StoreError> {
        unused()
    }
    async fn contents(
        &self,
        _: &[ThreadId],
    ) -> Result<HashMap<ThreadId, ThreadContent>, StoreError> {
        unused()
    }
    async fn storage(&self, _: &ThreadId) -> Result<ThreadStorage, StoreError> {
        unused()
    }
    async fn patch(
        &self,
        _: &ThreadId,
        _: ThreadPatch,
        _: &Owner,
        _: DateTime<Utc>,
    ) -> Result<Option<ThreadRecord>, StoreError> {
        unused()
    }
    async fn delete(&self, _: &ThreadId, _: &Owner) -> Result<Deleted, StoreError> {
        unused()
    }
    async fn delete_past_checkpoints(
        &self,
        _: &ThreadId,
        _: &Owner,
    ) -> Result<Deleted, StoreError> {
        unused()
    }
    async fn sweep(&self, _: DateTime<Utc>, _: usize) -> Result<SweptThreads, StoreError> {
        unused()
    }
}

/// Running service with its platform.
pub(super) struct Rig {
    pub(super) platform: MemoryPlatform,
    pub(super) stores: ChannelStores,
    pub(super) client: Client,
    pub(super) threads: Arc<CreatedThreads>,
    pub(super) service: ChannelService,
    pub(super) tasks: Tasks,
    config: watch::Sender<Arc<AppConfig>>,
    home: tempfile::TempDir,
}

/// Builds a configuration with the channel `memory`.
pub(crate) fn config(channel: Value, connections: Value) -> Arc<AppConfig> {
    let mut entry = json!({"enabled": true, "token": "t", "max_exchanges_per_minute": 0});
    if let (Some(entry), Some(more)) = (entry.as_object_mut(), channel.as_object()) {
        entry.extend(more.clone());
    }
    let mut config = AppConfig::default();
    config.other.insert("channels", json!({ "memory": entry }));
    config.other.insert("channel_connections", connections);
    Arc::new(config)
}

impl Rig {
    /// Starts a service with default settings.
    pub(super) async fn start() -> Self {
        Self::with(config(json!({}), json!({}))).await
    }

    pub(super) async fn with(config: Arc<AppConfig>) -> Self {
        Self::with_home(config, tempfile::tempdir().unwrap()).await
    }

    pub(super) async fn with_home(config: Arc<AppConfig>, home: tempfile::TempDir) -> Self {
        let (platform, stores) = (MemoryPlatform::default(), InMemoryChannels::stores());
        Self::over(config, home, platform, stores).await
    }

    /// Starts a service over a platform and stores.
    pub(super) async fn over(
        config: Arc<AppConfig>,
        home: tempfile::TempDir,
        platform: MemoryPlatform,
        stores: ChannelStores,
    ) -> Self {
        let client = Client::builder(config.clone())
            .home(home.path())
            .model(Arc::new(ScriptedModel::default()))
            .build()
            .unwrap();
        let threads = Arc::new(CreatedThreads::default());
        let (config, receiver) = watch::channel(config);
        let tasks = Tasks::new();
        let parts = parts(&platform, &stores, threads.clone(), receiver, &tasks);
        let service = ChannelService::new(ChannelParts {
            home: home.path().to_owned(),
            ..parts
        });
        service.start(client.clone());
        Self {
            platform,
            stores,
            client,
            threads,
            service,
            tasks,
            config,
            home,
        }
    }

    /// Starts the service of another node over the same stores, runtime and platform.
    pub(super) fn another_node(&self, node: &str) -> (ChannelService, Tasks) {
        let tasks = Tasks::new();
        let (config, threads) = (self.config.subscribe(), self.threads.clone());
        let service = ChannelService::new(ChannelParts {
            node: node.to_owned(),
            home: self.home.path().to_owned(),
            ..parts(&self.platform, &self.stores, threads, config, &tasks)
        });
        service.start(self.client.clone());
        (service, tasks)
    }

    pub(super) fn configure(&self, config: Arc<AppConfig>) {
        self.config.send_replace(config);
    }

    /// Waits for the texts of the final messages of a chat.
    pub(super) async fn answers(&self, chat: &str, count: usize) -> Vec<String> {
        within(self.platform.answers(chat, count)).await
    }

    /// Sends a text in a chat of its own and returns the answer.
    pub(super) async fn ask(&self, chat: &str, text: &str) -> String {
        let before = self.platform.texts(chat).len();
        self.platform.say(chat, "ann", text);
        self.answers(chat, before + 1).await.pop().unwrap()
    }
}

/// Fails a test whose wait does not end.
pub(super) async fn within<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(LIMIT, work).await.expect("in time")
}

fn parts(
    platform: &MemoryPlatform,
    stores: &ChannelStores,
    threads: Arc<CreatedThreads>,
    config: watch::Receiver<Arc<AppConfig>>,
    tasks: &Tasks,
) -> ChannelParts {
    ChannelParts {
        stores: stores.clone(),
        threads,
        clock: Arc::new(SystemClock),
        tasks: tasks.clone(),
        node: "n1".to_owned(),
        home: PathBuf::new(),
        http: reqwest::Client::builder().build().unwrap(),
        config,
        platforms: vec![Arc::new(MemoryPlatformFactory(platform.clone()))],
        key: CredentialKey::parse(&"00".repeat(32)).unwrap(),
    }
}

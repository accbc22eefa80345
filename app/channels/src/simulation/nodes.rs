//! Nodes: they start, stop, freeze and die.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use harness::client::Client;
use harness::models::{ChatModel, ModelError, ModelInfo, ModelRequest, ModelStream, ScriptedModel};
use harness::runtime::process::Process;
use harness::runtime::tasks::Tasks;
use serde_json::json;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::platform::{SimulatedFactory, SimulatedPlatform};
use super::stores::faulty_stores;
use super::world::World;
use crate::core_tests::{CreatedThreads, config};
use crate::service::{ChannelParts, ChannelService, CredentialKey};

/// Maximum time of a graceful stop.
const STOP: Duration = Duration::from_secs(10);

/// Process of a node.
#[derive(Debug)]
struct Node {
    process: Process,
    tasks: Tasks,
}

/// Nodes over one runtime.
#[derive(Debug)]
pub(super) struct Cluster {
    world: Arc<World>,
    client: Client,
    nodes: Vec<Option<Node>>,
    started: usize,
}

impl Cluster {
    /// Starts two or three nodes.
    pub(super) fn start(world: &Arc<World>) -> Self {
        let model = CountingModel {
            world: world.clone(),
            model: ScriptedModel::default(),
        };
        let client = Client::builder(config(json!({}), json!({})))
            .model(Arc::new(model))
            .build()
            .expect("a client");
        let count = 2 + world.chance.below(2);
        let mut cluster = Self {
            world: world.clone(),
            client,
            nodes: (0..count).map(|_| None).collect(),
            started: 0,
        };
        cluster.restore();
        cluster
    }

    /// Thaws nodes, and starts those that are down.
    pub(super) fn restore(&mut self) {
        for number in 0..self.nodes.len() {
            match &self.nodes[number] {
                Some(node) => node.process.thaw(),
                None => self.start_node(number),
            }
        }
    }

    fn start_node(&mut self, number: usize) {
        self.started += 1;
        let name = format!("n{number}.{}", self.started);
        self.world.log(format_args!("{name} starts"));
        let process = Process::default();
        let tasks = Tasks::within(process.clone());
        let platform = SimulatedPlatform {
            world: self.world.clone(),
            node: name.clone(),
            process: process.clone(),
        };
        // No settings change in a simulation.
        let (_, settings) = watch::channel(config(json!({}), json!({})));
        let service = ChannelService::new(ChannelParts {
            stores: faulty_stores(&self.world),
            threads: Arc::new(CreatedThreads::default()),
            clock: Arc::new(self.world.clock()),
            tasks: tasks.clone(),
            node: name,
            home: PathBuf::new(),
            http: reqwest::Client::builder().build().expect("a client"),
            config: settings,
            platforms: vec![Arc::new(SimulatedFactory(platform))],
            key: CredentialKey::parse(&"00".repeat(32)).expect("a key"),
        });
        service.start(self.client.clone());
        self.nodes[number] = Some(Node { process, tasks });
    }
}

/// Lets nodes and connections fail for some time.
pub(super) async fn inject_faults(cluster: &mut Cluster) {
    let world = cluster.world.clone();
    let chance = &world.chance;
    let until = chance.millis(5_000, 90_000);
    while world.elapsed() < until {
        sleep(chance.millis(200, 12_000)).await;
        let number = chance.below(cluster.nodes.len());
        let Some(node) = &cluster.nodes[number] else {
            cluster.start_node(number);
            continue;
        };
        match chance.below(10) {
            0..4 => {
                world.log(format_args!("a node of n{number} dies"));
                world.observed.lock().counts.deaths += 1;
                node.process.kill();
                cluster.nodes[number] = None;
            }
            4..6 => {
                world.log(format_args!("n{number} freezes"));
                world.observed.lock().counts.freezes += 1;
                node.process.freeze();
            }
            6..8 => {
                world.log(format_args!("n{number} is thawed"));
                node.process.thaw();
            }
            8 => {
                world.log(format_args!("n{number} stops"));
                node.process.thaw();
                if timeout(STOP, node.tasks.shut_down()).await.is_err() {
                    world.violation(format_args!("n{number} does not stop"));
                }
                cluster.nodes[number] = None;
            }
            _ => {
                world.log("all connections break");
                world.platform.disconnect();
            }
        }
    }
}

/// Scripted model that counts its calls.
#[derive(Debug)]
struct CountingModel {
    world: Arc<World>,
    model: ScriptedModel,
}

#[async_trait]
impl ChatModel for CountingModel {
    fn info(&self) -> &ModelInfo {
        self.model.info()
    }

    async fn stream(&self, request: ModelRequest) -> Result<ModelStream, ModelError> {
        let asked = request
            .messages
            .iter()
            .rev()
            .find(|message| message.is_human())
            .map(|message| message.content.text())
            .unwrap_or_default();
        let label = asked
            .split("then say ")
            .nth(1)
            .and_then(|said| said.split(' ').next())
            .unwrap_or(&asked);
        self.world.log(format_args!("the model answers {label}"));
        *self
            .world
            .observed
            .lock()
            .calls
            .entry(label.to_owned())
            .or_default() += 1;
        self.model.stream(request).await
    }
}

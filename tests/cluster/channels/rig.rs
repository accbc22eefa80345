//! Gateways that serve one bot on each platform, with one database.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use deerflow_stores::{DatabaseConfig, PostgresConfig};
use deerflow_tests::chat_fakes::{ChatFakes, PLATFORMS};
use deerflow_tests::gateway::{AUTH_DISABLED, GatewayOptions, GatewayProcess, deerflow_binary};

use super::records::Records;
use super::tally::{Asked, Tally};
use crate::rig::{new_schema, on_schema, setting_of};

/// Maximum time of one wait: takeover, and retries of what could not be sent.
pub(super) const LIMIT: Duration = Duration::from_secs(180);
/// Maximum time of a request to a gateway.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// Interval of polls of processes, which cannot notify this one.
pub(super) const POLL: Duration = Duration::from_millis(50);

/// Environment variables of one gateway.
pub(super) type Environment = Vec<(String, String)>;

/// Gateways and platforms of one test.
#[derive(Debug)]
pub(super) struct ChannelRig {
    pub(super) nodes: Vec<GatewayProcess>,
    pub(super) fakes: ChatFakes,
    client: reqwest::Client,
    database: DatabaseConfig,
}

impl ChannelRig {
    /// Starts one gateway per environment on a new schema of the Postgres server, with streams
    /// through Redis, and waits until each bot is connected.
    pub(super) async fn on_postgres(environments: &[Environment]) -> Self {
        let schema = new_schema();
        let sections = on_schema(&schema) + &through_new_redis_database();
        let database = DatabaseConfig::Postgres(PostgresConfig {
            url: setting_of("DEERFLOW_TEST_POSTGRES_URL").into(),
            schema: Some(schema),
            max_connections: 2,
            exclusive: false,
        });
        Self::start(&sections, environments, Some(database)).await
    }

    /// Starts three gateways on a new schema of the Postgres server.
    pub(super) async fn of_three() -> Self {
        Self::on_postgres(&vec![Environment::new(); 3]).await
    }

    /// Starts one gateway on SQLite.
    pub(super) async fn on_sqlite() -> Self {
        Self::start("", &[Environment::new()], None).await
    }

    async fn start(
        sections: &str,
        environments: &[Environment],
        database: Option<DatabaseConfig>,
    ) -> Self {
        let fakes = ChatFakes::redelivering().await.expect("fakes");
        let config = format!(
            "config_version: 34
models:
  - {{name: scripted, use: scripted, model: scripted}}
runs: {{shutdown_grace_seconds: 1}}
memory: {{enabled: false}}
title: {{enabled: false}}
{sections}{}",
            fakes.section("max_exchanges_per_minute: 0")
        );
        let mut nodes = Vec::new();
        for environment in environments {
            let binary = deerflow_binary().expect("binary");
            let mut options = GatewayOptions::new(binary, config.clone());
            options.env = vec![(AUTH_DISABLED.0.to_owned(), AUTH_DISABLED.1.to_owned())];
            options.env.extend_from_slice(environment);
            options.ready_within = Duration::from_secs(90);
            nodes.push(GatewayProcess::launch(options).await.expect("gateway"));
        }
        let database = database
            .unwrap_or_else(|| DatabaseConfig::Sqlite(nodes[0].home().join(".deer-flow/data")));
        let client = reqwest::Client::builder()
            .no_proxy()
            .timeout(REQUEST_TIMEOUT);
        let rig = Self {
            nodes,
            fakes,
            client: client.build().expect("client"),
            database,
        };
        rig.all_connected().await;
        rig
    }

    /// Opens the database.
    pub(super) async fn records(&self) -> Records {
        Records::open(&self.database).await
    }

    /// Waits until each bot is connected at a gateway.
    pub(super) async fn all_connected(&self) {
        let all: Vec<usize> = (0..self.nodes.len()).collect();
        self.connected_among(&all, &PLATFORMS).await;
    }

    /// Waits until each of these bots is connected at one of these gateways. Returns the times
    /// since the call.
    pub(super) async fn connected_among(
        &self,
        nodes: &[usize],
        platforms: &[&'static str],
    ) -> Vec<(&'static str, Duration)> {
        let started = Instant::now();
        let mut times: Vec<(&str, Duration)> = Vec::new();
        loop {
            for node in nodes {
                for platform in self.connected_at(*node).await {
                    let is_new = times.iter().all(|(known, _)| *known != platform);
                    if is_new && platforms.contains(&platform) {
                        times.push((platform, started.elapsed()));
                    }
                }
            }
            if times.len() == platforms.len() {
                return times;
            }
            assert!(
                started.elapsed() < LIMIT,
                "only these are connected: {times:?}"
            );
            tokio::time::sleep(POLL).await;
        }
    }

    /// Returns the platforms whose bots are connected at a gateway; none if it does not answer.
    pub(super) async fn connected_at(&self, node: usize) -> Vec<&'static str> {
        let url = format!("{}/metrics", self.nodes[node].base_url());
        let Ok(answer) = self.client.get(url).send().await else {
            return Vec::new();
        };
        let text = answer.text().await.unwrap_or_default();
        let is_connected = |platform: &&str| {
            let labelled = format!("channel=\"{platform}\"");
            text.lines().any(|line| {
                line.starts_with("deerflow_channel_connected{")
                    && line.contains(&labelled)
                    && line.ends_with(" 1")
            })
        };
        PLATFORMS.into_iter().filter(is_connected).collect()
    }

    /// Returns the gateway at which the bot of a platform is connected.
    pub(super) async fn holder(&self, platform: &str) -> usize {
        let started = Instant::now();
        loop {
            for node in 0..self.nodes.len() {
                if self.connected_at(node).await.contains(&platform) {
                    return node;
                }
            }
            assert!(started.elapsed() < LIMIT, "{platform} is not connected");
            tokio::time::sleep(POLL).await;
        }
    }

    /// Returns the gateway with the most connected bots, and their platforms.
    pub(super) async fn busiest(&self) -> (usize, Vec<&'static str>) {
        let mut busiest = (0, Vec::new());
        for node in 0..self.nodes.len() {
            let connected = self.connected_at(node).await;
            if connected.len() > busiest.1.len() {
                busiest = (node, connected);
            }
        }
        busiest
    }

    /// Kills a gateway, and notes the answers whose sending it had begun. Returns its platforms.
    pub(super) async fn kill(
        &mut self,
        node: usize,
        records: &Records,
        tally: &mut Tally,
    ) -> Vec<&'static str> {
        let platforms = self.served_by(node).await;
        self.nodes[node].kill9().await.expect("killed");
        // Its leases are valid for seconds, in which no other node sends its messages.
        tally.died(&records.unrecorded(&platforms).await);
        platforms
    }

    /// Prints the calls that concern a repeated answer.
    pub(super) fn show_calls(&self, asked: &Asked) {
        eprintln!("repeated: {}", asked.answer());
        let text = format!("round {} chat {} ", asked.round, asked.chat);
        let chat = self.fakes.chat_id(asked.platform, asked.chat);
        for call in self.fakes.calls(asked.platform).all() {
            let body = call.body.to_string();
            if body.contains(&text) || body.contains(&format!("\"{chat}\"")) {
                eprintln!(
                    "  {} ms {} -> {}: {body}",
                    call.at_ms, call.method, call.error
                );
            }
        }
    }

    /// Returns the platforms whose bots are connected at no other gateway.
    pub(super) async fn served_by(&self, node: usize) -> Vec<&'static str> {
        let mut served = PLATFORMS.to_vec();
        for other in self.others(node) {
            let connected = self.connected_at(other).await;
            served.retain(|platform| !connected.contains(platform));
        }
        served
    }

    /// Returns the indices of the other gateways.
    pub(super) fn others(&self, node: usize) -> Vec<usize> {
        (0..self.nodes.len())
            .filter(|other| *other != node)
            .collect()
    }
}

/// Number of databases that a Redis server has by default.
const REDIS_DATABASES: u32 = 16;

/// Returns the configuration of streams through a Redis database that no other rig of this process
/// uses. Ids of runs follow from the ids of messages, which the fakes of every rig repeat: in a
/// shared database a run would find the ended stream of another rig.
fn through_new_redis_database() -> String {
    static USED: AtomicU32 = AtomicU32::new(0);
    let database = 1 + USED.fetch_add(1, Ordering::Relaxed) % (REDIS_DATABASES - 1);
    let server = setting_of("DEERFLOW_TEST_REDIS_URL");
    format!("stream_bridge: {{type: redis, redis_url: '{server}/{database}'}}\n")
}

/// Prints the output of the gateways if the test fails.
impl Drop for ChannelRig {
    fn drop(&mut self) {
        if std::thread::panicking() {
            for (index, node) in self.nodes.iter().enumerate() {
                eprintln!("gateway {index} printed:\n{}", node.logs());
            }
        }
    }
}

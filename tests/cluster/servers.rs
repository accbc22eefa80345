//! Servers that gateways depend on: killed, restarted, and reached through proxies.

use std::net::SocketAddr;
use std::process::Command;

use deerflow_tests::fault_proxy::{FaultProxy, Faults};

use crate::rig::{on_postgres, setting_of, through_redis};

/// External server of a gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Server {
    Postgres,
    Redis,
}

impl Server {
    /// Kills the server. It stays down until the returned outage ends.
    pub(crate) fn kill(self) -> Outage {
        self.command("kill");
        Outage(self)
    }

    fn command(self, what: &str) {
        let name = match self {
            Self::Postgres => "postgres",
            Self::Redis => "redis",
        };
        let command = format!("{}/{name}-{what}", setting_of("DEERFLOW_TEST_SERVERS"));
        #[expect(
            clippy::disallowed_methods,
            reason = "waits for a command, computes nothing"
        )]
        let done =
            tokio::task::block_in_place(|| Command::new(&command).output()).expect("a command");
        assert!(
            done.status.success(),
            "{command}: {}",
            String::from_utf8_lossy(&done.stderr)
        );
    }

    pub(crate) fn address(self) -> SocketAddr {
        let url = setting_of(match self {
            Self::Postgres => "DEERFLOW_TEST_POSTGRES_URL",
            Self::Redis => "DEERFLOW_TEST_REDIS_URL",
        });
        let index = url
            .rsplit("//")
            .next()
            .expect("an authority")
            .split('/')
            .next()
            .expect("a place");
        index
            .rsplit('@')
            .next()
            .expect("host and port")
            .parse()
            .expect("an address")
    }

    async fn proxy(self, seed: u64) -> FaultProxy {
        FaultProxy::start(self.address(), seed)
            .await
            .expect("a port")
    }
}

/// Outage of a server. Dropping it restarts the server with its data, for the tests that follow.
#[derive(Debug)]
pub(crate) struct Outage(Server);

impl Outage {
    /// Restarts the server with its data.
    pub(crate) fn end(self) {}
}

impl Drop for Outage {
    fn drop(&mut self) {
        self.0.command("start");
    }
}

/// Proxies between one gateway and its servers.
#[derive(Debug)]
pub(crate) struct ServerProxies {
    pub(crate) postgres: FaultProxy,
    pub(crate) redis: FaultProxy,
}

impl ServerProxies {
    /// Starts proxies without faults for each gateway, and returns them with the configuration
    /// sections that use them.
    pub(crate) async fn of(nodes: usize, seed: u64) -> (Vec<Self>, Vec<String>) {
        let direct = on_postgres() + &through_redis();
        let (mut proxies, mut sections) = (Vec::new(), Vec::new());
        for node in 0..nodes as u64 {
            let postgres = Server::Postgres.proxy(seed.wrapping_add(2 * node)).await;
            let redis = Server::Redis.proxy(seed.wrapping_add(2 * node + 1)).await;
            let led = direct.replace(
                &Server::Postgres.address().to_string(),
                &postgres.address().to_string(),
            );
            sections.push(led.replace(
                &Server::Redis.address().to_string(),
                &redis.address().to_string(),
            ));
            proxies.push(Self { postgres, redis });
        }
        (proxies, sections)
    }

    /// Changes the faults of the connections to these servers.
    pub(crate) fn set(&self, servers: &[Server], faults: &Faults) {
        for server in servers {
            let way = match server {
                Server::Postgres => &self.postgres,
                Server::Redis => &self.redis,
            };
            way.set(faults.clone());
        }
    }
}

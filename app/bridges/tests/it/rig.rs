//! Test servers that can be started and killed, a proxy that drops replies, and bridges connected
//! to them.

use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU32, Ordering};
use std::time::Duration;

use bytes::Bytes;
use deerflow_bridges::redis::{RedisOptions, RedisStreamBridge};
use deerflow_core::ids::RunId;
use deerflow_core::tasks::{TaskKind, Tasks};
use deerflow_runtime::in_memory::InMemoryStores;
use deerflow_runtime::runs::store::RunCreateStore;
use deerflow_runtime::stream_bridge::{
    EventId, EventName, ResumeFrom, StreamBridge, StreamItem, StreamKey, StreamLog, Subscription,
};
use deerflow_runtime::testkit::new_run;
use futures_util::StreamExt;
use redis::aio::MultiplexedConnection;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::time::{sleep, timeout};

/// Maximum time to wait for an expected event.
pub(crate) const WAIT_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum time that a publisher waits for the stream's position. Long, because provisional numbers
/// may change.
const CLAIM_TIMEOUT: Duration = Duration::from_secs(20);

/// URL of the server shared by all tests that neither stop nor flush it.
pub(crate) fn shared_url() -> String {
    #[expect(clippy::disallowed_methods, reason = "the setting of the test")]
    let url = std::env::var("DEERFLOW_TEST_REDIS_URL");
    url.expect("set DEERFLOW_TEST_REDIS_URL to a scratch server such as redis://127.0.0.1:6379; the tests make keys in it")
}

/// Returns a key prefix that no other test uses.
pub(crate) fn fresh_prefix() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!(
        "test-{}-{}:",
        std::process::id(),
        COUNT.fetch_add(1, Ordering::Relaxed)
    )
}

/// Starts a bridge: one node.
pub(crate) async fn node(url: &str, prefix: &str) -> Arc<RedisStreamBridge> {
    node_with(RedisOptions {
        key_prefix: prefix.to_owned(),
        ..RedisOptions::at(url)
    })
    .await
}

pub(crate) async fn node_with(options: RedisOptions) -> Arc<RedisStreamBridge> {
    let bridge = RedisStreamBridge::new(RedisOptions {
        claim_timeout: CLAIM_TIMEOUT,
        ..options
    })
    .expect("an address");
    bridge.start().await.expect("started");
    Arc::new(bridge)
}

/// Starts a bridge with a durable log.
pub(crate) async fn node_with_log(
    options: RedisOptions,
    log: Arc<dyn StreamLog>,
) -> Arc<RedisStreamBridge> {
    let options = RedisOptions {
        claim_timeout: CLAIM_TIMEOUT,
        ..options
    };
    let bridge = RedisStreamBridge::with_log(options, log).expect("an address");
    bridge.start().await.expect("started");
    Arc::new(bridge)
}

/// Creates a durable log that knows a run.
pub(crate) async fn log_of(run: &RunId) -> Arc<InMemoryStores> {
    let log = Arc::new(InMemoryStores::shared());
    log.admit(new_run(run.as_str(), "thread-1"))
        .await
        .expect("admitted");
    log
}

pub(crate) fn run(text: &str) -> RunId {
    RunId::parse(text).expect("a valid id")
}

/// Publishes the events `from..=to` of a run, with their numbers as data.
pub(crate) async fn publish(
    bridge: &RedisStreamBridge,
    run_id: &RunId,
    attempt: u32,
    numbers: std::ops::RangeInclusive<u64>,
) {
    let key = StreamKey {
        run_id: run_id.clone(),
        attempt,
    };
    for number in numbers {
        let published = bridge
            .publish(
                &key,
                EventName::Borrowed("values"),
                Bytes::from(number.to_string()).into(),
            )
            .await;
        assert_eq!(
            published,
            Ok(EventId {
                seq: number,
                attempt
            })
        );
    }
}

pub(crate) async fn end(bridge: &RedisStreamBridge, run_id: &RunId, attempt: u32) {
    bridge
        .publish_end(&StreamKey {
            run_id: run_id.clone(),
            attempt,
        })
        .await
        .expect("an open stream can be ended");
}

pub(crate) async fn view(
    bridge: &RedisStreamBridge,
    run_id: &RunId,
    from: ResumeFrom,
) -> Subscription {
    bridge
        .subscribe(run_id, from, Duration::from_secs(3600))
        .await
        .expect("an open bridge can be subscribed to")
}

pub(crate) async fn next(view: &mut Subscription) -> Option<StreamItem> {
    timeout(WAIT_TIMEOUT, view.items.next())
        .await
        .expect("expected an item or the end")
}

/// Asserts that the next events have these numbers in their ids and data.
pub(crate) async fn expect(view: &mut Subscription, numbers: std::ops::RangeInclusive<u64>) {
    for number in numbers {
        let item = timeout(WAIT_TIMEOUT, view.items.next()).await;
        match item.unwrap_or_else(|_| panic!("expected event {number}")) {
            Some(StreamItem::Event(event)) => {
                assert_eq!(event.id.seq, number);
                assert_eq!(event.data.into_bytes(), number.to_string());
            }
            other => panic!("expected event {number}, got {other:?}"),
        }
    }
}

/// Returns all remaining items up to the end.
pub(crate) async fn rest(view: &mut Subscription) -> Vec<StreamItem> {
    let mut items = Vec::new();
    while let Some(item) = next(view).await {
        items.push(item);
    }
    items
}

/// Calls `holds` repeatedly until it returns `true`; panics with `what` after a timeout.
pub(crate) async fn until<F: Future<Output = bool>>(what: &str, holds: impl Fn() -> F) {
    let wait = async {
        while !holds().await {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(WAIT_TIMEOUT, wait)
        .await
        .unwrap_or_else(|_| panic!("timed out waiting: {what}"));
}

/// A Redis server of one test.
pub(crate) struct Server {
    pub(crate) port: u16,
    /// Bound but never listening: reserves the port while the server is down.
    _reserved: TcpSocket,
    data: tempfile::TempDir,
    persists: bool,
    process: Option<Child>,
}

impl Server {
    /// Starts a server that retains its data over restarts only if it `persists`.
    pub(crate) async fn start(persists: bool) -> Self {
        let reserved = TcpSocket::new_v4().expect("a socket");
        reserved
            .set_reuseaddr(true)
            .expect("the server can have the port, too");
        reserved
            .bind((Ipv4Addr::LOCALHOST, 0).into())
            .expect("a port");
        let port = reserved.local_addr().expect("an address").port();
        let mut server = Self {
            port,
            _reserved: reserved,
            data: tempfile::tempdir().expect("a folder"),
            persists,
            process: None,
        };
        server.restart().await;
        server
    }

    pub(crate) async fn restart(&mut self) {
        self.kill();
        let appendonly = if self.persists { "yes" } else { "no" };
        let port = self.port.to_string();
        let mut command = Command::new("redis-server");
        command.args([
            "--port",
            &port,
            "--bind",
            "127.0.0.1",
            "--save",
            "",
            "--appendonly",
            appendonly,
            "--appendfsync",
            "always",
        ]);
        command
            .arg("--dir")
            .arg(self.data.path())
            .stdout(Stdio::null());
        self.process = Some(command.spawn().expect("redis-server is installed"));
        until("the server answers", async || {
            connect(&self.url()).await.is_ok()
        })
        .await;
    }

    /// Kills the process like `kill -9`.
    pub(crate) fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().expect("killed");
            process.wait().expect("gone");
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Sends a command to the server.
    pub(crate) async fn send_command(&self, words: &[&str]) -> redis::Value {
        command(&self.url(), words).await
    }
}

async fn connect(url: &str) -> redis::RedisResult<MultiplexedConnection> {
    let config = redis::AsyncConnectionConfig::new().set_response_timeout(Some(WAIT_TIMEOUT));
    let mut connection = redis::Client::open(url)?
        .get_multiplexed_async_connection_with_config(&config)
        .await?;
    redis::cmd("PING")
        .exec_async(&mut connection)
        .await
        .map(|()| connection)
}

/// Returns the server's reply to a command.
pub(crate) async fn command(url: &str, words: &[&str]) -> redis::Value {
    let mut connection = connect(url).await.expect("the server answers");
    let mut command = redis::cmd(words[0]);
    words[1..].iter().for_each(|word| _ = command.arg(word));
    command
        .query_async(&mut connection)
        .await
        .expect("the server agrees")
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Forwards bytes. On request it closes a connection after a request and before the reply.
pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    /// Port that new connections are forwarded to.
    pub(crate) target_port: Arc<AtomicU16>,
    /// While set, every connection loses its next reply.
    pub(crate) drop_replies: Arc<AtomicBool>,
    /// Number of lost replies so far.
    pub(crate) dropped_replies: Arc<AtomicU32>,
    tasks: Tasks,
}

impl Proxy {
    pub(crate) async fn before(port: u16) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .await
            .expect("a port");
        let address = listener.local_addr().expect("an address");
        let (drop_replies, dropped_replies, tasks) = (
            Arc::new(AtomicBool::new(false)),
            Arc::new(AtomicU32::new(0)),
            Tasks::new(),
        );
        let target_port = Arc::new(AtomicU16::new(port));
        let (cuts, count, pipes, target) = (
            drop_replies.clone(),
            dropped_replies.clone(),
            tasks.clone(),
            target_port.clone(),
        );
        let stop = tasks.token().clone();
        tasks.spawn(
            TaskKind::Service,
            "proxy",
            stop.clone().run_until_cancelled_owned(async move {
                while let Ok((client, _)) = listener.accept().await {
                    let (cuts, count, port) =
                        (cuts.clone(), count.clone(), target.load(Ordering::Acquire));
                    pipes.spawn(
                        TaskKind::Service,
                        "pipe",
                        stop.clone().run_until_cancelled_owned(async move {
                            if let Ok(server) =
                                TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await
                            {
                                pipe(client, server, &cuts, &count).await;
                            }
                        }),
                    );
                }
            }),
        );
        Self {
            address,
            target_port,
            drop_replies,
            dropped_replies,
            tasks,
        }
    }

    /// Closes all connections and accepts no more.
    pub(crate) async fn close(&self) {
        self.tasks.shut_down().await;
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://{}", self.address)
    }
}

async fn pipe(mut client: TcpStream, mut server: TcpStream, cuts: &AtomicBool, count: &AtomicU32) {
    let (mut request_bytes, mut reply_bytes) = (vec![0; 64 * 1024], vec![0; 64 * 1024]);
    loop {
        tokio::select! {
            read = client.read(&mut request_bytes) => match read {
                Ok(n) if n > 0 && server.write_all(&request_bytes[..n]).await.is_ok() => {}
                _ => return,
            },
            read = server.read(&mut reply_bytes) => match read {
                Ok(_) if cuts.swap(false, Ordering::AcqRel) => {
                    count.fetch_add(1, Ordering::AcqRel);
                    return;
                }
                Ok(n) if n > 0 && client.write_all(&reply_bytes[..n]).await.is_ok() => {}
                _ => return,
            },
        }
    }
}

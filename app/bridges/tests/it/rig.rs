//! Servers to start and kill, a proxy that loses answers, and bridges on them.

use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU32, Ordering};
use std::time::Duration;

use bytes::Bytes;
use deerflow_bridges::redis::{RedisOptions, RedisStreamBridge};
use futures_util::StreamExt;
use harness::ids::RunId;
use harness::runtime::memory::MemoryStores;
use harness::runtime::runs::store::RunCreateStore;
use harness::runtime::stream_bridge::{
    EventId, EventName, ResumeFrom, StreamBridge, StreamItem, StreamKey, StreamLog, Subscription,
};
use harness::runtime::tasks::{TaskKind, Tasks};
use harness::testkit::new_run;
use redis::aio::MultiplexedConnection;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::time::{sleep, timeout};

/// The longest wait for something that should come.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
/// The longest wait of a producer for where its stream stands: what it numbers without knowing may get other numbers.
const CLAIM_PATIENCE: Duration = Duration::from_secs(20);

/// The server that all tests share which neither stop nor empty it.
pub(crate) fn shared_url() -> String {
    #[expect(clippy::disallowed_methods, reason = "the test's own setting")]
    let url = std::env::var("DEERFLOW_TEST_REDIS_URL");
    url.expect("set DEERFLOW_TEST_REDIS_URL to a scratch server such as redis://127.0.0.1:6379; the tests make keys in it")
}

/// A place of their own for the keys of one test.
pub(crate) fn fresh_prefix() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!(
        "test-{}-{}:",
        std::process::id(),
        COUNT.fetch_add(1, Ordering::Relaxed)
    )
}

/// A node: a started bridge.
pub(crate) async fn node(url: &str, prefix: &str) -> Arc<RedisStreamBridge> {
    node_with(RedisOptions {
        key_prefix: prefix.to_owned(),
        ..RedisOptions::at(url)
    })
    .await
}

pub(crate) async fn node_with(options: RedisOptions) -> Arc<RedisStreamBridge> {
    let bridge = RedisStreamBridge::new(RedisOptions {
        claim_patience: CLAIM_PATIENCE,
        ..options
    })
    .expect("an address");
    bridge.start().await.expect("started");
    Arc::new(bridge)
}

/// A node beside a durable log.
pub(crate) async fn node_beside(
    options: RedisOptions,
    log: Arc<dyn StreamLog>,
) -> Arc<RedisStreamBridge> {
    let options = RedisOptions {
        claim_patience: CLAIM_PATIENCE,
        ..options
    };
    let bridge = RedisStreamBridge::with_log(options, log).expect("an address");
    bridge.start().await.expect("started");
    Arc::new(bridge)
}

/// A durable log that knows a run.
pub(crate) async fn log_of(run: &RunId) -> Arc<MemoryStores> {
    let log = Arc::new(MemoryStores::shared());
    log.admit(new_run(run.as_str(), "thread-1"))
        .await
        .expect("admitted");
    log
}

pub(crate) fn run(text: &str) -> RunId {
    RunId::parse(text).expect("a valid id")
}

/// Publishes the events `from..=to` of a run, whose data are their numbers.
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
    timeout(PATIENCE, view.items.next())
        .await
        .expect("an item or the end should have come")
}

/// Takes the next events, which must carry these numbers in their ids and data.
pub(crate) async fn expect(view: &mut Subscription, numbers: std::ops::RangeInclusive<u64>) {
    for number in numbers {
        let item = timeout(PATIENCE, view.items.next()).await;
        match item.unwrap_or_else(|_| panic!("event {number} should have come")) {
            Some(StreamItem::Event(event)) => {
                assert_eq!(event.id.seq, number);
                assert_eq!(event.data.into_bytes(), number.to_string());
            }
            other => panic!("expected event {number}, got {other:?}"),
        }
    }
}

/// Everything up to the end.
pub(crate) async fn rest(view: &mut Subscription) -> Vec<StreamItem> {
    let mut items = Vec::new();
    while let Some(item) = next(view).await {
        items.push(item);
    }
    items
}

/// Asks until `holds`.
pub(crate) async fn until<F: Future<Output = bool>>(what: &str, holds: impl Fn() -> F) {
    let wait = async {
        while !holds().await {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(PATIENCE, wait)
        .await
        .unwrap_or_else(|_| panic!("waited in vain: {what}"));
}

/// A server of a test's own.
pub(crate) struct Server {
    pub(crate) port: u16,
    /// Bound and never listening: nobody else gets the port, also while the server is away.
    _reserved: TcpSocket,
    data: tempfile::TempDir,
    persists: bool,
    process: Option<Child>,
}

impl Server {
    /// A server that keeps its data over restarts only if it `persists`.
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

    /// As `kill -9` does.
    pub(crate) fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().expect("killed");
            process.wait().expect("gone");
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Says something to the server.
    pub(crate) async fn tell(&self, words: &[&str]) -> redis::Value {
        ask(&self.url(), words).await
    }
}

async fn connect(url: &str) -> redis::RedisResult<MultiplexedConnection> {
    let config = redis::AsyncConnectionConfig::new().set_response_timeout(Some(PATIENCE));
    let mut connection = redis::Client::open(url)?
        .get_multiplexed_async_connection_with_config(&config)
        .await?;
    redis::cmd("PING")
        .exec_async(&mut connection)
        .await
        .map(|()| connection)
}

/// What a server answers to these words.
pub(crate) async fn ask(url: &str, words: &[&str]) -> redis::Value {
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

/// Passes bytes on, and when told to, cuts the connection once something was asked and before the answer.
pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    /// Where new connections lead.
    pub(crate) leads_to: Arc<AtomicU16>,
    /// Every connection loses its next answer while this is set.
    pub(crate) loses_answers: Arc<AtomicBool>,
    /// Answers lost so far.
    pub(crate) lost: Arc<AtomicU32>,
    tasks: Tasks,
}

impl Proxy {
    pub(crate) async fn before(port: u16) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .await
            .expect("a port");
        let address = listener.local_addr().expect("an address");
        let (loses_answers, lost, tasks) = (
            Arc::new(AtomicBool::new(false)),
            Arc::new(AtomicU32::new(0)),
            Tasks::new(),
        );
        let leads_to = Arc::new(AtomicU16::new(port));
        let (cuts, count, pipes, target) = (
            loses_answers.clone(),
            lost.clone(),
            tasks.clone(),
            leads_to.clone(),
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
            leads_to,
            loses_answers,
            lost,
            tasks,
        }
    }

    /// Ends every connection, and takes no more.
    pub(crate) async fn close(&self) {
        self.tasks.shut_down().await;
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://{}", self.address)
    }
}

async fn pipe(mut client: TcpStream, mut server: TcpStream, cuts: &AtomicBool, count: &AtomicU32) {
    let (mut asked, mut answered) = (vec![0; 64 * 1024], vec![0; 64 * 1024]);
    loop {
        tokio::select! {
            read = client.read(&mut asked) => match read {
                Ok(n) if n > 0 && server.write_all(&asked[..n]).await.is_ok() => {}
                _ => return,
            },
            read = server.read(&mut answered) => match read {
                Ok(_) if cuts.swap(false, Ordering::AcqRel) => {
                    count.fetch_add(1, Ordering::AcqRel);
                    return;
                }
                Ok(n) if n > 0 && client.write_all(&answered[..n]).await.is_ok() => {}
                _ => return,
            },
        }
    }
}

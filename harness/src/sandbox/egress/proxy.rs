//! The proxy at the other end of a sandbox' socket.

use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixListener as StdListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::head::{self, Asked, BadHead};
use super::tunnel::carry;
use super::{Way, WayOut};
use crate::config::{hold_folder, try_hold_folder};
use crate::net::{Denied, HostRules, Lookup, Target, is_own};
use crate::runtime::tasks::{TaskKind, Tasks};

/// What the names of folders with sockets begin with.
const PREFIX: &str = "egress-";
/// How many hosts that were refused are told of for each command.
const MOST_TOLD: usize = 20;

/// What one command is given.
#[derive(Debug, Clone, Copy)]
pub struct ProxyLimits {
    /// Connections at once; others wait.
    pub connections: usize,
    /// Bytes of a request's head.
    pub head_bytes: usize,
    /// How long a client may take for it.
    pub head: Duration,
    /// How long a host may take to accept a connection, at each of its addresses.
    pub connect: Duration,
    /// How long all of that may take.
    pub connect_at_all: Duration,
}

impl Default for ProxyLimits {
    fn default() -> Self {
        let (head, connect, connect_at_all) = (
            Duration::from_secs(10),
            Duration::from_secs(10),
            Duration::from_secs(30),
        );
        Self {
            connections: 64,
            head_bytes: 16 * 1024,
            head,
            connect,
            connect_at_all,
        }
    }
}

/// Connects commands with the hosts that its rules allow.
#[derive(Debug)]
pub struct EgressProxy {
    folder: tempfile::TempDir,
    /// Says that the folder is in use.
    _held: File,
    ways: AtomicU64,
    proxy: Arc<Proxy>,
}

#[derive(Debug)]
struct Proxy {
    rules: HostRules,
    lookup: Arc<dyn Lookup>,
    limits: ProxyLimits,
}

/// The way of one command, until it is dropped.
#[derive(Debug)]
struct OpenWay {
    socket: PathBuf,
    tasks: Tasks,
}

/// A connection of a command.
#[derive(Debug, Clone)]
struct Serving {
    proxy: Arc<Proxy>,
    /// The hosts that the command was kept from, as far as they were told.
    told: Arc<Mutex<HashSet<String>>>,
}

/// What a client is answered instead of a connection.
#[derive(Debug, thiserror::Error)]
enum Refusal {
    #[error(transparent)]
    Head(#[from] BadHead),
    #[error("the request's head is too long")]
    TooLong,
    #[error("sandbox.network: {0}")]
    Denied(#[from] Denied),
    #[error("{0} does not answer: {1}")]
    Unreachable(Target, io::Error),
}

impl EgressProxy {
    /// A proxy whose sockets lie beneath `folder`.
    pub fn new(
        folder: &Path,
        rules: HostRules,
        lookup: Arc<dyn Lookup>,
        limits: ProxyLimits,
    ) -> io::Result<Self> {
        let _turn = hold_folder(folder)?;
        remove_left(folder)?;
        // Another process may have the same folder.
        let folder = tempfile::Builder::new().prefix(PREFIX).tempdir_in(folder)?;
        let held = hold_folder(folder.path())?;
        Ok(Self {
            folder,
            _held: held,
            ways: AtomicU64::new(0),
            proxy: Arc::new(Proxy {
                rules,
                lookup,
                limits,
            }),
        })
    }
}

impl WayOut for EgressProxy {
    /// Needs a runtime.
    fn open(&self) -> io::Result<Box<dyn Way>> {
        let name = self.ways.fetch_add(1, Ordering::Relaxed).to_string();
        let listener = bind(self.folder.path(), &name)?;
        let tasks = Tasks::new();
        let (spawner, serving) = (
            tasks.clone(),
            Serving {
                proxy: self.proxy.clone(),
                told: Arc::default(),
            },
        );
        tasks.spawn(TaskKind::Service, "egress-way", async move {
            let stopped = spawner.token().clone();
            stopped
                .run_until_cancelled(accept(listener, &serving, &spawner))
                .await;
        });
        Ok(Box::new(OpenWay {
            socket: self.folder.path().join(name),
            tasks,
        }))
    }

    fn hosts(&self) -> String {
        self.proxy.rules.to_string()
    }
}

impl Way for OpenWay {
    fn socket(&self) -> &Path {
        &self.socket
    }
}

impl Drop for OpenWay {
    fn drop(&mut self) {
        self.tasks.token().cancel();
        // The whole folder may be gone already.
        let _gone = std::fs::remove_file(&self.socket);
    }
}

/// Serves all who come, so many at a time.
async fn accept(listener: UnixListener, serving: &Serving, tasks: &Tasks) {
    let places = Arc::new(Semaphore::new(serving.proxy.limits.connections));
    while let Ok(place) = places.clone().acquire_owned().await {
        let Ok((client, _)) = listener.accept().await else {
            // Without descriptors for the moment: clients wait.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let (serving, stopped) = (serving.clone(), tasks.token().clone());
        tasks.spawn(TaskKind::Service, "egress-connection", async move {
            let _place = place;
            // Broken connections are their ends' affair.
            let _ended = stopped.run_until_cancelled(serving.serve(client)).await;
        });
    }
}

/// Removes the folders of proxies that ended without doing so. The caller holds `folder`.
fn remove_left(folder: &Path) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if entry
            .file_name()
            .as_encoded_bytes()
            .starts_with(PREFIX.as_bytes())
            && try_hold_folder(&entry.path())?.is_some()
        {
            std::fs::remove_dir_all(entry.path())?;
        }
    }
    Ok(())
}

/// By way of the folder's descriptor: the address of a socket is shorter than a path may be.
fn bind(folder: &Path, name: &str) -> io::Result<UnixListener> {
    let opened = std::fs::File::open(folder)?;
    let listener = StdListener::bind(format!("/proc/self/fd/{}/{name}", opened.as_raw_fd()))?;
    listener.set_nonblocking(true)?;
    UnixListener::from_std(listener)
}

impl Serving {
    async fn serve(&self, mut client: UnixStream) -> io::Result<()> {
        let mut bytes = Vec::new();
        let connected =
            match timeout(self.proxy.limits.head, self.head(&mut client, &mut bytes)).await {
                Err(_late) => return Ok(()),
                Ok(Err(error)) => return Err(error),
                Ok(Ok(None)) => return Ok(()),
                Ok(Ok(Some(Err(refusal)))) => Err(refusal),
                Ok(Ok(Some(Ok(asked)))) => self.connect(&asked).await.map(|host| (asked, host)),
            };
        match connected {
            Err(refusal) => {
                client.write_all(answer(&refusal).as_bytes()).await?;
                client.shutdown().await
            }
            Ok((asked, mut host)) => {
                match &asked.passed_on {
                    Some(head) => host.write_all(head).await?,
                    None => {
                        client
                            .write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")
                            .await?
                    }
                }
                host.write_all(&bytes[asked.length..]).await?;
                carry(client, host).await
            }
        }
    }

    /// Reads until the head is whole; `None` when the client leaves before. Afterwards `bytes` may hold more than the head.
    async fn head(
        &self,
        client: &mut UnixStream,
        bytes: &mut Vec<u8>,
    ) -> io::Result<Option<Result<Asked, Refusal>>> {
        loop {
            let mut piece = [0; 4096];
            let read = client.read(&mut piece).await?;
            if read == 0 {
                return Ok(None);
            }
            bytes.extend_from_slice(&piece[..read]);
            match head::read(bytes) {
                Ok(Some(asked)) => return Ok(Some(Ok(asked))),
                Ok(None) if bytes.len() >= self.proxy.limits.head_bytes => {
                    return Ok(Some(Err(Refusal::TooLong)));
                }
                Ok(None) => {}
                Err(bad) => return Ok(Some(Err(bad.into()))),
            }
        }
    }

    async fn connect(&self, asked: &Asked) -> Result<TcpStream, Refusal> {
        let usual = asked.passed_on.is_some().then_some(80);
        let (target, addresses) = self
            .proxy
            .judged(asked, usual)
            .await
            .inspect_err(|denied| self.tell(denied))?;
        let connected = timeout(
            self.proxy.limits.connect_at_all,
            self.proxy.first_of(&addresses, target.port),
        )
        .await;
        connected
            .unwrap_or_else(|_late| Err(io::ErrorKind::TimedOut.into()))
            .map_err(|error| Refusal::Unreachable(target, error))
    }

    fn tell(&self, denied: &Denied) {
        let mut told = self.told.lock();
        if told.len() < MOST_TOLD && told.insert(denied.to_string()) {
            tracing::warn!(%denied, "a sandboxed command was kept from a host");
        }
    }
}

impl Proxy {
    /// Connects to the first address that accepts.
    async fn first_of(&self, addresses: &[IpAddr], port: u16) -> io::Result<TcpStream> {
        let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
        for address in addresses {
            match timeout(
                self.limits.connect,
                TcpStream::connect(SocketAddr::new(*address, port)),
            )
            .await
            {
                Ok(Ok(host)) => return Ok(host),
                Ok(Err(error)) => last = error,
                Err(_late) => last = io::ErrorKind::TimedOut.into(),
            }
        }
        Err(last)
    }

    async fn judged(
        &self,
        asked: &Asked,
        usual: Option<u16>,
    ) -> Result<(Target, Vec<IpAddr>), Denied> {
        let target = self.rules.target(&asked.named, usual)?;
        let found = match target.address {
            Some(address) => vec![address],
            None => self.lookup.lookup(&target.host).await,
        };
        let addresses = self.rules.judge(&target, found)?;
        // A machine's own public address leads to all that it serves to itself.
        if addresses
            .iter()
            .any(|address| is_own(*address) && !self.rules.lists(*address, target.port))
        {
            return Err(Denied::Private(target));
        }
        Ok((target, addresses))
    }
}

/// The setting stands in the first line: that is all that programs show of a connection that is refused.
fn answer(refusal: &Refusal) -> String {
    let status = match refusal {
        Refusal::Head(_) | Refusal::Denied(Denied::Malformed) => "400 Bad Request",
        Refusal::TooLong => "431 Request Header Fields Too Large",
        Refusal::Denied(Denied::Unknown(_)) | Refusal::Unreachable(..) => "502 Bad Gateway",
        Refusal::Denied(_) => "403 Forbidden by sandbox.network",
    };
    let text = format!("{refusal}\n");
    let length = text.len();
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{text}"
    )
}

#[cfg(test)]
#[path = "proxy_tests.rs"]
mod tests;

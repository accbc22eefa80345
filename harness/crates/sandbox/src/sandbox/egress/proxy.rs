//! The proxy at the outer end of a sandbox's socket.

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

use super::head::{self, BadHead, ProxyRequest};
use super::tunnel::copy_both_ways;
use super::{EgressEndpoint, EgressProvider};
use deerflow_core::config::{lock_folder, try_lock_folder};
use deerflow_core::net::{Denied, HostRules, Lookup, Target, is_own};
use deerflow_core::tasks::{TaskKind, Tasks};

/// Prefix of folders with sockets.
const PREFIX: &str = "egress-";
/// Maximum number of denied hosts that are logged per command.
const MAX_LOGGED_DENIALS: usize = 20;

/// Limits per command.
#[derive(Debug, Clone, Copy)]
pub struct ProxyLimits {
    /// Concurrent connections; further ones wait.
    pub connections: usize,
    /// Maximum size of a request head, in bytes.
    pub head_bytes: usize,
    /// Timeout for receiving the head.
    pub head: Duration,
    /// Timeout for connecting to one address of a host.
    pub connect: Duration,
    /// Timeout for connecting to all addresses of a host.
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

/// Connects commands to the hosts that its rules allow.
#[derive(Debug)]
pub struct EgressProxy {
    folder: tempfile::TempDir,
    /// Lock that marks the folder as in use.
    _folder_lock: File,
    next_socket: AtomicU64,
    proxy: Arc<Proxy>,
}

#[derive(Debug)]
struct Proxy {
    rules: HostRules,
    lookup: Arc<dyn Lookup>,
    limits: ProxyLimits,
}

/// Endpoint of one command, until it is dropped.
#[derive(Debug)]
struct CommandEgress {
    socket: PathBuf,
    tasks: Tasks,
}

/// A connection of a command.
#[derive(Debug, Clone)]
struct Connection {
    proxy: Arc<Proxy>,
    /// Denied hosts of the command that have been logged.
    logged: Arc<Mutex<HashSet<String>>>,
}

/// Reason why a client gets no connection.
#[derive(Debug, thiserror::Error)]
enum Refusal {
    #[error(transparent)]
    Head(#[from] BadHead),
    #[error("the request head is too long")]
    TooLong,
    #[error("sandbox.network: {0}")]
    Denied(#[from] Denied),
    #[error("{0} is unreachable: {1}")]
    Unreachable(Target, io::Error),
}

impl EgressProxy {
    /// Creates a proxy whose sockets lie beneath `folder`.
    pub fn new(
        folder: &Path,
        rules: HostRules,
        lookup: Arc<dyn Lookup>,
        limits: ProxyLimits,
    ) -> io::Result<Self> {
        let _lock = lock_folder(folder)?;
        remove_stale(folder)?;
        // Another process may use the same folder.
        let folder = tempfile::Builder::new().prefix(PREFIX).tempdir_in(folder)?;
        let folder_lock = lock_folder(folder.path())?;
        Ok(Self {
            folder,
            _folder_lock: folder_lock,
            next_socket: AtomicU64::new(0),
            proxy: Arc::new(Proxy {
                rules,
                lookup,
                limits,
            }),
        })
    }
}

impl EgressProvider for EgressProxy {
    /// Must be called within a runtime.
    fn open(&self) -> io::Result<Box<dyn EgressEndpoint>> {
        let name = self.next_socket.fetch_add(1, Ordering::Relaxed).to_string();
        let listener = bind(self.folder.path(), &name)?;
        let tasks = Tasks::new();
        let (spawner, serving) = (
            tasks.clone(),
            Connection {
                proxy: self.proxy.clone(),
                logged: Arc::default(),
            },
        );
        tasks.spawn(TaskKind::Service, "egress-endpoint", async move {
            let stopped = spawner.token().clone();
            stopped
                .run_until_cancelled(accept(listener, &serving, &spawner))
                .await;
        });
        Ok(Box::new(CommandEgress {
            socket: self.folder.path().join(name),
            tasks,
        }))
    }

    fn hosts(&self) -> String {
        self.proxy.rules.to_string()
    }
}

impl EgressEndpoint for CommandEgress {
    fn socket(&self) -> &Path {
        &self.socket
    }
}

impl Drop for CommandEgress {
    fn drop(&mut self) {
        self.tasks.token().cancel();
        // The whole folder may already be removed.
        let _gone = std::fs::remove_file(&self.socket);
    }
}

/// Serves clients, with a limited number of concurrent connections.
async fn accept(listener: UnixListener, serving: &Connection, tasks: &Tasks) {
    let permits = Arc::new(Semaphore::new(serving.proxy.limits.connections));
    while let Ok(permit) = permits.clone().acquire_owned().await {
        let Ok((client, _)) = listener.accept().await else {
            // Out of file descriptors: clients wait.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let (serving, stopped) = (serving.clone(), tasks.token().clone());
        tasks.spawn(TaskKind::Service, "egress-connection", async move {
            let _permit = permit;
            // The failure of a connection affects only its client and its server.
            let _ended = stopped.run_until_cancelled(serving.serve(client)).await;
        });
    }
}

/// Removes the folders of dead proxies. The caller holds the lock of `folder`.
fn remove_stale(folder: &Path) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if entry
            .file_name()
            .as_encoded_bytes()
            .starts_with(PREFIX.as_bytes())
            && try_lock_folder(&entry.path())?.is_some()
        {
            std::fs::remove_dir_all(entry.path())?;
        }
    }
    Ok(())
}

/// Binds through the folder's descriptor, because a socket address is limited to about 100 bytes,
/// less than a path may have.
fn bind(folder: &Path, name: &str) -> io::Result<UnixListener> {
    let opened = std::fs::File::open(folder)?;
    let listener = StdListener::bind(format!("/proc/self/fd/{}/{name}", opened.as_raw_fd()))?;
    listener.set_nonblocking(true)?;
    UnixListener::from_std(listener)
}

impl Connection {
    async fn serve(&self, mut client: UnixStream) -> io::Result<()> {
        let mut bytes = Vec::new();
        let connected = match timeout(self.proxy.limits.head, self.head(&mut client, &mut bytes))
            .await
        {
            Err(_late) => return Ok(()),
            Ok(Err(error)) => return Err(error),
            Ok(Ok(None)) => return Ok(()),
            Ok(Ok(Some(Err(refusal)))) => Err(refusal),
            Ok(Ok(Some(Ok(request)))) => self.connect(&request).await.map(|host| (request, host)),
        };
        match connected {
            Err(refusal) => {
                client
                    .write_all(refusal_response(&refusal).as_bytes())
                    .await?;
                client.shutdown().await
            }
            Ok((request, mut host)) => {
                match &request.forwarded_head {
                    Some(head) => host.write_all(head).await?,
                    None => {
                        client
                            .write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")
                            .await?
                    }
                }
                host.write_all(&bytes[request.length..]).await?;
                copy_both_ways(client, host).await
            }
        }
    }

    /// Reads until the head is complete; `None` if the client disconnects before. `bytes` may then
    /// contain more than the head.
    async fn head(
        &self,
        client: &mut UnixStream,
        bytes: &mut Vec<u8>,
    ) -> io::Result<Option<Result<ProxyRequest, Refusal>>> {
        loop {
            let mut piece = [0; 4096];
            let read = client.read(&mut piece).await?;
            if read == 0 {
                return Ok(None);
            }
            bytes.extend_from_slice(&piece[..read]);
            match head::read(bytes) {
                Ok(Some(request)) => return Ok(Some(Ok(request))),
                Ok(None) if bytes.len() >= self.proxy.limits.head_bytes => {
                    return Ok(Some(Err(Refusal::TooLong)));
                }
                Ok(None) => {}
                Err(bad) => return Ok(Some(Err(bad.into()))),
            }
        }
    }

    async fn connect(&self, request: &ProxyRequest) -> Result<TcpStream, Refusal> {
        let default_port = request.forwarded_head.is_some().then_some(80);
        let (target, addresses) = self
            .proxy
            .resolve_allowed(request, default_port)
            .await
            .inspect_err(|denied| self.log_denied(denied))?;
        let connected = timeout(
            self.proxy.limits.connect_at_all,
            self.proxy.connect_first(&addresses, target.port),
        )
        .await;
        connected
            .unwrap_or_else(|_late| Err(io::ErrorKind::TimedOut.into()))
            .map_err(|error| Refusal::Unreachable(target, error))
    }

    fn log_denied(&self, denied: &Denied) {
        let mut logged = self.logged.lock();
        if logged.len() < MAX_LOGGED_DENIALS && logged.insert(denied.to_string()) {
            tracing::warn!(%denied, "denied a host to a sandboxed command");
        }
    }
}

impl Proxy {
    /// Connects to the first address that accepts.
    async fn connect_first(&self, addresses: &[IpAddr], port: u16) -> io::Result<TcpStream> {
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

    async fn resolve_allowed(
        &self,
        request: &ProxyRequest,
        default_port: Option<u16>,
    ) -> Result<(Target, Vec<IpAddr>), Denied> {
        let target = self.rules.target(&request.authority, default_port)?;
        let found = match target.address {
            Some(address) => vec![address],
            None => self.lookup.lookup(&target.host).await,
        };
        let addresses = self.rules.check_resolved(&target, found)?;
        // A public address of this machine reaches all its local services.
        if addresses
            .iter()
            .any(|address| is_own(*address) && !self.rules.lists(*address, target.port))
        {
            return Err(Denied::Private(target));
        }
        Ok((target, addresses))
    }
}

/// The status line names the setting: programs show no more than this line of a rejected
/// connection.
fn refusal_response(refusal: &Refusal) -> String {
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

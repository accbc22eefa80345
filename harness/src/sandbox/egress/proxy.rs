//! The proxy at the other end of a sandbox' socket.

use std::collections::HashSet;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixListener as StdListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::WayOut;
use super::head::{self, Asked, BadHead};
use super::tunnel::carry;
use crate::net::{Denied, HostRules, Lookup, Target};
use crate::runtime::tasks::{TaskKind, Tasks};

/// The file of the socket.
const SOCKET: &str = "proxy";
/// How many hosts that were refused are remembered, so that each is told of once.
const MOST_TOLD: usize = 1_000;

/// What clients of the proxy are given.
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
}

impl Default for ProxyLimits {
    fn default() -> Self {
        Self { connections: 256, head_bytes: 16 * 1024, head: Duration::from_secs(10), connect: Duration::from_secs(10) }
    }
}

/// Connects those who come to its socket with the hosts that its rules allow, until it is dropped.
#[derive(Debug)]
pub struct EgressProxy {
    folder: tempfile::TempDir,
    hosts: String,
    tasks: Tasks,
}

#[derive(Debug)]
struct Proxy {
    rules: HostRules,
    lookup: Arc<dyn Lookup>,
    limits: ProxyLimits,
    told: Mutex<HashSet<String>>,
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
    /// A proxy at a socket of its own beneath `folder`. Needs a runtime.
    pub fn start(folder: &Path, rules: HostRules, lookup: Arc<dyn Lookup>, limits: ProxyLimits) -> io::Result<Self> {
        std::fs::create_dir_all(folder)?;
        // Another process may have the same folder.
        let folder = tempfile::Builder::new().prefix("egress-").tempdir_in(folder)?;
        let listener = bind(folder.path())?;
        let hosts = rules.to_string();
        let proxy = Arc::new(Proxy { rules, lookup, limits, told: Mutex::default() });
        let (tasks, connections) = (Tasks::new(), Arc::new(Semaphore::new(limits.connections)));
        let (spawner, stopped) = (tasks.clone(), tasks.token().clone());
        tasks.spawn(TaskKind::Service, "egress-proxy", async move {
            let serving = async {
                loop {
                    let Ok(place) = connections.clone().acquire_owned().await else { return };
                    // Without descriptors for the moment: clients wait.
                    let Ok((client, _)) = listener.accept().await else {
                        tokio::time::sleep(Duration::from_millis(50)).await;
                        continue;
                    };
                    let (proxy, stopped) = (proxy.clone(), spawner.token().clone());
                    spawner.spawn(TaskKind::Service, "egress-connection", async move {
                        let _place = place;
                        // Broken connections are their ends' affair.
                        let _ended = stopped.run_until_cancelled(proxy.serve(client)).await;
                    });
                }
            };
            stopped.run_until_cancelled(serving).await;
        });
        Ok(Self { folder, hosts, tasks })
    }
}

impl WayOut for EgressProxy {
    fn socket(&self) -> PathBuf {
        self.folder.path().join(SOCKET)
    }

    fn hosts(&self) -> String {
        self.hosts.clone()
    }
}

impl Drop for EgressProxy {
    fn drop(&mut self) {
        self.tasks.token().cancel();
    }
}

/// By way of the folder's descriptor: the address of a socket is shorter than a path may be.
fn bind(folder: &Path) -> io::Result<UnixListener> {
    let opened = std::fs::File::open(folder)?;
    let listener = StdListener::bind(format!("/proc/self/fd/{}/{SOCKET}", opened.as_raw_fd()))?;
    listener.set_nonblocking(true)?;
    UnixListener::from_std(listener)
}

impl Proxy {
    async fn serve(&self, mut client: UnixStream) -> io::Result<()> {
        let mut bytes = Vec::new();
        let connected = match timeout(self.limits.head, self.head(&mut client, &mut bytes)).await {
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
                    None => client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await?,
                }
                host.write_all(&bytes[asked.length..]).await?;
                carry(client, host).await
            }
        }
    }

    /// Reads until the head is whole; `None` when the client leaves before. Afterwards `bytes` may hold more than the head.
    async fn head(&self, client: &mut UnixStream, bytes: &mut Vec<u8>) -> io::Result<Option<Result<Asked, Refusal>>> {
        loop {
            let mut piece = [0; 4096];
            let read = client.read(&mut piece).await?;
            if read == 0 {
                return Ok(None);
            }
            bytes.extend_from_slice(&piece[..read]);
            match head::read(bytes) {
                Ok(Some(asked)) => return Ok(Some(Ok(asked))),
                Ok(None) if bytes.len() >= self.limits.head_bytes => return Ok(Some(Err(Refusal::TooLong))),
                Ok(None) => {}
                Err(bad) => return Ok(Some(Err(bad.into()))),
            }
        }
    }

    async fn connect(&self, asked: &Asked) -> Result<TcpStream, Refusal> {
        let usual = asked.passed_on.is_some().then_some(80);
        let (target, addresses) = self.judged(asked, usual).await.inspect_err(|denied| self.tell(denied))?;
        let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
        for address in addresses {
            match timeout(self.limits.connect, TcpStream::connect(SocketAddr::new(address, target.port))).await {
                Ok(Ok(host)) => return Ok(host),
                Ok(Err(error)) => last = error,
                Err(_late) => last = io::ErrorKind::TimedOut.into(),
            }
        }
        Err(Refusal::Unreachable(target, last))
    }

    async fn judged(&self, asked: &Asked, usual: Option<u16>) -> Result<(Target, Vec<IpAddr>), Denied> {
        let target = self.rules.target(&asked.named, usual)?;
        let found = match target.address {
            Some(address) => vec![address],
            None => self.lookup.lookup(&target.host).await,
        };
        Ok((target.clone(), self.rules.judge(&target, found)?))
    }

    fn tell(&self, denied: &Denied) {
        let mut told = self.told.lock();
        if told.len() < MOST_TOLD && told.insert(denied.to_string()) {
            tracing::warn!(%denied, "a sandboxed command was kept from a host");
        }
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
    format!("HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{text}")
}

#[cfg(test)]
#[path = "proxy_tests.rs"]
mod tests;

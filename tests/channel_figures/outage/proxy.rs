//! HTTP proxy whose network can fail.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Maximum length of the first line of a request.
const MAX_LINE: usize = 64 * 1024;

/// State of the network behind the proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Network {
    /// Bytes pass.
    Works,
    /// Connections are closed, new ones immediately.
    Refuses,
    /// Connections are accepted and stay open, but no byte passes. Those that existed never
    /// recover.
    Silent,
}

/// Running proxy. Dropping it closes all connections.
#[derive(Debug)]
pub(super) struct Proxy {
    address: SocketAddr,
    network: watch::Sender<Network>,
    _accepting: JoinSet<()>,
}

impl Proxy {
    /// Starts a proxy whose network works.
    pub(super) async fn start() -> std::io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let network = watch::Sender::new(Network::Works);
        let mut accepting = JoinSet::new();
        accepting.spawn(accept(listener, network.subscribe()));
        Ok(Self {
            address,
            network,
            _accepting: accepting,
        })
    }

    /// Returns the address for the environment.
    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Changes the state of the network.
    pub(super) fn set(&self, network: Network) {
        self.network.send_replace(network);
    }
}

async fn accept(listener: TcpListener, network: watch::Receiver<Network>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                if let Ok((client, _)) = accepted {
                    connections.spawn(serve(client, network.clone()));
                }
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

/// Serves one connection. A change of the network ends the copying of its bytes.
async fn serve(mut client: TcpStream, mut network: watch::Receiver<Network>) {
    let state = *network.borrow_and_update();
    if state == Network::Works {
        let passing = async {
            let first = first_bytes(&mut client).await?;
            let mut server = TcpStream::connect(target(&first)?).await.ok()?;
            server.write_all(&first).await.ok()?;
            copy_bidirectional(&mut client, &mut server).await.ok()
        };
        tokio::select! {
            _ = passing => return,
            changed = network.changed() => if changed.is_err() {
                return;
            },
        }
    }
    // The server's side is closed here, the client's side stays open in silence.
    if *network.borrow() == Network::Silent {
        std::future::pending::<()>().await;
    }
}

/// Reads the first line of a request, and what arrives with it.
async fn first_bytes(client: &mut TcpStream) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    while !bytes.contains(&b'\n') && bytes.len() < MAX_LINE {
        if client.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
    Some(bytes)
}

/// Returns the host and port of a request such as `GET http://127.0.0.1:80/path HTTP/1.1`.
fn target(request: &[u8]) -> Option<String> {
    let line = request.split(|byte| *byte == b'\n').next()?;
    let line = std::str::from_utf8(line).ok()?;
    let (_, rest) = line.split_once("://")?;
    let end = rest.find(['/', '?', ' '])?;
    Some(rest[..end].to_owned())
}

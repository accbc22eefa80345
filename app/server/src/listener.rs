//! The socket that the server listens on: its address, its queue of connections, and the reason why there is none.

use std::io;
use std::net::SocketAddr;

use tokio::net::{TcpListener, TcpSocket, lookup_host};

use crate::config::Settings;

/// Connections that may wait until they are accepted. The system caps it at `net.core.somaxconn`.
pub const BACKLOG: u32 = 4096;

/// Reason why the server cannot listen.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ListenError {
    /// The host is a name that no resolver knows, or no name at all.
    #[error("GATEWAY_HOST {host:?} does not resolve to an address: {source}")]
    Unresolved {
        /// The host.
        host: String,
        /// The resolver's answer.
        source: io::Error,
    },
    /// Another socket has the port.
    #[error("{address} is in use; set GATEWAY_PORT to a free port, or stop what uses this one")]
    InUse {
        /// Host and port.
        address: String,
    },
    /// The host resolves to an address of another machine.
    #[error("{address} is not an address of this machine; set GATEWAY_HOST to one")]
    Elsewhere {
        /// Host and port.
        address: String,
    },
    /// The user may not take the port.
    #[error("{address} may not be used by this user; set GATEWAY_PORT to 1024 or more")]
    Denied {
        /// Host and port.
        address: String,
    },
    /// Anything else.
    #[error("cannot listen on {address}: {source}")]
    Other {
        /// Host and port.
        address: String,
        /// The system's answer.
        source: io::Error,
    },
}

/// Listens on the host and port of `settings`, on the first of the host's addresses that works.
///
/// # Errors
/// [`ListenError`], for the last of the addresses.
pub async fn listen(settings: &Settings) -> Result<TcpListener, ListenError> {
    let host = settings.bare_host();
    let unresolved = |source| ListenError::Unresolved {
        host: host.to_owned(),
        source,
    };
    let addresses = lookup_host((host, settings.port))
        .await
        .map_err(unresolved)?;
    let mut failed = io::Error::new(io::ErrorKind::NotFound, "no address was found");
    let mut found = false;
    for address in addresses {
        found = true;
        match listen_at(address) {
            Ok(listener) => return Ok(listener),
            Err(error) => failed = error,
        }
    }
    if !found {
        return Err(unresolved(failed));
    }
    let address = format!("{}:{}", settings.host, settings.port);
    Err(match failed.kind() {
        io::ErrorKind::AddrInUse => ListenError::InUse { address },
        io::ErrorKind::AddrNotAvailable => ListenError::Elsewhere { address },
        io::ErrorKind::PermissionDenied => ListenError::Denied { address },
        _ => ListenError::Other {
            address,
            source: failed,
        },
    })
}

fn listen_at(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() {
        TcpSocket::new_v4()
    } else {
        TcpSocket::new_v6()
    }?;
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// The system's cap of [`BACKLOG`]; none where the system does not tell.
pub fn backlog_cap() -> Option<u32> {
    std::fs::read_to_string("/proc/sys/net/core/somaxconn")
        .ok()?
        .trim()
        .parse()
        .ok()
}

/// The sentence about a cap below [`BACKLOG`].
pub fn cap_warning(cap: Option<u32>) -> Option<String> {
    let cap = cap.filter(|cap| *cap < BACKLOG)?;
    Some(format!(
        "net.core.somaxconn lets {cap} connections wait to be accepted, {BACKLOG} are wanted: bursts of clients connect slowly"
    ))
}

#[cfg(test)]
mod tests {
    use harness::config_file::Environment;

    use super::*;

    fn settings(host: &str, port: &str) -> Settings {
        Settings::from_environment(&Environment::of(
            "/",
            [("GATEWAY_HOST", host), ("GATEWAY_PORT", port)],
        ))
        .unwrap()
    }

    #[tokio::test]
    async fn a_host_that_does_not_resolve_is_named() {
        for host in ["no-such-host.invalid", "a b", "::1::"] {
            let error = listen(&settings(host, "0")).await.unwrap_err();
            assert!(
                matches!(error, ListenError::Unresolved { .. }),
                "{host}: {error}"
            );
            assert!(
                error.to_string().contains("does not resolve")
                    && !error.to_string().contains("free port"),
                "{error}"
            );
        }
    }

    #[tokio::test]
    async fn a_port_in_use_and_a_foreign_address_are_told_apart() {
        let first = listen(&settings("127.0.0.1", "0")).await.unwrap();
        let port = first.local_addr().unwrap().port().to_string();
        assert!(matches!(
            listen(&settings("127.0.0.1", &port)).await,
            Err(ListenError::InUse { .. })
        ));
        assert!(matches!(
            listen(&settings("192.0.2.1", "0")).await,
            Err(ListenError::Elsewhere { .. })
        ));
    }

    #[tokio::test]
    async fn an_address_in_brackets_is_listened_on() {
        let listener = listen(&settings("[::1]", "0")).await.unwrap();
        assert!(listener.local_addr().unwrap().ip().is_loopback());
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn thousands_of_connections_wait_to_be_accepted() {
        let listener = listen(&settings("127.0.0.1", "0")).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        // The second number of a listening socket is the length of its queue.
        let table = std::process::Command::new("ss")
            .args(["-ltnH", &format!("sport = :{port}")])
            .output();
        let Ok(table) = table else { return };
        let queue: u32 = String::from_utf8_lossy(&table.stdout)
            .split_whitespace()
            .nth(2)
            .unwrap()
            .parse()
            .unwrap();
        assert_eq!(queue, BACKLOG.min(backlog_cap().unwrap_or(BACKLOG)));
    }

    #[test]
    fn a_cap_below_the_queue_is_told() {
        assert_eq!(cap_warning(Some(4096)), None);
        assert_eq!(cap_warning(None), None);
        assert!(
            cap_warning(Some(128))
                .unwrap()
                .contains("lets 128 connections wait")
        );
    }
}

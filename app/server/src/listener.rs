//! Listening socket of the server: address, accept queue and errors.

use std::io;
use std::net::SocketAddr;

use tokio::net::{TcpListener, TcpSocket, lookup_host};

use crate::config::Settings;

/// Length of the accept queue. The system caps it at `net.core.somaxconn`.
pub const BACKLOG: u32 = 4096;

/// Reason why the server cannot listen.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ListenError {
    /// The host does not resolve, or is not a valid name.
    #[error("GATEWAY_HOST {host:?} does not resolve to an address: {source}")]
    Unresolved {
        /// Configured host name or address.
        host: String,
        /// Error of the resolver.
        source: io::Error,
    },
    /// Another socket uses the port.
    #[error("{address} is in use; set GATEWAY_PORT to a free port, or stop what uses this one")]
    InUse {
        /// Host and port.
        address: String,
    },
    /// The host resolves to an address of another machine.
    #[error("{address} is not an address of this machine; set GATEWAY_HOST to one")]
    NotLocal {
        /// Host and port.
        address: String,
    },
    /// The user may not use the port.
    #[error("{address} may not be used by this user; set GATEWAY_PORT to 1024 or more")]
    Denied {
        /// Host and port.
        address: String,
    },
    /// Any other error.
    #[error("cannot listen on {address}: {source}")]
    Other {
        /// Host and port.
        address: String,
        /// Error of the system.
        source: io::Error,
    },
}

/// Listens on the host and port of `settings`, at the first address of the host that works.
///
/// # Errors
/// The [`ListenError`] of the last address.
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
        io::ErrorKind::AddrNotAvailable => ListenError::NotLocal { address },
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

/// Returns the system's limit for [`BACKLOG`], if known.
pub fn backlog_cap() -> Option<u32> {
    std::fs::read_to_string("/proc/sys/net/core/somaxconn")
        .ok()?
        .trim()
        .parse()
        .ok()
}

/// Returns a warning if the limit is below [`BACKLOG`].
pub fn cap_warning(cap: Option<u32>) -> Option<String> {
    let cap = cap.filter(|cap| *cap < BACKLOG)?;
    Some(format!(
        "net.core.somaxconn limits the accept queue to {cap} connections instead of {BACKLOG}: bursts of clients connect slowly"
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
    async fn unresolvable_host_is_named_in_error() {
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
    async fn used_port_and_foreign_address_give_different_errors() {
        let first = listen(&settings("127.0.0.1", "0")).await.unwrap();
        let port = first.local_addr().unwrap().port().to_string();
        assert!(matches!(
            listen(&settings("127.0.0.1", &port)).await,
            Err(ListenError::InUse { .. })
        ));
        assert!(matches!(
            listen(&settings("192.0.2.1", "0")).await,
            Err(ListenError::NotLocal { .. })
        ));
    }

    #[tokio::test]
    async fn an_address_in_brackets_is_listened_on() {
        let listener = listen(&settings("[::1]", "0")).await.unwrap();
        assert!(listener.local_addr().unwrap().ip().is_loopback());
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn accept_queue_has_configured_length() {
        let listener = listen(&settings("127.0.0.1", "0")).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        // The second number of a listening socket is its queue length.
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
    fn low_backlog_cap_gives_warning() {
        assert_eq!(cap_warning(Some(4096)), None);
        assert_eq!(cap_warning(None), None);
        assert!(
            cap_warning(Some(128))
                .unwrap()
                .contains("limits the accept queue to 128 connections")
        );
    }
}

//! Network egress of a sandbox: a proxy of this process, at a socket that is the only outside
//! object a command can reach.
//!
//! A command's network namespace stays empty. Inside, a relay forwards connections from a loopback
//! port to a Unix socket; at the other end the [`EgressProxy`] parses the requested host, checks
//! its rules, resolves the name itself and connects to the checked addresses. A command cannot
//! bypass it: no name is resolved inside, no datagram leaves, and a direct connection to the socket
//! reaches the same proxy.

use std::fmt;
use std::io;
use std::path::Path;

#[cfg(feature = "http")]
mod head;
#[cfg(feature = "http")]
mod proxy;
#[cfg(target_os = "linux")]
pub(crate) mod relay;
#[cfg(any(feature = "http", target_os = "linux"))]
mod tunnel;

#[cfg(feature = "http")]
pub use proxy::{EgressProxy, ProxyLimits};

/// A proxy of this process.
///
/// ```
/// use std::io;
/// use std::path::{Path, PathBuf};
///
/// use deerflow_sandbox::sandbox::egress::{EgressEndpoint, EgressProvider};
///
/// /// HTTP proxy of another process, which all commands share.
/// #[derive(Debug, Clone)]
/// struct SharedProxy(PathBuf);
///
/// impl EgressProvider for SharedProxy {
///     fn open(&self) -> io::Result<Box<dyn EgressEndpoint>> {
///         Ok(Box::new(self.clone()))
///     }
///
///     fn hosts(&self) -> String {
///         "those that the proxy allows".to_owned()
///     }
/// }
///
/// impl EgressEndpoint for SharedProxy {
///     fn socket(&self) -> &Path {
///         &self.0
///     }
/// }
/// ```
pub trait EgressProvider: fmt::Debug + Send + Sync + 'static {
    /// Opens a private endpoint for one command.
    fn open(&self) -> io::Result<Box<dyn EgressEndpoint>>;

    /// Allowed hosts, as a list for a model.
    fn hosts(&self) -> String;
}

/// Proxy endpoint of one command. On drop it is closed, with all its connections.
///
/// ```
/// use std::path::Path;
///
/// use deerflow_sandbox::sandbox::egress::EgressEndpoint;
/// use tempfile::TempDir;
///
/// /// Socket in a folder that is deleted with the endpoint.
/// #[derive(Debug)]
/// struct Endpoint {
///     _folder: TempDir,
///     socket: Box<Path>,
/// }
///
/// impl EgressEndpoint for Endpoint {
///     fn socket(&self) -> &Path {
///         &self.socket
///     }
/// }
/// ```
pub trait EgressEndpoint: fmt::Debug + Send + Sync + 'static {
    /// Unix socket that accepts HTTP proxy requests.
    fn socket(&self) -> &Path;
}

/// Loopback port inside the sandbox that leads to the proxy.
pub const PROXY_PORT: u16 = 47_128;

/// Environment variables that set the proxy for programs.
pub fn variables() -> Vec<(&'static str, String)> {
    let address = format!("http://127.0.0.1:{PROXY_PORT}");
    let own = "localhost,127.0.0.1,::1";
    let mut all: Vec<_> = ["http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"]
        .map(|name| (name, address.clone()))
        .into();
    // Node honours the other variables only with this one.
    all.extend([
        ("no_proxy", own.to_owned()),
        ("NO_PROXY", own.to_owned()),
        ("NODE_USE_ENV_PROXY", "1".to_owned()),
    ]);
    all
}

// Former names, for crates that were written against them.
#[doc(hidden)]
pub use crate::sandbox::egress::EgressEndpoint as Way;
#[doc(hidden)]
pub use crate::sandbox::egress::EgressProvider as WayOut;

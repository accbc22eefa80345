//! The way out of a sandbox that has one: a proxy of this process, at a socket that is all of the outside a command can reach.
//!
//! A command's network namespace stays empty. Inside, a relay carries connections of a port of its own loopback to a Unix
//! socket; at the other end the [`EgressProxy`] reads which host is meant, asks its rules, looks the name up itself and connects to
//! what was judged. So there is nothing to evade: no name is looked up inside, no datagram leaves, and who goes past the relay meets
//! the same proxy.

use std::fmt;
use std::io;
use std::path::Path;

#[cfg(feature = "http")]
mod head;
#[cfg(feature = "http")]
mod proxy;
pub(crate) mod relay;
mod tunnel;

#[cfg(feature = "http")]
pub use proxy::{EgressProxy, ProxyLimits};

/// A proxy of this process.
pub trait WayOut: fmt::Debug + Send + Sync + 'static {
    /// A way for one command, that no other has a part in.
    fn open(&self) -> io::Result<Box<dyn Way>>;

    /// Which hosts it leads to, as a list that a model reads.
    fn hosts(&self) -> String;
}

/// The way of one command. Dropped, it is closed, with all that is open on it.
pub trait Way: fmt::Debug + Send + Sync + 'static {
    /// The Unix socket at which HTTP proxy requests are taken.
    fn socket(&self) -> &Path;
}

/// The port of a sandbox' loopback that leads to the proxy.
pub const PROXY_PORT: u16 = 47_128;

/// The variables by which programs find the proxy.
pub fn variables() -> Vec<(&'static str, String)> {
    let address = format!("http://127.0.0.1:{PROXY_PORT}");
    let own = "localhost,127.0.0.1,::1";
    let mut all: Vec<_> = ["http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"]
        .map(|name| (name, address.clone()))
        .into();
    // Node looks at the others only when it is told to.
    all.extend([
        ("no_proxy", own.to_owned()),
        ("NO_PROXY", own.to_owned()),
        ("NODE_USE_ENV_PROXY", "1".to_owned()),
    ]);
    all
}

//! HTTP client that resolves each name once, checks the addresses, and connects to exactly those
//! addresses.

use std::fmt;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::{Client, ClientBuilder, Method, RequestBuilder, Url};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::egress::{Egress, Forbidden, host_of};

/// Timeout of a name lookup.
const RESOLVE_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum number of concurrent lookups of a [`SystemLookup`].
const MAX_LOOKUPS: usize = 32;

/// Resolves names to addresses.
///
/// ```
/// use std::net::IpAddr;
///
/// use async_trait::async_trait;
/// use deerflow_core::net::Lookup;
///
/// /// Resolver that knows one name.
/// #[derive(Debug)]
/// struct OneName(&'static str, IpAddr);
///
/// #[async_trait]
/// impl Lookup for OneName {
///     async fn lookup(&self, host: &str) -> Vec<IpAddr> {
///         (host == self.0).then_some(self.1).into_iter().collect()
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let resolver = OneName("db.example", [192, 0, 2, 1].into());
/// assert!(resolver.lookup("other.example").await.is_empty());
/// # }
/// ```
#[async_trait]
pub trait Lookup: Send + Sync + fmt::Debug + 'static {
    /// Returns all addresses of `host`, or an empty list if the name does not exist.
    async fn lookup(&self, host: &str) -> Vec<IpAddr>;
}

/// Resolver of the operating system with limited concurrency. Clones share the limit.
///
/// A lookup blocks a thread until the operating system gives up, even after its caller has stopped
/// waiting. Without the limit, a caller that requests hosts with unresponsive DNS servers could
/// block all threads, including those for file access.
#[derive(Debug, Clone)]
pub struct SystemLookup {
    permits: Arc<Semaphore>,
}

impl Default for SystemLookup {
    fn default() -> Self {
        Self {
            permits: Arc::new(Semaphore::new(MAX_LOOKUPS)),
        }
    }
}

#[async_trait]
impl Lookup for SystemLookup {
    async fn lookup(&self, host: &str) -> Vec<IpAddr> {
        let host = host.to_owned();
        run_blocking_within(&self.permits, RESOLVE_TIMEOUT, move || {
            let addresses = (host.as_str(), 0).to_socket_addrs().into_iter().flatten();
            addresses.map(|address| address.ip()).collect()
        })
        .await
        .unwrap_or_default()
    }
}

/// Runs `work` on a blocking thread. Returns `None` if no permit or no result is available in time.
/// The thread holds its permit until `work` returns, also after the timeout.
async fn run_blocking_within<T: Send + 'static>(
    permits: &Arc<Semaphore>,
    limit: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let result = async {
        let permit = permits.clone().acquire_owned().await.ok()?;
        let thread = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            work()
        });
        thread.await.ok()
    };
    timeout(limit, result).await.ok().flatten()
}

/// HTTP client that connects to no address that its [`Egress`] rules forbid. Clones share
/// connections.
#[derive(Debug, Clone)]
pub struct GuardedClient {
    client: Client,
    egress: Arc<Egress>,
    lookup: Arc<dyn Lookup>,
}

impl GuardedClient {
    /// Creates a client. `adjust` may set timeouts and headers, but not redirects, a proxy or a
    /// resolver.
    pub fn new(
        egress: Egress,
        lookup: Arc<dyn Lookup>,
        adjust: impl FnOnce(ClientBuilder) -> ClientBuilder,
    ) -> reqwest::Result<Self> {
        let egress = Arc::new(egress);
        let dns = GuardedDns {
            egress: egress.clone(),
            lookup: lookup.clone(),
        };
        let client = adjust(Client::builder())
            .dns_resolver(Arc::new(dns))
            // A redirect or a proxy would bypass the address check.
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .build()?;
        Ok(Self {
            client,
            egress,
            lookup,
        })
    }

    /// Creates a request to `url` after checking its form. A name that resolves to a forbidden
    /// address fails when the request is sent.
    pub fn request(&self, method: Method, url: Url) -> Result<RequestBuilder, Forbidden> {
        self.egress.check(&url)?;
        Ok(self.client.request(method, url))
    }

    /// Parses and checks a URL by the rules of this client. Does not resolve its name.
    pub fn read(&self, text: &str) -> Result<Url, Forbidden> {
        self.egress.read(text)
    }

    /// Checks a URL and the addresses that its name resolves to now. Use this for URLs that another
    /// component will call.
    pub async fn resolve(&self, text: &str) -> Result<Url, Forbidden> {
        self.egress.resolve(&*self.lookup, text).await
    }
}

impl Egress {
    /// Checks a URL like [`Egress::read`], and the addresses that its name resolves to now.
    pub async fn resolve(&self, lookup: &dyn Lookup, text: &str) -> Result<Url, Forbidden> {
        let url = self.read(text)?;
        let host = host_of(&url);
        // If private hosts are allowed, no address is forbidden; a literal address was checked by
        // `read`.
        if !self.allow_private && host.parse::<IpAddr>().is_err() {
            self.check_resolved(&host, lookup.lookup(&host).await)?;
        }
        Ok(url)
    }
}

/// Returns the reason if this client refused a request that was sent.
pub fn forbidden(error: &reqwest::Error) -> Option<&Forbidden> {
    let mut cause = std::error::Error::source(error);
    while let Some(next) = cause {
        if let Some(forbidden) = next.downcast_ref() {
            return Some(forbidden);
        }
        cause = next.source();
    }
    None
}

/// Resolver that checks addresses at connection time. Results of earlier checks are not used.
#[derive(Debug)]
struct GuardedDns {
    egress: Arc<Egress>,
    lookup: Arc<dyn Lookup>,
}

impl Resolve for GuardedDns {
    fn resolve(&self, name: Name) -> Resolving {
        let (egress, lookup) = (self.egress.clone(), self.lookup.clone());
        Box::pin(async move {
            let host = name.as_str();
            let addresses =
                egress.check_resolved(host.trim_end_matches('.'), lookup.lookup(host).await)?;
            Ok(Box::new(
                addresses
                    .into_iter()
                    .map(|address| SocketAddr::new(address, 0)),
            ) as Addrs)
        })
    }
}

#[cfg(test)]
#[path = "client_tests.rs"]
mod tests;

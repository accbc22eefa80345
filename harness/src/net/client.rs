//! Calls what may be called: each name is resolved once, judged, and connected to as it was judged.

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

/// How long a name may take to be resolved.
const RESOLVE_LIMIT: Duration = Duration::from_secs(5);
/// How many names a [`SystemLookup`] looks up at once.
const MOST_LOOKUPS: usize = 32;

/// Turns names into addresses.
#[async_trait]
pub trait Lookup: Send + Sync + fmt::Debug + 'static {
    /// All addresses of `host`; none for a name that does not exist.
    async fn lookup(&self, host: &str) -> Vec<IpAddr>;
}

/// The resolver of the system, for so many names at once. Each takes a thread until the system gives up, also when nobody waits for it
/// any more: without a bound, whoever names hosts whose servers keep silent takes all the threads in which files are read. Clones share
/// their places.
#[derive(Debug, Clone)]
pub struct SystemLookup {
    places: Arc<Semaphore>,
}

impl Default for SystemLookup {
    fn default() -> Self {
        Self {
            places: Arc::new(Semaphore::new(MOST_LOOKUPS)),
        }
    }
}

#[async_trait]
impl Lookup for SystemLookup {
    async fn lookup(&self, host: &str) -> Vec<IpAddr> {
        let host = host.to_owned();
        within(&self.places, RESOLVE_LIMIT, move || {
            let found = (host.as_str(), 0).to_socket_addrs().into_iter().flatten();
            found.map(|address| address.ip()).collect()
        })
        .await
        .unwrap_or_default()
    }
}

/// What a thread finds out in time. It keeps its place until it is done, also when that is too late.
async fn within<T: Send + 'static>(
    places: &Arc<Semaphore>,
    limit: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let worked = async {
        let place = places.clone().acquire_owned().await.ok()?;
        let thread = tokio::task::spawn_blocking(move || {
            let _place = place;
            work()
        });
        thread.await.ok()
    };
    timeout(limit, worked).await.ok().flatten()
}

/// A client that calls no address that its [`Egress`] forbids. Clones share connections.
#[derive(Debug, Clone)]
pub struct GuardedClient {
    client: Client,
    egress: Arc<Egress>,
    lookup: Arc<dyn Lookup>,
}

impl GuardedClient {
    /// A client; `adjust` may add limits and headers, not redirects, a proxy or a resolver.
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
            // A redirect or a proxy would lead past the check of the address.
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .build()?;
        Ok(Self {
            client,
            egress,
            lookup,
        })
    }

    /// A request to `url`, if it may be called as far as its form tells; a name that leads home fails when it is sent.
    pub fn request(&self, method: Method, url: Url) -> Result<RequestBuilder, Forbidden> {
        self.egress.check(&url)?;
        Ok(self.client.request(method, url))
    }

    /// Reads an address by the rules of this client.
    pub fn read(&self, text: &str) -> Result<Url, Forbidden> {
        self.egress.read(text)
    }

    /// Refuses an address that may not be called, with its name resolved as it is now. For addresses that somebody else will call.
    pub async fn resolve(&self, text: &str) -> Result<Url, Forbidden> {
        self.egress.resolve(&*self.lookup, text).await
    }
}

impl Egress {
    /// As [`Egress::read`], with the name resolved as it is now.
    pub async fn resolve(&self, lookup: &dyn Lookup, text: &str) -> Result<Url, Forbidden> {
        let url = self.read(text)?;
        let host = host_of(&url);
        // Where private hosts are allowed there is nothing to find out, and a literal address was judged already.
        if !self.allow_private && host.parse::<IpAddr>().is_err() {
            self.judge(&host, lookup.lookup(&host).await)?;
        }
        Ok(url)
    }
}

/// Why a request that was sent was refused here, if it was.
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

/// Resolves names to addresses that may be called, at the moment of the call: what a name meant before does not count.
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
            let found = egress.judge(host.trim_end_matches('.'), lookup.lookup(host).await)?;
            Ok(Box::new(found.into_iter().map(|address| SocketAddr::new(address, 0))) as Addrs)
        })
    }
}

#[cfg(test)]
#[path = "client_tests.rs"]
mod tests;

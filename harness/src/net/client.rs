//! Calls what may be called: each name is resolved once, judged, and connected to as it was judged.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::{Client, ClientBuilder, Method, RequestBuilder, Url};
use tokio::time::timeout;

use super::egress::{Egress, Forbidden, host_of};

/// How long a name may take to be resolved.
const RESOLVE_LIMIT: Duration = Duration::from_secs(5);

/// Turns names into addresses.
#[async_trait]
pub trait Lookup: Send + Sync + fmt::Debug + 'static {
    /// All addresses of `host`; none for a name that does not exist.
    async fn lookup(&self, host: &str) -> Vec<IpAddr>;
}

/// The resolver of the system.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemLookup;

#[async_trait]
impl Lookup for SystemLookup {
    async fn lookup(&self, host: &str) -> Vec<IpAddr> {
        let found = timeout(RESOLVE_LIMIT, tokio::net::lookup_host((host, 0))).await.ok().and_then(Result::ok);
        found.into_iter().flatten().map(|address| address.ip()).collect()
    }
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
    pub fn new(egress: Egress, lookup: Arc<dyn Lookup>, adjust: impl FnOnce(ClientBuilder) -> ClientBuilder) -> reqwest::Result<Self> {
        let egress = Arc::new(egress);
        let dns = GuardedDns { egress: egress.clone(), lookup: lookup.clone() };
        let client = adjust(Client::builder())
            .dns_resolver(Arc::new(dns))
            // A redirect or a proxy would lead past the check of the address.
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .build()?;
        Ok(Self { client, egress, lookup })
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

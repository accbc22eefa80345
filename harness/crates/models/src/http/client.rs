//! HTTP client that all adapters share.

use std::borrow::Cow;
use std::convert::Infallible;
use std::fmt;
use std::mem;
use std::sync::{Arc, OnceLock};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures_util::stream;
use hyper::header::{AUTHORIZATION, CONTENT_LENGTH, HOST, HeaderMap, HeaderValue, USER_AGENT};
use hyper::{Method, Request, StatusCode, Uri};
use hyper_util::client::proxy::matcher::Matcher;
use percent_encoding::percent_decode_str;
use reqwest::{Body, ClientBuilder};
use url::{Position, Url};

use super::connection_pool::{ConnectionPool, IDLE_TIMEOUT, PooledResponse};
use super::connector::{CONNECT_TIMEOUT, KEEPALIVE};
use super::transport_error::{HttpUnavailable, TransportError};

/// Name and version of this client.
const USER_AGENT_VALUE: HeaderValue =
    HeaderValue::from_static(concat!("deerflow/", env!("CARGO_PKG_VERSION")));

/// Shared HTTP client. Clones share the connections.
///
/// Requests use HTTP/1.1, one connection each: a server limits the concurrent requests of an HTTP/2
/// connection, often to 100, and further ones would wait for it. A redirect is returned as it is,
/// because it would forward custom headers with keys to any host.
#[derive(Clone)]
pub struct SharedHttp(Clients);

#[derive(Clone)]
enum Clients {
    /// Client that uses one proxy for all servers.
    Through(reqwest::Client),
    /// Clients that use the proxies of the system's settings.
    System(Arc<SystemClients>),
}

struct SystemClients {
    proxies: Matcher,
    /// Connections to servers without a proxy.
    direct: Arc<ConnectionPool>,
    /// Client for servers behind a proxy. Created on first use.
    proxied: OnceLock<Result<reqwest::Client, HttpUnavailable>>,
}

/// Response whose headers have arrived.
#[derive(Debug)]
pub(crate) enum HttpResponse {
    Direct(PooledResponse),
    Proxied(reqwest::Response),
}

impl HttpResponse {
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Self::Direct(response) => response.status,
            Self::Proxied(response) => response.status(),
        }
    }

    /// Takes the headers out of the response. Header values share the read buffer of the connection,
    /// so the caller should drop them before it reads a long body.
    pub(crate) fn take_headers(&mut self) -> HeaderMap {
        mem::take(match self {
            Self::Direct(response) => &mut response.headers,
            Self::Proxied(response) => response.headers_mut(),
        })
    }

    /// Marks the body as complete, so that its connection can be used again even if the formal end
    /// of the body has not arrived.
    pub(super) fn complete(&mut self) {
        if let Self::Direct(response) = self {
            response.complete();
        }
    }

    /// Returns the next bytes of the body, and `None` at its end.
    pub(crate) async fn chunk(&mut self) -> Result<Option<Bytes>, TransportError> {
        match self {
            Self::Direct(response) => response.chunk().await,
            Self::Proxied(response) => response.chunk().await.map_err(TransportError::from),
        }
    }
}

impl fmt::Debug for SharedHttp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedHttp").finish_non_exhaustive()
    }
}

impl SharedHttp {
    /// Creates a client with its own connections. Uses the system's proxy settings.
    pub fn new() -> Result<Self, HttpUnavailable> {
        let clients = SystemClients {
            proxies: Matcher::from_system(),
            direct: Arc::new(ConnectionPool::new()?),
            proxied: OnceLock::new(),
        };
        Ok(Self(Clients::System(Arc::new(clients))))
    }

    /// Creates a client that uses this proxy for all servers and ignores the system's settings.
    pub(crate) fn through(proxy: &str) -> Result<Self, HttpUnavailable> {
        let refused = || HttpUnavailable("its `proxy` is not an http or https address".to_owned());
        let address = Url::parse(proxy.trim()).map_err(|_| refused())?;
        if !matches!(address.scheme(), "http" | "https") {
            return Err(refused());
        }
        let proxy = reqwest::Proxy::all(address).map_err(|_| refused())?;
        let client = proxied_client(|builder| builder.proxy(proxy))?;
        Ok(Self(Clients::Through(client)))
    }

    /// Posts the consecutive `chunks` of a body and returns the response when its headers arrive.
    /// The chunks are freed as they are sent. Credentials in the address replace those in `headers`.
    pub(crate) async fn post(
        &self,
        url: &Url,
        mut headers: HeaderMap,
        chunks: Vec<Bytes>,
    ) -> Result<HttpResponse, TransportError> {
        let mut url = Cow::Borrowed(url);
        if let Some(credentials) = basic_credentials(&url)? {
            headers.insert(AUTHORIZATION, credentials);
            // Both succeed for an address with a host, which has the credentials.
            let _ = url.to_mut().set_username("");
            let _ = url.to_mut().set_password(None);
        }
        let address: Uri = url
            .as_str()
            .parse()
            .map_err(|error| TransportError::invalid(&error))?;
        let clients = match &self.0 {
            Clients::Through(client) => return post_proxied(client, &url, headers, chunks).await,
            Clients::System(clients) => clients,
        };
        if clients.proxies.intercept(&address).is_none() {
            return post_direct(&clients.direct, &url, address, headers, chunks).await;
        }
        let client = clients
            .proxied
            .get_or_init(|| proxied_client(|builder| builder));
        let client = client.as_ref().map_err(Clone::clone)?;
        post_proxied(client, &url, headers, chunks).await
    }
}

async fn post_direct(
    connections: &Arc<ConnectionPool>,
    url: &Url,
    address: Uri,
    mut headers: HeaderMap,
    chunks: Vec<Bytes>,
) -> Result<HttpResponse, TransportError> {
    let host = &url[Position::BeforeHost..Position::AfterPort];
    let host = HeaderValue::from_str(host).map_err(|error| TransportError::invalid(&error))?;
    headers.entry(HOST).or_insert(host);
    headers.entry(USER_AGENT).or_insert(USER_AGENT_VALUE);
    let mut request = Request::new(chunks.into());
    *request.method_mut() = Method::POST;
    *request.headers_mut() = headers;
    if let Some(path) = address.into_parts().path_and_query {
        *request.uri_mut() = path.into();
    }
    let server = &url[..Position::BeforePath];
    let response = connections.send(server, request).await?;
    Ok(HttpResponse::Direct(response))
}

async fn post_proxied(
    client: &reqwest::Client,
    url: &Url,
    mut headers: HeaderMap,
    chunks: Vec<Bytes>,
) -> Result<HttpResponse, TransportError> {
    let length: usize = chunks.iter().map(Bytes::len).sum();
    headers.insert(CONTENT_LENGTH, length.into());
    let chunks = stream::iter(chunks.into_iter().map(Ok::<_, Infallible>));
    let call = client.post(url.clone()).headers(headers);
    let response = call.body(Body::wrap_stream(chunks)).send().await?;
    Ok(HttpResponse::Proxied(response))
}

/// Creates a client with the limits of direct connections.
fn proxied_client(
    adjust: impl FnOnce(ClientBuilder) -> ClientBuilder,
) -> Result<reqwest::Client, HttpUnavailable> {
    let builder = reqwest::Client::builder()
        .user_agent(USER_AGENT_VALUE)
        .connect_timeout(CONNECT_TIMEOUT)
        .pool_idle_timeout(IDLE_TIMEOUT)
        .redirect(reqwest::redirect::Policy::none())
        .http1_only()
        .tcp_nodelay(true)
        // Compressed streams arrive in blocks, which would delay tokens.
        .no_gzip()
        .tcp_keepalive(KEEPALIVE);
    adjust(builder)
        .build()
        .map_err(|error| HttpUnavailable::new(&error))
}

/// Returns the credentials in an address as the header of basic authentication.
fn basic_credentials(url: &Url) -> Result<Option<HeaderValue>, TransportError> {
    if url.username().is_empty() && url.password().is_none() {
        return Ok(None);
    }
    let mut pair: Vec<u8> = percent_decode_str(url.username()).collect();
    pair.push(b':');
    pair.extend(percent_decode_str(url.password().unwrap_or_default()));
    let value = format!("Basic {}", STANDARD.encode(pair));
    let mut value =
        HeaderValue::from_str(&value).map_err(|error| TransportError::invalid(&error))?;
    value.set_sensitive(true);
    Ok(Some(value))
}

#[cfg(test)]
#[path = "client_tests.rs"]
mod tests;

//! HTTP client that all adapters share.

use std::convert::Infallible;
use std::fmt;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use futures_util::stream;
use hyper::header::{CONTENT_LENGTH, HOST, HeaderMap, HeaderValue, USER_AGENT};
use hyper::{Method, Request, StatusCode, Uri};
use hyper_util::client::proxy::matcher::Matcher;
use reqwest::{Body, Url};
use url::Position;

use super::connection_pool::{
    CONNECT_TIMEOUT, ConnectionPool, IDLE_CONNECTION_TIMEOUT, KEEPALIVE, PooledResponse,
};
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
pub struct SharedHttp(Arc<Clients>);

struct Clients {
    /// Connections to servers without a proxy.
    direct: Arc<ConnectionPool>,
    /// Proxy for all servers, which replaces the system's settings.
    proxy: Option<Url>,
    system_proxies: Matcher,
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

    pub(crate) fn headers(&self) -> &HeaderMap {
        match self {
            Self::Direct(response) => &response.headers,
            Self::Proxied(response) => response.headers(),
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
        Self::with_proxy(None)
    }

    /// Creates a client that uses this proxy for all servers and ignores the system's settings.
    pub(crate) fn through(proxy: &str) -> Result<Self, HttpUnavailable> {
        let refused = || HttpUnavailable("its `proxy` is not an http or https address".to_owned());
        let address = Url::parse(proxy.trim()).map_err(|_| refused())?;
        if !matches!(address.scheme(), "http" | "https") {
            return Err(refused());
        }
        Self::with_proxy(Some(address))
    }

    fn with_proxy(proxy: Option<Url>) -> Result<Self, HttpUnavailable> {
        Ok(Self(Arc::new(Clients {
            direct: Arc::new(ConnectionPool::new()?),
            proxy,
            system_proxies: Matcher::from_system(),
            proxied: OnceLock::new(),
        })))
    }

    /// Posts the consecutive `chunks` of a body and returns the response when its headers arrive.
    /// The chunks are freed as they are sent.
    pub(crate) async fn post(
        &self,
        url: &Url,
        mut headers: HeaderMap,
        chunks: Vec<Bytes>,
    ) -> Result<HttpResponse, TransportError> {
        let address: Uri = url
            .as_str()
            .parse()
            .map_err(|error| TransportError::invalid(&error))?;
        if self.needs_proxy(url, &address) {
            let length: usize = chunks.iter().map(Bytes::len).sum();
            headers.insert(CONTENT_LENGTH, length.into());
            let chunks = stream::iter(chunks.into_iter().map(Ok::<_, Infallible>));
            let call = self.client()?.post(url.clone()).headers(headers);
            let response = call.body(Body::wrap_stream(chunks)).send().await?;
            return Ok(HttpResponse::Proxied(response));
        }
        let host = &url[Position::BeforeHost..Position::AfterPort];
        let host = HeaderValue::from_str(host).map_err(|error| TransportError::invalid(&error))?;
        headers.entry(HOST).or_insert(host);
        headers.entry(USER_AGENT).or_insert(USER_AGENT_VALUE);
        let mut request = Request::new(chunks.into());
        *request.method_mut() = Method::POST;
        *request.headers_mut() = headers;
        if let Some(path) = address.path_and_query() {
            *request.uri_mut() = path.clone().into();
        }
        let server = &url[..Position::BeforePath];
        let response = self.0.direct.send(server, request).await?;
        Ok(HttpResponse::Direct(response))
    }

    /// Reports whether a request needs features that only the client for proxies has. Credentials
    /// in an address become a header there.
    fn needs_proxy(&self, url: &Url, address: &Uri) -> bool {
        self.0.proxy.is_some()
            || !url.username().is_empty()
            || url.password().is_some()
            || self.0.system_proxies.intercept(address).is_some()
    }

    /// Returns the client for requests through proxies, which also serves all other requests.
    fn client(&self) -> Result<&reqwest::Client, HttpUnavailable> {
        let client = self.0.proxied.get_or_init(|| {
            let mut builder = reqwest::Client::builder()
                .user_agent(USER_AGENT_VALUE)
                .connect_timeout(CONNECT_TIMEOUT)
                .pool_idle_timeout(IDLE_CONNECTION_TIMEOUT)
                .redirect(reqwest::redirect::Policy::none())
                .http1_only()
                .tcp_nodelay(true)
                // Compressed streams arrive in blocks, which would delay tokens.
                .no_gzip()
                .tcp_keepalive(KEEPALIVE);
            if let Some(proxy) = &self.0.proxy {
                let proxy = reqwest::Proxy::all(proxy.clone());
                builder = builder.proxy(proxy.map_err(|error| HttpUnavailable::new(&error))?);
            }
            builder
                .build()
                .map_err(|error| HttpUnavailable::new(&error))
        });
        client.as_ref().map_err(Clone::clone)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::ModelErrorKind;
    use crate::http::test_server::{TestResponse, TestServer};
    use crate::http::wire_kit::{ask, model, request};
    use deerflow_core::messages::Message;

    const HELLO: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hello\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

    #[tokio::test]
    async fn provider_is_called_through_configured_proxy() {
        let proxy = TestServer::start([TestResponse::Stream(HELLO.to_owned())]).await;
        for key in ["proxy", "openai_proxy"] {
            let keys =
                json!({"base_url": "http://provider.test/v1", "api_key": "k", key: proxy.address});
            let (message, failure) =
                ask(&*model("openai", keys), request(vec![Message::human("hi")])).await;
            assert_eq!(
                (message.content.text(), failure),
                ("hello".to_owned(), None),
                "{key}"
            );
        }
        let requests = proxy.requests();
        assert!(requests.iter().all(|(head, _)| head.starts_with("post http://provider.test/v1/chat/completions ")), "{requests:?}");
        assert!(
            requests
                .iter()
                .all(|(_, body)| body.get("proxy").or(body.get("openai_proxy")).is_none()),
            "it is not sent"
        );
    }

    #[test]
    fn invalid_proxy_error_hides_the_password() {
        for proxy in ["socks5://user:canary@h:1", "not one", ""] {
            let entry = crate::ModelEntry {
                extra: json!({"base_url": "http://h.test", "proxy": proxy})
                    .as_object()
                    .unwrap()
                    .clone(),
                ..crate::ModelEntry::new("e", "openai", "m")
            };
            let catalog = crate::ModelCatalog::new(
                [entry],
                std::sync::Arc::new(deerflow_core::clock::SystemClock),
            );
            match catalog.get("e") {
                Ok(_) => assert_eq!(proxy, "", "an empty value means no proxy"),
                Err(error) => {
                    assert_eq!(error.kind, ModelErrorKind::Config);
                    assert!(
                        error.message.contains("`proxy`") && !error.message.contains("canary"),
                        "{error}"
                    );
                }
            }
        }
    }
}

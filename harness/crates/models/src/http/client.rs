//! HTTP client that all adapters share.

use std::time::Duration;

/// Timeout of a connection attempt.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Time after which an idle connection is closed.
const IDLE_CONNECTION_TIMEOUT: Duration = Duration::from_secs(90);

/// Shared HTTP client. Clones share the connection pool.
#[derive(Debug, Clone)]
pub struct SharedHttp(reqwest::Client);

/// Error: the client cannot be created, for example because the system's certificates cannot be
/// read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot create the HTTP client: {0}")]
pub struct HttpUnavailable(String);

impl SharedHttp {
    /// Creates a client with its own pool. Uses the system's proxy settings.
    pub fn new() -> Result<Self, HttpUnavailable> {
        Self::built(Self::builder())
    }

    /// Creates a client that uses this proxy for all servers and ignores the system's settings.
    pub(crate) fn through(proxy: &str) -> Result<Self, HttpUnavailable> {
        let refused = || HttpUnavailable("its `proxy` is not an http or https address".to_owned());
        let address = reqwest::Url::parse(proxy.trim()).map_err(|_| refused())?;
        if !matches!(address.scheme(), "http" | "https") {
            return Err(refused());
        }
        Self::built(Self::builder().proxy(reqwest::Proxy::all(address).map_err(|_| refused())?))
    }

    fn builder() -> reqwest::ClientBuilder {
        reqwest::Client::builder()
            .user_agent(concat!("deerflow/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(CONNECT_TIMEOUT)
            .pool_idle_timeout(IDLE_CONNECTION_TIMEOUT)
            // A redirect would forward custom headers with keys to any host.
            .redirect(reqwest::redirect::Policy::none())
            .tcp_nodelay(true)
            // Compressed streams arrive in blocks, which would delay tokens.
            .no_gzip()
            .tcp_keepalive(Duration::from_secs(30))
    }

    fn built(builder: reqwest::ClientBuilder) -> Result<Self, HttpUnavailable> {
        builder
            .build()
            .map(Self)
            .map_err(|error| HttpUnavailable(error.to_string()))
    }

    pub(crate) fn client(&self) -> &reqwest::Client {
        &self.0
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

//! The HTTP client that every adapter shares: one pool, kept warm, made once.

use std::time::Duration;

/// Longer than this nobody waits for a connection.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);
/// How long an idle connection is kept for the next call.
const KEEP_IDLE: Duration = Duration::from_secs(90);

/// A shared client; clones use the same connections.
#[derive(Debug, Clone)]
pub struct SharedHttp(reqwest::Client);

/// The client could not be made, for instance because the system's certificates cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the HTTP client cannot be made: {0}")]
pub struct HttpUnavailable(String);

impl SharedHttp {
    /// A client with its own pool. Takes the system's proxy settings.
    pub fn new() -> Result<Self, HttpUnavailable> {
        Self::built(Self::builder())
    }

    /// A client that reaches all servers through a proxy, whatever the system says.
    pub(in crate::models) fn through(proxy: &str) -> Result<Self, HttpUnavailable> {
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
            .connect_timeout(CONNECT_LIMIT)
            .pool_idle_timeout(KEEP_IDLE)
            // Keys in headers of their own would follow to any host.
            .redirect(reqwest::redirect::Policy::none())
            .tcp_nodelay(true)
            // Compressed streams come in blocks: words would wait for each other.
            .no_gzip()
            .tcp_keepalive(Duration::from_secs(30))
    }

    fn built(builder: reqwest::ClientBuilder) -> Result<Self, HttpUnavailable> {
        builder
            .build()
            .map(Self)
            .map_err(|error| HttpUnavailable(error.to_string()))
    }

    pub(in crate::models) fn client(&self) -> &reqwest::Client {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::messages::Message;
    use crate::models::ModelErrorKind;
    use crate::models::http::test_server::{Answer, TestServer};
    use crate::models::http::wire_kit::{ask, model, request};

    const HELLO: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hello\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

    #[tokio::test]
    async fn a_provider_is_asked_through_the_proxy_of_its_entry() {
        let proxy = TestServer::start([Answer::Stream(HELLO.to_owned())]).await;
        for key in ["proxy", "openai_proxy"] {
            let keys =
                json!({"base_url": "http://provider.test/v1", "api_key": "k", key: proxy.address});
            let (message, fault) =
                ask(&*model("openai", keys), request(vec![Message::human("hi")])).await;
            assert_eq!(
                (message.content.text(), fault),
                ("hello".to_owned(), None),
                "{key}"
            );
        }
        let heard = proxy.heard();
        assert!(heard.iter().all(|(head, _)| head.starts_with("post http://provider.test/v1/chat/completions ")), "{heard:?}");
        assert!(
            heard
                .iter()
                .all(|(_, body)| body.get("proxy").or(body.get("openai_proxy")).is_none()),
            "it is not sent"
        );
    }

    #[test]
    fn what_is_no_proxy_is_told_without_its_password() {
        for proxy in ["socks5://user:canary@h:1", "not one", ""] {
            let entry = crate::models::ModelEntry {
                extra: json!({"base_url": "http://h.test", "proxy": proxy})
                    .as_object()
                    .unwrap()
                    .clone(),
                ..crate::models::ModelEntry::new("e", "openai", "m")
            };
            let catalog = crate::models::ModelCatalog::new(
                [entry],
                std::sync::Arc::new(crate::clock::SystemClock),
            );
            match catalog.get("e") {
                Ok(_) => assert_eq!(proxy, "", "no proxy is asked for"),
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

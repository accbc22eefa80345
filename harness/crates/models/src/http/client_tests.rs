//! Proxies and credentials of requests.

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
    assert!(
        requests
            .iter()
            .all(|(head, _)| head.starts_with("post http://provider.test/v1/chat/completions ")),
        "{requests:?}"
    );
    assert!(
        requests
            .iter()
            .all(|(_, body)| body.get("proxy").or(body.get("openai_proxy")).is_none()),
        "it is not sent"
    );
}

#[tokio::test]
async fn credentials_in_an_address_are_sent_as_basic_authentication() {
    let server = TestServer::start([TestResponse::Stream(HELLO.to_owned())]).await;
    let address = server.address.replace("http://", "http://us%65r:p%40ss@");
    let keys = json!({"base_url": address, "api_key": "k", "default_query": {"v": 1}});
    let (message, failure) =
        ask(&*model("openai", keys), request(vec![Message::human("hi")])).await;
    assert_eq!(
        (message.content.text(), failure),
        ("hello".to_owned(), None)
    );
    let (head, _) = &server.requests()[0];
    let basic = "authorization: basic dxnlcjpwqhnz\r\n";
    assert!(
        head.starts_with("post /chat/completions?v=1 http/1.1\r\n"),
        "{head}"
    );
    assert!(head.contains(basic) && !head.contains("bearer"), "{head}");
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

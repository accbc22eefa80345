//! Tests of addresses that providers may not read.

use super::*;

/// Tools that pass addresses to a provider.
const READERS: [&str; 9] = [
    "browserless.web_fetch",
    "crawl4ai.web_fetch",
    "exa.web_fetch",
    "fastcrw.web_fetch",
    "firecrawl.web_fetch",
    "groundroute.web_fetch",
    "infoquest.web_fetch",
    "jina.web_fetch",
    "tavily.web_fetch",
];

/// Resolver that maps every name to the local network.
#[derive(Debug)]
struct LocalResolver;

#[async_trait::async_trait]
impl Lookup for LocalResolver {
    async fn lookup(&self, _host: &str) -> Vec<IpAddr> {
        vec![IpAddr::from([10, 0, 0, 1])]
    }
}

#[tokio::test]
async fn self_hosted_provider_rejects_names_of_local_network() {
    for kind in READERS {
        let fake = Fake::start([Reply::json(json!({}))]).await;
        let settings =
            json!({ "base_url": fake.url_at("127.0.0.1", ""), "api_key": "k", "token": "k" });
        let factory = WebToolFactory::with(
            Variables::new(),
            Arc::new(LocalResolver),
            RetryBudget::default(),
        )
        .unwrap();
        let tool = factory.tool(&entry(kind, settings)).unwrap().unwrap();
        let args = json!({ "url": "http://deer.test/" })
            .as_object()
            .unwrap()
            .clone();
        let error = tool
            .call(args, &tool_context())
            .await
            .unwrap_err()
            .to_string();
        assert!(
            error.starts_with("Error: this address cannot be read"),
            "{kind} {error}"
        );
        assert!(fake.requests().is_empty(), "{kind}");
    }
}

#[tokio::test]
async fn provider_receives_checked_address() {
    for kind in READERS {
        let sent = r"http://93.184.216.34\@169.254.169.254/";
        let (_, requests) = ask(
            kind,
            Reply::json(json!({})),
            json!({}),
            json!({ "url": sent }),
        )
        .await;
        assert!(
            requests[0]
                .body
                .contains(r#""http://93.184.216.34/@169.254.169.254/""#),
            "{kind} {requests:?}"
        );
    }
}

#[tokio::test]
async fn providers_reject_local_addresses() {
    for kind in READERS.into_iter().chain(["direct.web_fetch"]) {
        for url in [
            "http://127.0.0.1/",
            "http://localhost/",
            "http://[::1]/",
            "http://169.254.169.254/",
            "http://0x7f.1/",
            "file:///etc/passwd",
        ] {
            let (read, requests) = ask(
                kind,
                Reply::json(json!({})),
                json!({}),
                json!({ "url": url }),
            )
            .await;
            assert!(
                read.unwrap_err()
                    .starts_with("Error: this address cannot be read"),
                "{kind} {url}"
            );
            assert!(requests.is_empty(), "{kind} {url}");
        }
    }
}

//! Tests of each provider against a fake server on the loopback: the requests it receives, and the
//! text that a model reads.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::*;
use crate::config::ToolConfig;
use crate::net::{Lookup, SystemLookup};
use crate::runtime::tasks::{TaskKind, Tasks};
use crate::testkit::tool_context;
use crate::tools::Effect;

/// Response of a fake server.
#[derive(Debug, Clone)]
pub(super) struct Reply {
    status: u16,
    headers: String,
    body: Vec<u8>,
    silent: bool,
}

impl Reply {
    pub(super) fn new(status: u16, content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        let headers = if content_type.is_empty() {
            String::new()
        } else {
            format!("content-type: {content_type}\r\n")
        };
        Self {
            status,
            headers,
            body: body.into(),
            silent: false,
        }
    }

    fn json(body: Value) -> Self {
        Self::new(200, "application/json", body.to_string())
    }

    pub(super) fn redirect(to: &str) -> Self {
        Self {
            headers: format!("location: {to}\r\n"),
            ..Self::new(302, "", "")
        }
    }

    pub(super) fn unresponsive() -> Self {
        Self {
            silent: true,
            ..Self::new(200, "", "")
        }
    }
}

/// Request as received.
#[derive(Debug, Clone)]
pub(super) struct RecordedRequest {
    /// Request line and headers.
    pub(super) head: String,
    pub(super) body: String,
}

impl RecordedRequest {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    fn has(&self, header: &str) -> bool {
        self.head
            .to_ascii_lowercase()
            .contains(&header.to_ascii_lowercase())
    }
}

/// Server that returns its responses in order and repeats the last one.
#[derive(Debug)]
pub(super) struct Fake {
    port: u16,
    requests: Arc<Mutex<Vec<RecordedRequest>>>,
    _tasks: Tasks,
}

impl Fake {
    pub(super) async fn start(replies: impl IntoIterator<Item = Reply>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let replies: Vec<Reply> = replies.into_iter().collect();
        let (requests, tasks) = (Arc::<Mutex<Vec<RecordedRequest>>>::default(), Tasks::new());
        let recorded = requests.clone();
        tasks.spawn(TaskKind::Service, "fake provider", async move {
            while let Ok((mut socket, _)) = listener.accept().await {
                let Some(request) = request(&mut socket).await else { continue };
                let at = {
                    let mut recorded = recorded.lock();
                    recorded.push(request);
                    (recorded.len() - 1).min(replies.len() - 1)
                };
                let Reply { status, headers, body, silent } = &replies[at];
                if *silent {
                    let _ = socket.read_u8().await;
                    continue;
                }
                let head = format!("HTTP/1.1 {status} X\r\nconnection: close\r\n{headers}content-length: {}\r\n\r\n", body.len());
                let _ = socket.write_all(head.as_bytes()).await;
                let _ = socket.write_all(body).await;
            }
        });
        Self {
            port,
            requests,
            _tasks: tasks,
        }
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    pub(super) fn url_at(&self, host: &str, path: &str) -> String {
        format!("http://{host}:{}{path}", self.port)
    }

    pub(super) fn requests(&self) -> Vec<RecordedRequest> {
        self.requests.lock().clone()
    }
}

async fn request(socket: &mut TcpStream) -> Option<RecordedRequest> {
    let mut bytes = Vec::new();
    loop {
        if socket.read_buf(&mut bytes).await.unwrap_or(0) == 0 {
            return None;
        }
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        let length = head
            .to_ascii_lowercase()
            .split_once("content-length: ")
            .and_then(|(_, rest)| {
                rest.split("\r\n")
                    .next()
                    .and_then(|length| length.parse::<usize>().ok())
            });
        if body.len() >= length.unwrap_or(0) {
            return Some(RecordedRequest {
                head: head.to_owned(),
                body: body.to_owned(),
            });
        }
    }
}

fn factory() -> WebToolFactory {
    let retry_budget = RetryBudget {
        tries: 3,
        wait: Duration::ZERO,
        longest: Duration::from_secs(5),
    };
    let variables = [(
        "TAVILY_API_KEY".to_owned(),
        "from-the-environment".to_owned(),
    )];
    WebToolFactory::with(
        variables.into_iter().collect(),
        Arc::new(SystemLookup::default()),
        retry_budget,
    )
    .unwrap()
}

fn entry(kind: &str, more: Value) -> ToolConfig {
    let mut entry = json!({ "name": "x", "group": "web", "use": kind });
    entry
        .as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    serde_json::from_value(entry).unwrap()
}

/// Calls a tool and returns the text that a model reads.
async fn call(kind: &str, settings: Value, args: Value) -> Result<String, String> {
    let tool = factory().tool(&entry(kind, settings)).unwrap().unwrap();
    let args = args.as_object().unwrap().clone();
    assert_eq!(tool.effect(&args), Effect::Pure);
    tool.call(args, &tool_context())
        .await
        .map(|output| output.content.text())
        .map_err(|error| error.to_string())
}

/// Same as [`call`] with a fake provider; also returns the received requests.
async fn ask(
    kind: &str,
    reply: Reply,
    settings: Value,
    args: Value,
) -> (Result<String, String>, Vec<RecordedRequest>) {
    let fake = Fake::start([reply]).await;
    let mut all = json!({ "base_url": fake.url_at("127.0.0.1", ""), "api_key": "sk-canary", "token": "sk-canary" });
    all.as_object_mut()
        .unwrap()
        .extend(settings.as_object().unwrap().clone());
    let read = call(kind, all, args).await;
    (read, fake.requests())
}

fn parsed(read: Result<String, String>) -> Value {
    serde_json::from_str(&read.unwrap()).unwrap()
}

const PUBLIC_URL: &str = "http://93.184.216.34/deer";

#[tokio::test]
async fn tavily_searches_and_reads() {
    let found = json!({"results": [
        {"title": "Deer", "url": "https://a.test", "content": "They live in woods.", "score": 1},
        {"title": "no address"}, "odd"
    ]});
    let (read, requests) = ask(
        "deerflow.community.tavily.tools:web_search_tool",
        Reply::json(found),
        json!({"max_results": 3}),
        json!({"query": "deer"}),
    )
    .await;
    assert_eq!(
        requests[0].json(),
        json!({"query": "deer", "max_results": 3})
    );
    assert!(
        requests[0].head.starts_with("POST /search ")
            && requests[0].has("authorization: bearer sk-canary"),
        "{requests:?}"
    );
    let read = read.unwrap();
    assert!(
        read.starts_with("[\n  {\n    \"title\": \"Deer\""),
        "{read}"
    );
    assert_eq!(
        parsed(Ok(read)),
        json!([{"title": "Deer", "url": "https://a.test", "snippet": "They live in woods."}])
    );

    let page = json!({"results": [{"url": PUBLIC_URL, "title": "Deer", "raw_content": "Long text. ".repeat(999)}], "failed_results": []});
    let (read, requests) = ask(
        "tavily.web_fetch",
        Reply::json(page),
        json!({"allow_private_addresses": true}),
        json!({"url": PUBLIC_URL}),
    )
    .await;
    assert_eq!(requests[0].json(), json!({"urls": [PUBLIC_URL]}));
    let read = read.unwrap();
    assert!(
        read.starts_with("# Deer\n\nLong text.")
            && read.chars().count() <= 4_096
            && read.ends_with(" characters]"),
        "{read}"
    );

    let (read, _) = ask(
        "tavily.web_fetch",
        Reply::json(json!({"failed_results": [{"error": "blocked"}]})),
        json!({}),
        json!({"url": PUBLIC_URL}),
    )
    .await;
    assert_eq!(read, Err("Error: blocked".to_owned()));
}

#[tokio::test]
async fn jina_renders_and_main_text_is_extracted() {
    let html = format!(
        "<title>Deer</title><article><h2>Where</h2><p>{}</p></article>",
        "They live in woods, in parks and on hills. ".repeat(20)
    );
    let (read, requests) = ask(
        "deerflow.community.jina_ai.tools:web_fetch_tool",
        Reply::new(200, "text/html", html),
        json!({"timeout": 7}),
        json!({"url": PUBLIC_URL}),
    )
    .await;
    assert_eq!(requests[0].json(), json!({"url": PUBLIC_URL}));
    for header in [
        "POST / ",
        "x-return-format: html",
        "x-timeout: 7",
        "authorization: bearer sk-canary",
    ] {
        assert!(requests[0].has(header), "{header}: {requests:?}");
    }
    let read = read.unwrap();
    assert!(
        read.starts_with("# Deer\n\n") && read.contains("They live in woods"),
        "{read}"
    );
    let (read, _) = ask(
        "jina.web_fetch",
        Reply::new(200, "text/html", " "),
        json!({}),
        json!({"url": PUBLIC_URL}),
    )
    .await;
    assert_eq!(
        read,
        Err("Error: Jina found nothing on this page".to_owned())
    );
}

#[tokio::test]
async fn firecrawl_and_fastcrw_search_and_read() {
    let found = json!({"success": true, "data": {"web": [{"title": "Deer", "url": "https://a.test", "description": "Woods."}]}});
    for (provider, version) in [("firecrawl", "v2"), ("fastcrw", "v1")] {
        let (read, requests) = ask(
            &format!("{provider}.web_search"),
            Reply::json(found.clone()),
            json!({}),
            json!({"query": "deer"}),
        )
        .await;
        assert_eq!(requests[0].json(), json!({"query": "deer", "limit": 5}));
        assert!(
            requests[0]
                .head
                .starts_with(&format!("POST /{version}/search ")),
            "{requests:?}"
        );
        assert_eq!(
            parsed(read),
            json!([{"title": "Deer", "url": "https://a.test", "snippet": "Woods."}])
        );
        let page =
            json!({"success": true, "data": {"markdown": "Woods.", "metadata": {"title": "Deer"}}});
        let (read, requests) = ask(
            &format!("{provider}.web_fetch"),
            Reply::json(page),
            json!({}),
            json!({"url": PUBLIC_URL}),
        )
        .await;
        assert_eq!(
            requests[0].json(),
            json!({"url": PUBLIC_URL, "formats": ["markdown"]})
        );
        assert_eq!(read, Ok("# Deer\n\nWoods.".to_owned()));
    }
    let refused = Reply::json(json!({"success": false, "error": "no credits"}));
    let (read, _) = ask(
        "firecrawl.web_search",
        refused,
        json!({}),
        json!({"query": "deer"}),
    )
    .await;
    assert_eq!(read, Err("Error: Firecrawl: no credits".to_owned()));
}

#[tokio::test]
async fn duckduckgo_receives_a_form() {
    let page = r#"<div class="result"><a class="result__a" href="https://a.test/">Deer</a><a class="result__snippet">Woods.</a></div>"#;
    let page = format!("{page}{}", page.replace("a.test", "b.test"));
    let (read, requests) = ask(
        "deerflow.community.ddg_search.tools:web_search_tool",
        Reply::new(200, "text/html", page),
        json!({"region": "de-de", "safesearch": "off"}),
        json!({"query": "deer & elk", "max_results": 1}),
    )
    .await;
    assert!(
        requests[0].head.starts_with("POST /html/ ")
            && requests[0].has("content-type: application/x-www-form-urlencoded"),
        "{requests:?}"
    );
    assert_eq!(requests[0].body, "q=deer+%26+elk&b=&kl=de-de&kp=-2");
    let hit = json!({"title": "Deer", "url": "https://a.test/", "content": "Woods."});
    assert_eq!(
        parsed(read),
        json!({"query": "deer & elk", "total_results": 1, "results": [hit]})
    );
    let (read, _) = ask(
        "duckduckgo.web_search",
        Reply::new(200, "text/html", "<p>none"),
        json!({}),
        json!({"query": "x"}),
    )
    .await;
    assert_eq!(parsed(read)["query"], "x");
    let (read, _) = ask(
        "duckduckgo.web_search",
        Reply::new(202, "text/html", "robot?"),
        json!({}),
        json!({"query": "x"}),
    )
    .await;
    assert!(read.unwrap_err().contains("try again later"));
}

#[tokio::test]
async fn duckduckgo_finds_images_in_two_steps() {
    let images = json!({"results": [{"title": "A deer", "image": "https://a.test/1.jpg", "thumbnail": "https://a.test/t.jpg"}, {"title": "none"}]});
    let fake = Fake::start([
        Reply::new(200, "text/html", "<script>vqd=\"4-123\"</script>"),
        Reply::json(images),
    ])
    .await;
    let settings = json!({"base_url": fake.url_at("127.0.0.1", "")});
    let args = json!({"query": "deer", "size": "Large", "type_image": "photo", "layout": "Wide"});
    let read = call(
        "deerflow.community.image_search.tools:image_search_tool",
        settings,
        args,
    )
    .await;
    let requests = fake.requests();
    assert!(
        requests[0].head.starts_with("GET /?q=deer "),
        "{requests:?}"
    );
    let asked = "GET /i.js?o=json&q=deer&l=wt-wt&vqd=4-123&f=%2Csize%3ALarge%2C%2Ctype%3Aphoto%2Clayout%3AWide%2C&p=1 ";
    assert!(requests[1].head.starts_with(asked), "{requests:?}");
    let mut read = parsed(read);
    assert!(
        read.as_object_mut()
            .unwrap()
            .remove("usage_hint")
            .is_some_and(|hint| hint.is_string())
    );
    let image = json!({"title": "A deer", "image_url": "https://a.test/1.jpg", "thumbnail_url": "https://a.test/t.jpg"});
    assert_eq!(
        read,
        json!({"query": "deer", "total_results": 1, "results": [image]})
    );
}

#[tokio::test]
async fn searxng_returns_json() {
    let found = json!({"results": [{"title": "Deer", "url": "https://a.test", "content": "Woods."}, {"title": "Elk", "url": "https://b.test"}]});
    let (read, requests) = ask(
        "searxng.web_search",
        Reply::json(found),
        json!({"max_results": 1}),
        json!({"query": "deer"}),
    )
    .await;
    assert!(
        requests[0]
            .head
            .starts_with("GET /search?q=deer&format=json&language=auto&pageno=1&limit=1 "),
        "{requests:?}"
    );
    assert_eq!(
        parsed(read),
        json!([{"title": "Deer", "url": "https://a.test", "snippet": "Woods."}])
    );
}

#[tokio::test]
async fn serper_searches_and_finds_public_images() {
    let found =
        json!({"organic": [{"title": "Deer", "link": "https://a.test", "snippet": "Woods."}]});
    let args = json!({"query": "d".repeat(600), "max_results": 50});
    let (read, requests) = ask(
        "serper.web_search",
        Reply::json(found),
        json!({"max_results": 50}),
        args,
    )
    .await;
    assert_eq!(
        (
            requests[0].json()["q"].as_str().unwrap().len(),
            &requests[0].json()["num"]
        ),
        (500, &json!(10))
    );
    assert!(
        requests[0].head.starts_with("POST /search ") && requests[0].has("x-api-key: sk-canary"),
        "{requests:?}"
    );
    assert_eq!(
        parsed(read)["results"],
        json!([{"title": "Deer", "url": "https://a.test", "content": "Woods."}])
    );
    let images = json!({"images": [
        {"title": "home", "imageUrl": "http://192.168.0.1/a.png", "thumbnailUrl": ""},
        {"title": "Deer", "imageUrl": "https://a.test/1.jpg", "thumbnailUrl": "http://10.0.0.1/t.jpg"},
    ]});
    let (read, requests) = ask(
        "serper.image_search",
        Reply::json(images),
        json!({}),
        json!({"query": "deer"}),
    )
    .await;
    assert!(
        requests[0].head.starts_with("POST /images "),
        "{requests:?}"
    );
    assert_eq!(
        parsed(read)["results"],
        json!([{"title": "Deer", "image_url": "https://a.test/1.jpg"}])
    );
}

#[tokio::test]
async fn brave_searches_and_finds_images() {
    let found = json!({"web": {"results": [{"title": "Deer", "url": "https://a.test", "description": "Woods."}]}});
    let (read, requests) = ask(
        "brave.web_search",
        Reply::json(found),
        json!({"max_results": 30}),
        json!({"query": "deer", "max_results": 25}),
    )
    .await;
    assert!(
        requests[0]
            .head
            .starts_with("GET /res/v1/web/search?q=deer&count=20&text_decorations=false "),
        "{requests:?}"
    );
    assert!(
        requests[0].has("x-subscription-token: sk-canary"),
        "{requests:?}"
    );
    assert_eq!(
        parsed(read)["results"],
        json!([{"title": "Deer", "url": "https://a.test", "content": "Woods."}])
    );
    let images = json!({"results": [{"title": "Deer", "url": "https://a.test", "source": "a.test", "thumbnail": {"src": "https://a.test/t"},
        "properties": {"url": "https://a.test/1.jpg", "width": 3, "height": 4}}]});
    let (read, requests) = ask(
        "brave.image_search",
        Reply::json(images),
        json!({"country": "DE"}),
        json!({"query": "deer"}),
    )
    .await;
    assert!(
        requests[0]
            .head
            .starts_with("GET /res/v1/images/search?q=deer&count=5&country=DE&spellcheck=true "),
        "{requests:?}"
    );
    let image = json!({"title": "Deer", "image_url": "https://a.test/1.jpg", "thumbnail_url": "https://a.test/t",
        "source_url": "https://a.test", "source": "a.test", "width": 3, "height": 4});
    assert_eq!(parsed(read)["results"], json!([image]));
}

#[tokio::test]
async fn exa_searches_and_reads() {
    let found = json!({"results": [{"title": "Deer", "url": "https://a.test", "highlights": ["Woods.", "Parks."]}]});
    let (read, requests) = ask(
        "exa.web_search",
        Reply::json(found),
        json!({"search_type": "neural"}),
        json!({"query": "deer"}),
    )
    .await;
    let contents = json!({"highlights": {"maxCharacters": 1000}});
    assert_eq!(
        requests[0].json(),
        json!({"query": "deer", "type": "neural", "numResults": 5, "contents": contents})
    );
    assert!(requests[0].has("x-api-key: sk-canary"), "{requests:?}");
    assert_eq!(
        parsed(read),
        json!([{"title": "Deer", "url": "https://a.test", "snippet": "Woods.\nParks."}])
    );
    let page = json!({"results": [{"title": "Deer", "text": "Woods."}]});
    let (read, requests) = ask(
        "exa.web_fetch",
        Reply::json(page),
        json!({}),
        json!({"url": PUBLIC_URL}),
    )
    .await;
    assert_eq!(
        requests[0].json(),
        json!({"urls": [PUBLIC_URL], "text": {"maxCharacters": 4096}})
    );
    assert_eq!(read, Ok("# Deer\n\nWoods.".to_owned()));
}

#[tokio::test]
async fn groundroute_searches_and_reads() {
    let found = json!({"results": [{"title": "Deer", "url": "https://a.test", "content": "Woods.", "source_engine": "brave"}]});
    let (read, requests) = ask(
        "groundroute.web_search",
        Reply::json(found),
        json!({}),
        json!({"query": "deer", "max_results": 99}),
    )
    .await;
    assert_eq!(
        requests[0].json(),
        json!({"query": "deer", "max_results": 50})
    );
    assert_eq!(
        parsed(read),
        json!([{"title": "Deer", "url": "https://a.test", "snippet": "Woods.", "source_engine": "brave"}])
    );
    let page = json!({"results": [{"title": "Deer", "content": "Woods."}]});
    let (read, requests) = ask(
        "groundroute.web_fetch",
        Reply::json(page),
        json!({}),
        json!({"url": PUBLIC_URL}),
    )
    .await;
    assert_eq!(
        requests[0].json(),
        json!({"query": PUBLIC_URL, "mode": "page", "max_results": 1})
    );
    assert_eq!(read, Ok("# Deer\n\nWoods.".to_owned()));
}

#[tokio::test]
async fn self_hosted_browsers_receive_wait_conditions() {
    let settings = json!({"wait_for_event": "networkidle", "wait_for_timeout_ms": 5, "wait_for_selector": "article"});
    let html = "<title>Deer</title><body><p>Deer live in woods.";
    let (read, requests) = ask(
        "browserless.web_fetch",
        Reply::new(200, "text/html", html),
        settings,
        json!({"url": PUBLIC_URL}),
    )
    .await;
    assert!(
        requests[0]
            .head
            .starts_with("POST /content?token=sk-canary "),
        "{requests:?}"
    );
    let waits = json!({"url": PUBLIC_URL, "waitForEvent": {"event": "networkidle"}, "waitForTimeout": 5, "waitForSelector": {"selector": "article"}});
    assert_eq!(requests[0].json(), waits);
    assert!(read.unwrap().contains("Deer live in woods."));
    let (read, requests) = ask(
        "crawl4ai.web_fetch",
        Reply::json(json!({"success": true, "markdown": "# Deer"})),
        json!({}),
        json!({"url": PUBLIC_URL}),
    )
    .await;
    assert_eq!(
        (requests[0].json(), read),
        (
            json!({"url": PUBLIC_URL, "f": "fit"}),
            Ok("# Deer".to_owned())
        )
    );
    assert!(
        requests[0].has("authorization: bearer sk-canary"),
        "{requests:?}"
    );
}

#[tokio::test]
async fn infoquest_searches_finds_images_and_reads() {
    let results =
        |lists: Value| json!({"search_result": {"results": [{"content": {"results": lists}}]}});
    let found = results(json!({
        "organic": [{"title": "Deer", "url": "https://a.test", "desc": "Woods."}, {"title": "again", "url": "https://a.test"}],
        "top_stories": {"items": [{"title": "News", "url": "https://n.test"}]},
    }));
    let (read, requests) = ask(
        "infoquest.web_search",
        Reply::json(found),
        json!({"search_time_range": 10}),
        json!({"query": "deer"}),
    )
    .await;
    assert_eq!(
        requests[0].json(),
        json!({"format": "JSON", "query": "deer", "time_range": 10})
    );
    assert_eq!(parsed(read).as_array().map(Vec::len), Some(2));
    let images =
        results(json!({"images_results": [{"title": "Deer", "original": "https://a.test/1.jpg"}]}));
    let settings = json!({"image_size": "i", "image_search_time_range": -1});
    let (read, requests) = ask(
        "infoquest.image_search",
        Reply::json(images),
        settings,
        json!({"query": "deer"}),
    )
    .await;
    assert_eq!(
        requests[0].json(),
        json!({"format": "JSON", "query": "deer", "image_size": "i", "search_type": "Images"})
    );
    assert_eq!(
        parsed(read),
        json!([{"title": "Deer", "image_url": "https://a.test/1.jpg"}])
    );
    let page = json!({"reader_result": "<title>Deer</title><body><p>Deer live in woods."});
    let (read, requests) = ask(
        "infoquest.web_fetch",
        Reply::json(page),
        json!({"timeout": 9, "fetch_time": -1}),
        json!({"url": PUBLIC_URL}),
    )
    .await;
    assert_eq!(
        requests[0].json(),
        json!({"url": PUBLIC_URL, "format": "HTML", "timeout": 9})
    );
    assert!(read.unwrap().contains("Deer live in woods."));
}

#[tokio::test]
async fn failed_request_is_retried_and_error_redacts_key() {
    for (status, tries) in [(429, 3), (500, 3), (503, 3), (400, 1), (401, 1), (404, 1)] {
        let refusal = Reply::new(
            status,
            "application/json",
            json!({"error": {"message": "bad key sk-canary"}}).to_string(),
        );
        let (read, requests) = ask(
            "exa.web_search",
            refusal,
            json!({}),
            json!({"query": "deer"}),
        )
        .await;
        let error = read.unwrap_err();
        assert!(
            error.starts_with(&format!("Error: Exa answered {status}"))
                && error.ends_with("bad key ***"),
            "{error}"
        );
        assert_eq!(requests.len(), tries, "{status}");
    }
    let cut = Reply::new(
        400,
        "application/json",
        json!({"error": format!("{} sk-canary", "x".repeat(294))}).to_string(),
    );
    let error = ask("exa.web_search", cut, json!({}), json!({"query": "deer"}))
        .await
        .0
        .unwrap_err();
    assert!(
        !error.contains("sk-") && error.ends_with("x ***"),
        "{error}"
    );
    let fake = Fake::start([Reply::new(503, "", ""), Reply::json(json!({"results": []}))]).await;
    let settings = json!({"base_url": fake.url_at("127.0.0.1", ""), "api_key": "k"});
    assert_eq!(
        call("exa.web_search", settings, json!({"query": "deer"})).await,
        Ok("[]".to_owned())
    );
    let patient = Reply {
        headers: "retry-after: 3600\r\n".to_owned(),
        ..Reply::new(429, "", "")
    };
    assert_eq!(
        ask(
            "exa.web_search",
            patient,
            json!({}),
            json!({"query": "deer"})
        )
        .await
        .1
        .len(),
        1
    );
}

#[tokio::test]
async fn long_slow_or_invalid_responses_are_reported_to_model() {
    let search = async |reply: Reply, settings: Value| {
        ask("tavily.web_search", reply, settings, json!({"query": "x"}))
            .await
            .0
            .unwrap_err()
    };
    assert!(
        search(Reply::new(200, "text/html", "<html>"), json!({}))
            .await
            .contains("no JSON")
    );
    assert!(
        search(Reply::new(200, "", vec![b' '; 9 << 20]), json!({}))
            .await
            .contains("longer than 8 MiB")
    );
    assert!(
        search(Reply::unresponsive(), json!({"timeout": 0.05}))
            .await
            .contains("took longer than 0.05 seconds")
    );
    let gone = json!({"base_url": "http://127.0.0.1:9", "api_key": "sk-canary"});
    assert_eq!(
        call("tavily.web_search", gone, json!({"query": "x"})).await,
        Err("Error: Tavily cannot be reached".to_owned())
    );
    let (read, requests) = ask(
        "tavily.web_search",
        Reply::redirect("http://127.0.0.1/"),
        json!({}),
        json!({"query": "x"}),
    )
    .await;
    assert!(read.unwrap_err().contains("302") && requests.len() == 1);
    for query in ["", "  \n"] {
        assert!(
            ask(
                "tavily.web_search",
                Reply::json(json!({})),
                json!({}),
                json!({"query": query})
            )
            .await
            .1
            .is_empty()
        );
    }
}

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

#[test]
fn invalid_entries_state_reason() {
    let invalid = |kind: &str, settings: Value| {
        factory()
            .tool(&entry(kind, settings))
            .unwrap()
            .unwrap_err()
            .why
    };
    assert!(invalid("exa.web_search", json!({})).contains("EXA_API_KEY"));
    assert!(invalid("firecrawl.web_search", json!({})).contains("FIRECRAWL_API_KEY"));
    assert!(invalid("tavily.web_search", json!({"max_results": 0})).contains("max_results"));
    assert!(invalid("tavily.web_search", json!({"max_results": "many"})).contains("max_results"));
    assert!(invalid("tavily.web_search", json!({"timeout": -1})).contains("timeout"));
    assert!(invalid("tavily.web_search", json!({"base_url": "ftp://x"})).contains("base_url"));
    assert!(
        invalid("duckduckgo.web_search", json!({"safesearch": "maybe"})).contains("safesearch")
    );
    assert!(invalid("direct.web_fetch", json!({"allowed_hosts": [5]})).contains("allowed_hosts"));
    assert!(
        invalid(
            "direct.web_fetch",
            json!({"allow_private_addresses": "yes"})
        )
        .contains("allow_private_addresses")
    );
    assert!(invalid("crawl4ai.web_fetch", json!({"filter": "all"})).contains("filter"));
    assert!(invalid("jina.web_search", json!({})).contains("no such tool"));
    assert!(
        invalid(
            "jina.web_fetch",
            json!({"__unresolved": [{"key": "proxy", "variable": "PROXY"}]})
        )
        .contains("PROXY")
    );
    assert!(factory().tool(&entry("sandbox.ls", json!({}))).is_none());
    // Tavily's key comes from the environment, and SearXNG needs none.
    assert!(
        factory()
            .tool(&entry("tavily.web_search", json!({})))
            .unwrap()
            .is_ok()
    );
    assert!(
        factory()
            .tool(&entry("searxng.web_search", json!({})))
            .unwrap()
            .is_ok()
    );
    assert!(
        factory()
            .tool(&entry(
                "jina.web_fetch",
                json!({"proxy": "http://127.0.0.1:9", "trust_env": true})
            ))
            .unwrap()
            .is_ok()
    );
}

#[test]
fn arguments_have_expected_names_and_defaults() {
    let schema = |kind: &str| {
        factory()
            .tool(&entry(kind, json!({"api_key": "k"})))
            .unwrap()
            .unwrap()
            .schema()
            .clone()
    };
    let fields = |kind: &str| {
        schema(kind).parameters["properties"]
            .as_object()
            .unwrap()
            .keys()
            .cloned()
            .collect::<Vec<_>>()
    };
    assert_eq!(
        (
            schema("tavily.web_search").name.as_str(),
            fields("tavily.web_search")
        ),
        ("web_search", vec!["query".to_owned()])
    );
    assert_eq!(fields("serper.web_search"), ["query", "max_results"]);
    assert_eq!(fields("direct.web_fetch"), ["url"]);
    assert_eq!(
        fields("duckduckgo.image_search"),
        ["query", "max_results", "size", "type_image", "layout"]
    );
    assert_eq!(fields("brave.image_search"), ["query", "max_results"]);
    let parameters = schema("duckduckgo.web_search").parameters;
    assert_eq!(
        (
            &parameters["properties"]["max_results"]["default"],
            &parameters["required"]
        ),
        (&json!(5), &json!(["query"]))
    );
    assert_eq!(parameters["properties"]["max_results"]["type"], "integer");
}

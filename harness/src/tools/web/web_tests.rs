//! Each provider against a server of its kind on the loopback: what it is asked, and what a model reads of its answer.

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

/// What a fake says.
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

    pub(super) fn silence() -> Self {
        Self {
            silent: true,
            ..Self::new(200, "", "")
        }
    }
}

/// A request as it came.
#[derive(Debug, Clone)]
pub(super) struct Heard {
    /// The request line and the headers.
    pub(super) head: String,
    pub(super) body: String,
}

impl Heard {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    fn has(&self, header: &str) -> bool {
        self.head
            .to_ascii_lowercase()
            .contains(&header.to_ascii_lowercase())
    }
}

/// A server that gives its replies one after the other, the last for ever.
#[derive(Debug)]
pub(super) struct Fake {
    port: u16,
    heard: Arc<Mutex<Vec<Heard>>>,
    _tasks: Tasks,
}

impl Fake {
    pub(super) async fn start(replies: impl IntoIterator<Item = Reply>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let replies: Vec<Reply> = replies.into_iter().collect();
        let (heard, tasks) = (Arc::<Mutex<Vec<Heard>>>::default(), Tasks::new());
        let told = heard.clone();
        tasks.spawn(TaskKind::Service, "fake provider", async move {
            while let Ok((mut socket, _)) = listener.accept().await {
                let Some(request) = request(&mut socket).await else { continue };
                let at = {
                    let mut told = told.lock();
                    told.push(request);
                    (told.len() - 1).min(replies.len() - 1)
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
            heard,
            _tasks: tasks,
        }
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    pub(super) fn url_at(&self, host: &str, path: &str) -> String {
        format!("http://{host}:{}{path}", self.port)
    }

    pub(super) fn heard(&self) -> Vec<Heard> {
        self.heard.lock().clone()
    }
}

async fn request(socket: &mut TcpStream) -> Option<Heard> {
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
            return Some(Heard {
                head: head.to_owned(),
                body: body.to_owned(),
            });
        }
    }
}

fn kit() -> WebKit {
    let patience = Patience {
        tries: 3,
        wait: Duration::ZERO,
        longest: Duration::from_secs(5),
    };
    let variables = [(
        "TAVILY_API_KEY".to_owned(),
        "from-the-environment".to_owned(),
    )];
    WebKit::with(
        variables.into_iter().collect(),
        Arc::new(SystemLookup::default()),
        patience,
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

/// What a model reads.
async fn call(kind: &str, settings: Value, args: Value) -> Result<String, String> {
    let tool = kit().tool(&entry(kind, settings)).unwrap().unwrap();
    let args = args.as_object().unwrap().clone();
    assert_eq!(tool.effect(&args), Effect::Pure);
    tool.call(args, &tool_context())
        .await
        .map(|output| output.content.text())
        .map_err(|error| error.to_string())
}

/// As [`call`] with a fake provider, whose requests come back too.
async fn ask(
    kind: &str,
    reply: Reply,
    settings: Value,
    args: Value,
) -> (Result<String, String>, Vec<Heard>) {
    let fake = Fake::start([reply]).await;
    let mut all = json!({ "base_url": fake.url_at("127.0.0.1", ""), "api_key": "sk-canary", "token": "sk-canary" });
    all.as_object_mut()
        .unwrap()
        .extend(settings.as_object().unwrap().clone());
    let read = call(kind, all, args).await;
    (read, fake.heard())
}

fn parsed(read: Result<String, String>) -> Value {
    serde_json::from_str(&read.unwrap()).unwrap()
}

const FAR: &str = "http://93.184.216.34/deer";

#[tokio::test]
async fn tavily_searches_and_reads() {
    let found = json!({"results": [
        {"title": "Deer", "url": "https://a.test", "content": "They live in woods.", "score": 1},
        {"title": "no address"}, "odd"
    ]});
    let (read, heard) = ask(
        "deerflow.community.tavily.tools:web_search_tool",
        Reply::json(found),
        json!({"max_results": 3}),
        json!({"query": "deer"}),
    )
    .await;
    assert_eq!(heard[0].json(), json!({"query": "deer", "max_results": 3}));
    assert!(
        heard[0].head.starts_with("POST /search ")
            && heard[0].has("authorization: bearer sk-canary"),
        "{heard:?}"
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

    let page = json!({"results": [{"url": FAR, "title": "Deer", "raw_content": "Long text. ".repeat(999)}], "failed_results": []});
    let (read, heard) = ask(
        "tavily.web_fetch",
        Reply::json(page),
        json!({"allow_private_addresses": true}),
        json!({"url": FAR}),
    )
    .await;
    assert_eq!(heard[0].json(), json!({"urls": [FAR]}));
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
        json!({"url": FAR}),
    )
    .await;
    assert_eq!(read, Err("Error: blocked".to_owned()));
}

#[tokio::test]
async fn jina_renders_and_the_main_text_is_found_here() {
    let html = format!(
        "<title>Deer</title><article><h2>Where</h2><p>{}</p></article>",
        "They live in woods, in parks and on hills. ".repeat(20)
    );
    let (read, heard) = ask(
        "deerflow.community.jina_ai.tools:web_fetch_tool",
        Reply::new(200, "text/html", html),
        json!({"timeout": 7}),
        json!({"url": FAR}),
    )
    .await;
    assert_eq!(heard[0].json(), json!({"url": FAR}));
    for header in [
        "POST / ",
        "x-return-format: html",
        "x-timeout: 7",
        "authorization: bearer sk-canary",
    ] {
        assert!(heard[0].has(header), "{header}: {heard:?}");
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
        json!({"url": FAR}),
    )
    .await;
    assert_eq!(
        read,
        Err("Error: Jina found nothing on this page".to_owned())
    );
}

#[tokio::test]
async fn firecrawl_and_its_kin_search_and_read() {
    let found = json!({"success": true, "data": {"web": [{"title": "Deer", "url": "https://a.test", "description": "Woods."}]}});
    for (provider, version) in [("firecrawl", "v2"), ("fastcrw", "v1")] {
        let (read, heard) = ask(
            &format!("{provider}.web_search"),
            Reply::json(found.clone()),
            json!({}),
            json!({"query": "deer"}),
        )
        .await;
        assert_eq!(heard[0].json(), json!({"query": "deer", "limit": 5}));
        assert!(
            heard[0]
                .head
                .starts_with(&format!("POST /{version}/search ")),
            "{heard:?}"
        );
        assert_eq!(
            parsed(read),
            json!([{"title": "Deer", "url": "https://a.test", "snippet": "Woods."}])
        );
        let page =
            json!({"success": true, "data": {"markdown": "Woods.", "metadata": {"title": "Deer"}}});
        let (read, heard) = ask(
            &format!("{provider}.web_fetch"),
            Reply::json(page),
            json!({}),
            json!({"url": FAR}),
        )
        .await;
        assert_eq!(
            heard[0].json(),
            json!({"url": FAR, "formats": ["markdown"]})
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
async fn duckduckgo_is_asked_as_a_form() {
    let page = r#"<div class="result"><a class="result__a" href="https://a.test/">Deer</a><a class="result__snippet">Woods.</a></div>"#;
    let page = format!("{page}{}", page.replace("a.test", "b.test"));
    let (read, heard) = ask(
        "deerflow.community.ddg_search.tools:web_search_tool",
        Reply::new(200, "text/html", page),
        json!({"region": "de-de", "safesearch": "off"}),
        json!({"query": "deer & elk", "max_results": 1}),
    )
    .await;
    assert!(
        heard[0].head.starts_with("POST /html/ ")
            && heard[0].has("content-type: application/x-www-form-urlencoded"),
        "{heard:?}"
    );
    assert_eq!(heard[0].body, "q=deer+%26+elk&b=&kl=de-de&kp=-2");
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
async fn duckduckgo_finds_pictures_in_two_steps() {
    let pictures = json!({"results": [{"title": "A deer", "image": "https://a.test/1.jpg", "thumbnail": "https://a.test/t.jpg"}, {"title": "none"}]});
    let fake = Fake::start([
        Reply::new(200, "text/html", "<script>vqd=\"4-123\"</script>"),
        Reply::json(pictures),
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
    let heard = fake.heard();
    assert!(heard[0].head.starts_with("GET /?q=deer "), "{heard:?}");
    let asked = "GET /i.js?o=json&q=deer&l=wt-wt&vqd=4-123&f=%2Csize%3ALarge%2C%2Ctype%3Aphoto%2Clayout%3AWide%2C&p=1 ";
    assert!(heard[1].head.starts_with(asked), "{heard:?}");
    let mut read = parsed(read);
    assert!(
        read.as_object_mut()
            .unwrap()
            .remove("usage_hint")
            .is_some_and(|hint| hint.is_string())
    );
    let picture = json!({"title": "A deer", "image_url": "https://a.test/1.jpg", "thumbnail_url": "https://a.test/t.jpg"});
    assert_eq!(
        read,
        json!({"query": "deer", "total_results": 1, "results": [picture]})
    );
}

#[tokio::test]
async fn searxng_is_asked_for_json() {
    let found = json!({"results": [{"title": "Deer", "url": "https://a.test", "content": "Woods."}, {"title": "Elk", "url": "https://b.test"}]});
    let (read, heard) = ask(
        "searxng.web_search",
        Reply::json(found),
        json!({"max_results": 1}),
        json!({"query": "deer"}),
    )
    .await;
    assert!(
        heard[0]
            .head
            .starts_with("GET /search?q=deer&format=json&language=auto&pageno=1&limit=1 "),
        "{heard:?}"
    );
    assert_eq!(
        parsed(read),
        json!([{"title": "Deer", "url": "https://a.test", "snippet": "Woods."}])
    );
}

#[tokio::test]
async fn serper_searches_and_finds_public_pictures() {
    let found =
        json!({"organic": [{"title": "Deer", "link": "https://a.test", "snippet": "Woods."}]});
    let args = json!({"query": "d".repeat(600), "max_results": 50});
    let (read, heard) = ask(
        "serper.web_search",
        Reply::json(found),
        json!({"max_results": 50}),
        args,
    )
    .await;
    assert_eq!(
        (
            heard[0].json()["q"].as_str().unwrap().len(),
            &heard[0].json()["num"]
        ),
        (500, &json!(10))
    );
    assert!(
        heard[0].head.starts_with("POST /search ") && heard[0].has("x-api-key: sk-canary"),
        "{heard:?}"
    );
    assert_eq!(
        parsed(read)["results"],
        json!([{"title": "Deer", "url": "https://a.test", "content": "Woods."}])
    );
    let pictures = json!({"images": [
        {"title": "home", "imageUrl": "http://192.168.0.1/a.png", "thumbnailUrl": ""},
        {"title": "Deer", "imageUrl": "https://a.test/1.jpg", "thumbnailUrl": "http://10.0.0.1/t.jpg"},
    ]});
    let (read, heard) = ask(
        "serper.image_search",
        Reply::json(pictures),
        json!({}),
        json!({"query": "deer"}),
    )
    .await;
    assert!(heard[0].head.starts_with("POST /images "), "{heard:?}");
    assert_eq!(
        parsed(read)["results"],
        json!([{"title": "Deer", "image_url": "https://a.test/1.jpg"}])
    );
}

#[tokio::test]
async fn brave_searches_and_finds_pictures() {
    let found = json!({"web": {"results": [{"title": "Deer", "url": "https://a.test", "description": "Woods."}]}});
    let (read, heard) = ask(
        "brave.web_search",
        Reply::json(found),
        json!({"max_results": 30}),
        json!({"query": "deer", "max_results": 25}),
    )
    .await;
    assert!(
        heard[0]
            .head
            .starts_with("GET /res/v1/web/search?q=deer&count=20&text_decorations=false "),
        "{heard:?}"
    );
    assert!(heard[0].has("x-subscription-token: sk-canary"), "{heard:?}");
    assert_eq!(
        parsed(read)["results"],
        json!([{"title": "Deer", "url": "https://a.test", "content": "Woods."}])
    );
    let pictures = json!({"results": [{"title": "Deer", "url": "https://a.test", "source": "a.test", "thumbnail": {"src": "https://a.test/t"},
        "properties": {"url": "https://a.test/1.jpg", "width": 3, "height": 4}}]});
    let (read, heard) = ask(
        "brave.image_search",
        Reply::json(pictures),
        json!({"country": "DE"}),
        json!({"query": "deer"}),
    )
    .await;
    assert!(
        heard[0]
            .head
            .starts_with("GET /res/v1/images/search?q=deer&count=5&country=DE&spellcheck=true "),
        "{heard:?}"
    );
    let picture = json!({"title": "Deer", "image_url": "https://a.test/1.jpg", "thumbnail_url": "https://a.test/t",
        "source_url": "https://a.test", "source": "a.test", "width": 3, "height": 4});
    assert_eq!(parsed(read)["results"], json!([picture]));
}

#[tokio::test]
async fn exa_searches_and_reads() {
    let found = json!({"results": [{"title": "Deer", "url": "https://a.test", "highlights": ["Woods.", "Parks."]}]});
    let (read, heard) = ask(
        "exa.web_search",
        Reply::json(found),
        json!({"search_type": "neural"}),
        json!({"query": "deer"}),
    )
    .await;
    let contents = json!({"highlights": {"maxCharacters": 1000}});
    assert_eq!(
        heard[0].json(),
        json!({"query": "deer", "type": "neural", "numResults": 5, "contents": contents})
    );
    assert!(heard[0].has("x-api-key: sk-canary"), "{heard:?}");
    assert_eq!(
        parsed(read),
        json!([{"title": "Deer", "url": "https://a.test", "snippet": "Woods.\nParks."}])
    );
    let page = json!({"results": [{"title": "Deer", "text": "Woods."}]});
    let (read, heard) = ask(
        "exa.web_fetch",
        Reply::json(page),
        json!({}),
        json!({"url": FAR}),
    )
    .await;
    assert_eq!(
        heard[0].json(),
        json!({"urls": [FAR], "text": {"maxCharacters": 4096}})
    );
    assert_eq!(read, Ok("# Deer\n\nWoods.".to_owned()));
}

#[tokio::test]
async fn groundroute_searches_and_reads() {
    let found = json!({"results": [{"title": "Deer", "url": "https://a.test", "content": "Woods.", "source_engine": "brave"}]});
    let (read, heard) = ask(
        "groundroute.web_search",
        Reply::json(found),
        json!({}),
        json!({"query": "deer", "max_results": 99}),
    )
    .await;
    assert_eq!(heard[0].json(), json!({"query": "deer", "max_results": 50}));
    assert_eq!(
        parsed(read),
        json!([{"title": "Deer", "url": "https://a.test", "snippet": "Woods.", "source_engine": "brave"}])
    );
    let page = json!({"results": [{"title": "Deer", "content": "Woods."}]});
    let (read, heard) = ask(
        "groundroute.web_fetch",
        Reply::json(page),
        json!({}),
        json!({"url": FAR}),
    )
    .await;
    assert_eq!(
        heard[0].json(),
        json!({"query": FAR, "mode": "page", "max_results": 1})
    );
    assert_eq!(read, Ok("# Deer\n\nWoods.".to_owned()));
}

#[tokio::test]
async fn browsers_of_ones_own_are_told_what_to_wait_for() {
    let settings = json!({"wait_for_event": "networkidle", "wait_for_timeout_ms": 5, "wait_for_selector": "article"});
    let html = "<title>Deer</title><body><p>Deer live in woods.";
    let (read, heard) = ask(
        "browserless.web_fetch",
        Reply::new(200, "text/html", html),
        settings,
        json!({"url": FAR}),
    )
    .await;
    assert!(
        heard[0].head.starts_with("POST /content?token=sk-canary "),
        "{heard:?}"
    );
    let waits = json!({"url": FAR, "waitForEvent": {"event": "networkidle"}, "waitForTimeout": 5, "waitForSelector": {"selector": "article"}});
    assert_eq!(heard[0].json(), waits);
    assert!(read.unwrap().contains("Deer live in woods."));
    let (read, heard) = ask(
        "crawl4ai.web_fetch",
        Reply::json(json!({"success": true, "markdown": "# Deer"})),
        json!({}),
        json!({"url": FAR}),
    )
    .await;
    assert_eq!(
        (heard[0].json(), read),
        (json!({"url": FAR, "f": "fit"}), Ok("# Deer".to_owned()))
    );
    assert!(heard[0].has("authorization: bearer sk-canary"), "{heard:?}");
}

#[tokio::test]
async fn infoquest_searches_finds_pictures_and_reads() {
    let results =
        |lists: Value| json!({"search_result": {"results": [{"content": {"results": lists}}]}});
    let found = results(json!({
        "organic": [{"title": "Deer", "url": "https://a.test", "desc": "Woods."}, {"title": "again", "url": "https://a.test"}],
        "top_stories": {"items": [{"title": "News", "url": "https://n.test"}]},
    }));
    let (read, heard) = ask(
        "infoquest.web_search",
        Reply::json(found),
        json!({"search_time_range": 10}),
        json!({"query": "deer"}),
    )
    .await;
    assert_eq!(
        heard[0].json(),
        json!({"format": "JSON", "query": "deer", "time_range": 10})
    );
    assert_eq!(parsed(read).as_array().map(Vec::len), Some(2));
    let pictures =
        results(json!({"images_results": [{"title": "Deer", "original": "https://a.test/1.jpg"}]}));
    let settings = json!({"image_size": "i", "image_search_time_range": -1});
    let (read, heard) = ask(
        "infoquest.image_search",
        Reply::json(pictures),
        settings,
        json!({"query": "deer"}),
    )
    .await;
    assert_eq!(
        heard[0].json(),
        json!({"format": "JSON", "query": "deer", "image_size": "i", "search_type": "Images"})
    );
    assert_eq!(
        parsed(read),
        json!([{"title": "Deer", "image_url": "https://a.test/1.jpg"}])
    );
    let page = json!({"reader_result": "<title>Deer</title><body><p>Deer live in woods."});
    let (read, heard) = ask(
        "infoquest.web_fetch",
        Reply::json(page),
        json!({"timeout": 9, "fetch_time": -1}),
        json!({"url": FAR}),
    )
    .await;
    assert_eq!(
        heard[0].json(),
        json!({"url": FAR, "format": "HTML", "timeout": 9})
    );
    assert!(read.unwrap().contains("Deer live in woods."));
}

#[tokio::test]
async fn a_provider_that_fails_is_asked_again_and_its_words_hold_no_key() {
    for (status, tries) in [(429, 3), (500, 3), (503, 3), (400, 1), (401, 1), (404, 1)] {
        let refusal = Reply::new(
            status,
            "application/json",
            json!({"error": {"message": "bad key sk-canary"}}).to_string(),
        );
        let (read, heard) = ask(
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
        assert_eq!(heard.len(), tries, "{status}");
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
async fn answers_that_are_too_long_too_slow_or_no_json_are_told_to_the_model() {
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
        search(Reply::silence(), json!({"timeout": 0.05}))
            .await
            .contains("took longer than 0.05 seconds")
    );
    let gone = json!({"base_url": "http://127.0.0.1:9", "api_key": "sk-canary"});
    assert_eq!(
        call("tavily.web_search", gone, json!({"query": "x"})).await,
        Err("Error: Tavily cannot be reached".to_owned())
    );
    let (read, heard) = ask(
        "tavily.web_search",
        Reply::redirect("http://127.0.0.1/"),
        json!({}),
        json!({"query": "x"}),
    )
    .await;
    assert!(read.unwrap_err().contains("302") && heard.len() == 1);
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

/// Whoever is sent to addresses.
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

/// Every name leads into the own network.
#[derive(Debug)]
struct Home;

#[async_trait::async_trait]
impl Lookup for Home {
    async fn lookup(&self, _host: &str) -> Vec<IpAddr> {
        vec![IpAddr::from([10, 0, 0, 1])]
    }
}

#[tokio::test]
async fn a_provider_in_ones_own_network_is_not_sent_into_it_by_name() {
    for kind in READERS {
        let fake = Fake::start([Reply::json(json!({}))]).await;
        let settings =
            json!({ "base_url": fake.url_at("127.0.0.1", ""), "api_key": "k", "token": "k" });
        let kit = WebKit::with(Variables::new(), Arc::new(Home), Patience::default()).unwrap();
        let tool = kit.tool(&entry(kind, settings)).unwrap().unwrap();
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
        assert!(fake.heard().is_empty(), "{kind}");
    }
}

#[tokio::test]
async fn a_provider_is_sent_to_the_address_that_was_judged() {
    for kind in READERS {
        let said = r"http://93.184.216.34\@169.254.169.254/";
        let (_, heard) = ask(
            kind,
            Reply::json(json!({})),
            json!({}),
            json!({ "url": said }),
        )
        .await;
        assert!(
            heard[0]
                .body
                .contains(r#""http://93.184.216.34/@169.254.169.254/""#),
            "{kind} {heard:?}"
        );
    }
}

#[tokio::test]
async fn a_provider_in_ones_own_network_is_never_sent_into_it() {
    for kind in READERS.into_iter().chain(["direct.web_fetch"]) {
        for url in [
            "http://127.0.0.1/",
            "http://localhost/",
            "http://[::1]/",
            "http://169.254.169.254/",
            "http://0x7f.1/",
            "file:///etc/passwd",
        ] {
            let (read, heard) = ask(
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
            assert!(heard.is_empty(), "{kind} {url}");
        }
    }
}

#[test]
fn entries_that_cannot_work_say_why() {
    let bad =
        |kind: &str, settings: Value| kit().tool(&entry(kind, settings)).unwrap().unwrap_err().why;
    assert!(bad("exa.web_search", json!({})).contains("EXA_API_KEY"));
    assert!(bad("firecrawl.web_search", json!({})).contains("FIRECRAWL_API_KEY"));
    assert!(bad("tavily.web_search", json!({"max_results": 0})).contains("max_results"));
    assert!(bad("tavily.web_search", json!({"max_results": "many"})).contains("max_results"));
    assert!(bad("tavily.web_search", json!({"timeout": -1})).contains("timeout"));
    assert!(bad("tavily.web_search", json!({"base_url": "ftp://x"})).contains("base_url"));
    assert!(bad("duckduckgo.web_search", json!({"safesearch": "maybe"})).contains("safesearch"));
    assert!(bad("direct.web_fetch", json!({"allowed_hosts": [5]})).contains("allowed_hosts"));
    assert!(
        bad(
            "direct.web_fetch",
            json!({"allow_private_addresses": "yes"})
        )
        .contains("allow_private_addresses")
    );
    assert!(bad("crawl4ai.web_fetch", json!({"filter": "all"})).contains("filter"));
    assert!(bad("jina.web_search", json!({})).contains("no such tool"));
    assert!(
        bad(
            "jina.web_fetch",
            json!({"__unresolved": [{"key": "proxy", "variable": "PROXY"}]})
        )
        .contains("PROXY")
    );
    assert!(kit().tool(&entry("sandbox.ls", json!({}))).is_none());
    // Tavily's key is in the environment, and SearXNG wants none.
    assert!(
        kit()
            .tool(&entry("tavily.web_search", json!({})))
            .unwrap()
            .is_ok()
    );
    assert!(
        kit()
            .tool(&entry("searxng.web_search", json!({})))
            .unwrap()
            .is_ok()
    );
    assert!(
        kit()
            .tool(&entry(
                "jina.web_fetch",
                json!({"proxy": "http://127.0.0.1:9", "trust_env": true})
            ))
            .unwrap()
            .is_ok()
    );
}

#[test]
fn arguments_have_the_names_and_defaults_that_callers_know() {
    let schema = |kind: &str| {
        kit()
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

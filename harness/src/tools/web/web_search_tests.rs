//! Tests of providers that search texts and images.

use super::*;

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
    let expected = "GET /i.js?o=json&q=deer&l=wt-wt&vqd=4-123&f=%2Csize%3ALarge%2C%2Ctype%3Aphoto%2Clayout%3AWide%2C&p=1 ";
    assert!(requests[1].head.starts_with(expected), "{requests:?}");
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

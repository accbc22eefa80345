//! Tests of providers that read pages, also in addition to a search.

use super::*;

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

//! Tests of failed, slow and invalid responses of providers.

use super::*;

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
    let unreachable = json!({"base_url": "http://127.0.0.1:9", "api_key": "sk-canary"});
    assert_eq!(
        call("tavily.web_search", unreachable, json!({"query": "x"})).await,
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

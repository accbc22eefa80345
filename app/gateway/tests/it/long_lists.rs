//! Lists of large entries are cut, and their next pages have the rest.

use harness::ids::{RunId, ThreadId};
use harness::runtime::runs::store::{NewRunEvent, RunEventStore};
use serde_json::{Value, json};

use crate::support::{Gateway, HttpResponse};

/// Bytes of a large entry.
const LARGE: usize = 900 << 10;
/// Number of large entries, more than one answer has.
const ENTRIES: usize = 45;
/// Bytes that no answer exceeds: the limit and one entry.
const MAX_ANSWER: usize = (32 << 20) + (2 << 20);

/// Asserts that the answer was cut, and returns the number of its entries.
fn cut(response: &HttpResponse, entries: &Value) -> usize {
    assert!(response.text().len() <= MAX_ANSWER);
    let count = entries.as_array().expect("a list").len();
    assert!(count > 20 && count < ENTRIES, "{count}");
    count
}

#[tokio::test]
async fn items_beyond_the_limit_are_on_the_next_page() {
    let gateway = Gateway::new();
    for n in 0..ENTRIES {
        let value = json!({ "text": "x".repeat(LARGE) });
        let item = json!({ "namespace": ["a"], "key": format!("k{n}"), "value": value });
        let put = gateway.send("PUT", "/store/items", Some(item)).await;
        assert_eq!(put.code(), 204);
    }
    let search =
        |offset: usize| json!({ "namespace_prefix": ["a"], "limit": 1_000, "offset": offset });
    let first = gateway.post("/store/items/search", search(0)).await;
    let count = cut(&first, &first.json()["items"]);
    assert_eq!(first.header("x-pagination-next"), count.to_string());
    let rest = gateway.post("/store/items/search", search(count)).await;
    let items = rest.json()["items"].as_array().expect("items").len();
    assert_eq!(
        (items, rest.header("x-pagination-next")),
        (ENTRIES - count, "")
    );
}

#[tokio::test]
async fn threads_beyond_the_limit_are_on_the_next_page() {
    let gateway = Gateway::new();
    for _ in 0..ENTRIES {
        let new = json!({ "metadata": { "graph_id": "lead_agent" } });
        let thread = gateway.post("/threads", new).await.json();
        let path = format!(
            "/threads/{}/state",
            thread["thread_id"].as_str().expect("an id")
        );
        let large = json!([{ "type": "human", "content": "x".repeat(LARGE) }]);
        let update = json!({ "values": { "messages": large } });
        assert_eq!(gateway.post(&path, update).await.code(), 200);
    }
    let search = |offset: usize| json!({ "limit": 1_000, "offset": offset });
    let first = gateway.post("/threads/search", search(0)).await;
    let count = cut(&first, &first.json());
    assert_eq!(first.header("x-pagination-next"), count.to_string());
    let rest = gateway.post("/threads/search", search(count)).await;
    let threads = rest.json().as_array().expect("threads").len();
    assert_eq!(
        (threads, rest.header("x-pagination-next")),
        (ENTRIES - count, "")
    );
    assert_eq!(rest.header("x-pagination-total"), ENTRIES.to_string());
}

#[tokio::test]
async fn messages_beyond_the_limit_are_on_the_page_before() {
    let gateway = Gateway::new();
    let thread = gateway.thread().await;
    let rows = (0..ENTRIES).map(|n| NewRunEvent {
        thread_id: ThreadId::parse(thread.as_str()).expect("an id"),
        run_id: RunId::parse("r1").expect("an id"),
        user_id: Some("default".to_owned()),
        event_type: "llm.ai.response".to_owned(),
        category: "message".to_owned(),
        content: json!({ "type": "ai", "id": format!("m{n}"), "content": "x".repeat(LARGE) })
            .into(),
        metadata: [("caller".to_owned(), json!("lead_agent"))]
            .into_iter()
            .collect(),
        created_at: chrono::DateTime::UNIX_EPOCH,
    });
    gateway
        .stores
        .append(rows.collect())
        .await
        .expect("a journal");
    let path = format!("/api/threads/{thread}/messages/page?limit=200");
    let newest = gateway.get(&path).await;
    let page = newest.json();
    let count = cut(&newest, &page["data"]);
    assert_eq!(page["has_more"], true);
    let before = page["next_before_seq"].as_u64().expect("a cursor");
    let rest = gateway
        .get(&format!("{path}&before_seq={before}"))
        .await
        .json();
    let older = rest["data"].as_array().expect("rows").len();
    assert_eq!((older, &rest["has_more"]), (ENTRIES - count, &json!(false)));
}

//! Sessions of people: lists, ends, streams, and the separation of users.

use std::time::Duration;

use futures_util::StreamExt;
use serde_json::{Value, json};

use super::browser::Browser;
use crate::support::{Gateway, saying};

const SESSIONS: &str = "/api/v1/auth/sessions";

#[tokio::test]
async fn people_list_and_end_their_sessions() {
    let gateway = Gateway::new();
    let mut ann = Browser::new(&gateway);
    ann.register("ann@example.org").await;
    let mut bob = Browser::new(&gateway);
    bob.register("bob@example.org").await;
    let mut phone = Browser::new(&gateway);
    phone.headers.push(("user-agent", "Phone/1".to_owned()));
    let mut tablet = Browser::new(&gateway);
    for browser in [&mut phone, &mut tablet] {
        browser
            .login("ann@example.org", super::browser::PASSWORD)
            .await;
    }
    let list = ann.get(SESSIONS).await.json();
    let list = list["sessions"].as_array().expect("a list");
    assert_eq!(list.len(), 3);
    assert_eq!(
        list.iter()
            .filter(|session| session["current"] == true)
            .count(),
        1
    );
    let of_phone = list
        .iter()
        .find(|session| session["user_agent"] == "Phone/1");
    let of_phone = of_phone.expect("listed")["id"]
        .as_str()
        .expect("an id")
        .to_owned();
    let one = format!("{SESSIONS}/{of_phone}");
    assert_eq!(bob.send("DELETE", &one, Value::Null).await.code(), 404);
    assert_eq!(ann.send("DELETE", &one, Value::Null).await.code(), 204);
    assert_eq!(ann.send("DELETE", &one, Value::Null).await.code(), 404);
    assert_eq!(
        ann.send("DELETE", &format!("{SESSIONS}/x"), Value::Null)
            .await
            .code(),
        404
    );
    assert_eq!(phone.me().await.code(), 401);
    assert_eq!(tablet.me().await.code(), 200);
    let ended = ann.send("DELETE", SESSIONS, Value::Null).await;
    assert_eq!(ended.json(), json!({ "ended": 1 }));
    assert_eq!(tablet.me().await.code(), 401);
    assert_eq!((ann.me().await.code(), bob.me().await.code()), (200, 200));
}

#[tokio::test]
async fn users_do_not_see_threads_of_each_other() {
    let gateway = Gateway::new();
    let mut ann = Browser::new(&gateway);
    ann.register("ann@example.org").await;
    let mut bob = Browser::new(&gateway);
    bob.register("bob@example.org").await;
    let thread = ann.post("/api/threads", json!({})).await.json();
    let id = thread["thread_id"].as_str().expect("an id");
    for prefix in ["", "/api", "/api/langgraph"] {
        let path = format!("{prefix}/threads/{id}");
        assert_eq!(ann.get(&path).await.code(), 200, "{path}");
        assert_eq!(bob.get(&path).await.code(), 404, "{path}");
    }
    assert_eq!(
        bob.post("/api/threads/search", json!({})).await.json(),
        json!([])
    );
}

#[tokio::test]
async fn unsafe_request_of_a_page_needs_its_csrf_token() {
    let gateway = Gateway::new();
    let mut ann = Browser::new(&gateway);
    ann.register("ann@example.org").await;
    let token = ann.cookies.remove("csrf_token").expect("a token");
    for path in ["/threads", "/api/threads", "/api/langgraph/threads"] {
        let refused = ann.post(path, json!({})).await;
        assert_eq!(refused.code(), 403, "{path}");
        assert!(
            refused.text().contains("CSRF token missing"),
            "{}",
            refused.text()
        );
    }
    ann.cookies.insert("csrf_token".to_owned(), token);
    for path in ["/threads", "/api/threads", "/api/langgraph/threads"] {
        assert_eq!(ann.post(path, json!({})).await.code(), 200, "{path}");
    }
}

#[tokio::test]
async fn stream_of_ended_session_breaks_while_its_run_goes_on() {
    let gateway = Gateway::new();
    let mut ann = Browser::new(&gateway);
    ann.register("ann@example.org").await;
    let thread = ann.post("/api/threads", json!({})).await.json();
    let id = thread["thread_id"].as_str().expect("an id").to_owned();
    let path = format!("/api/threads/{id}/runs/stream");
    let cookie: Vec<String> = ann
        .cookies
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    let headers = [
        ("cookie", &*cookie.join("; ")),
        ("x-csrf-token", &*ann.cookies["csrf_token"]),
    ];
    let body = saying("slow").to_string();
    let response = gateway.open("POST", &path, body, &headers).await;
    assert_eq!(response.status(), 200);
    let mut stream = response.into_body().into_data_stream();
    assert!(stream.next().await.expect("a chunk").is_ok());
    let mut phone = Browser::new(&gateway);
    phone
        .login("ann@example.org", super::browser::PASSWORD)
        .await;
    ann.post("/api/v1/auth/logout", Value::Null).await;
    let broken = async {
        while let Some(chunk) = stream.next().await {
            if let Err(error) = chunk {
                return error.to_string();
            }
        }
        "a regular end".to_owned()
    };
    let broken = tokio::time::timeout(Duration::from_secs(5), broken).await;
    assert!(broken.expect("in time").contains("the session has ended"));
    drop(stream);
    let runs = phone.get(&format!("/api/threads/{id}/runs")).await.json();
    assert_eq!(runs[0]["status"], "running", "{runs}");
}

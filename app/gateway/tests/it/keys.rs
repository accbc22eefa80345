//! Two users with a key each: on every route, a user's resources are hidden from the other user.

use deerflow_domain::api_keys::{Rights, issue};
use harness::clock::{Clock, SystemClock};
use secrecy::ExposeSecret;
use serde_json::{Value, json};

use crate::support::{Gateway, HttpResponse, saying, saying_with};

pub(crate) struct User<'a> {
    gateway: &'a Gateway,
    key: String,
}

impl<'a> User<'a> {
    pub(crate) async fn new(gateway: &'a Gateway, name: &str) -> Self {
        let (_, key) = issue(
            &*gateway.keys,
            name,
            Rights::User,
            None,
            None,
            SystemClock.now(),
        )
        .await
        .expect("a key");
        Self {
            gateway,
            key: key.expose_secret().to_owned(),
        }
    }

    pub(crate) async fn send(&self, method: &str, path: &str, body: Value) -> HttpResponse {
        let body = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        self.gateway
            .raw(method, path, body, &[("x-api-key", &self.key)])
            .await
    }

    async fn text(&self, method: &str, path: &str, body: Value, field: &str) -> String {
        let response = self.send(method, path, body).await;
        response.json()[field]
            .as_str()
            .unwrap_or_else(|| panic!("{method} {path}: {}", response.text()))
            .to_owned()
    }
}

#[tokio::test(start_paused = true)]
async fn wrong_key_is_rejected_in_either_dialect() {
    let gateway = Gateway::new();
    for path in ["/threads/search", "/api/threads/search"] {
        let refused = gateway
            .raw("POST", path, "{}", &[("authorization", "Bearer nope")])
            .await;
        let detail = refused.json()["detail"]
            .as_str()
            .expect("a text")
            .to_owned();
        assert!(
            refused.code() == 401 && detail.contains("deerflow keys create"),
            "{detail}"
        );
        let challenge = refused.header("www-authenticate");
        assert!(
            challenge.starts_with("Bearer realm=\"deerflow\", error=\"invalid_token\""),
            "{challenge}"
        );
    }
    let mut last = None;
    for _ in 0..40 {
        last = Some(
            gateway
                .raw("GET", "/info", "", &[("x-api-key", "nope")])
                .await,
        );
    }
    let last = last.expect("an answer");
    assert_eq!(last.code(), 429);
    assert!(
        last.header("retry-after")
            .parse::<u64>()
            .is_ok_and(|seconds| seconds >= 1)
    );
}

#[tokio::test]
async fn resources_of_another_user_are_hidden_on_every_route() {
    let gateway = Gateway::new();
    let (ann, bob) = (
        User::new(&gateway, "ann").await,
        User::new(&gateway, "bob").await,
    );
    let thread = ann.text("POST", "/threads", json!({}), "thread_id").await;
    let run = ann
        .text(
            "POST",
            &format!("/threads/{thread}/runs"),
            saying("say secret"),
            "run_id",
        )
        .await;
    ann.send(
        "GET",
        &format!("/threads/{thread}/runs/{run}/join"),
        Value::Null,
    )
    .await;
    let checkpoint = ann
        .send("GET", &format!("/threads/{thread}/state"), Value::Null)
        .await
        .json()["checkpoint"]["checkpoint_id"]
        .clone();
    let checkpoint = checkpoint.as_str().expect("an id").to_owned();
    let timed = saying_with("hi", json!({ "schedule": "0 3 * * *" }));
    let cron = ann
        .text(
            "POST",
            &format!("/threads/{thread}/runs/crons"),
            timed.clone(),
            "cron_id",
        )
        .await;
    ann.send(
        "PUT",
        "/store/items",
        json!({ "namespace": ["n"], "key": "k", "value": { "secret": 1 } }),
    )
    .await;
    let made = json!({ "graph_id": "lead_agent", "name": "secret", "context": { "secret": 1 } });
    let assistant = ann.text("POST", "/assistants", made, "assistant_id").await;
    let of_theirs =
        |more: Value| saying_with("hi", json!({ "assistant_id": assistant, "more": more }));

    let unknown = "2bd06ce7-e763-4b9c-af17-60e5565443f1";
    let at = json!({ "checkpoint": { "checkpoint_id": checkpoint } });
    let mut routes: Vec<(&str, String, Value)> = Vec::new();
    for prefix in ["", "/api", "/api/langgraph"] {
        let of = |path: &str| format!("{prefix}/threads/{thread}{path}");
        routes.extend([
            ("GET", of(""), Value::Null),
            ("PATCH", of(""), json!({ "metadata": { "x": 1 } })),
            ("POST", of("/copy"), json!({})),
            ("GET", of("/state"), Value::Null),
            ("POST", of("/state"), json!({ "values": {} })),
            ("POST", of("/state/checkpoint"), at.clone()),
            ("GET", of(&format!("/state/{checkpoint}")), Value::Null),
            ("GET", of("/history"), Value::Null),
            ("POST", of("/history"), json!({})),
            ("GET", of("/runs"), Value::Null),
            ("POST", of("/runs"), saying("hi")),
            ("POST", of("/runs/stream"), saying("hi")),
            ("POST", of("/runs/wait"), saying("hi")),
            ("GET", of(&format!("/runs/{run}")), Value::Null),
            ("POST", of(&format!("/runs/{run}/cancel")), Value::Null),
            ("GET", of(&format!("/runs/{run}/join")), Value::Null),
            ("GET", of(&format!("/runs/{run}/stream")), Value::Null),
            ("DELETE", of(&format!("/runs/{run}")), Value::Null),
            (
                "POST",
                format!("{prefix}/runs/cancel"),
                json!({ "thread_id": thread, "run_ids": [run] }),
            ),
        ]);
    }
    for path in [
        "/messages",
        "/messages/page",
        "/token-usage",
        "/uploads/list",
        "/artifacts/mnt/user-data/outputs/x.txt",
        &format!("/runs/{run}/messages"),
        &format!("/runs/{run}/events"),
        &format!("/runs/{run}/workspace-changes"),
        &format!("/runs/{run}/feedback"),
        &format!("/runs/{run}/feedback/stats"),
    ] {
        routes.push(("GET", format!("/api/threads/{thread}{path}"), Value::Null));
    }
    routes.extend([
        (
            "PUT",
            format!("/api/threads/{thread}/runs/{run}/feedback"),
            json!({ "rating": 1 }),
        ),
        (
            "DELETE",
            format!("/api/threads/{thread}/runs/{run}/feedback"),
            Value::Null,
        ),
        (
            "POST",
            format!("/api/threads/{thread}/runs/regenerate/prepare"),
            json!({ "message_id": "m" }),
        ),
        ("POST", format!("/threads/{thread}/runs/crons"), timed),
        ("GET", format!("/runs/crons/{cron}"), Value::Null),
        (
            "PATCH",
            format!("/runs/crons/{cron}"),
            json!({ "enabled": false }),
        ),
        ("DELETE", format!("/runs/crons/{cron}"), Value::Null),
        (
            "PATCH",
            format!("/threads/{thread}/state"),
            json!({ "metadata": { "x": 1 } }),
        ),
        ("GET", format!("/threads/{thread}/stream"), Value::Null),
        ("GET", format!("/assistants/{assistant}"), Value::Null),
        (
            "PATCH",
            format!("/assistants/{assistant}"),
            json!({ "name": "x" }),
        ),
        (
            "POST",
            format!("/assistants/{assistant}/versions"),
            json!({}),
        ),
        (
            "POST",
            format!("/assistants/{assistant}/latest"),
            json!({ "version": 1 }),
        ),
        ("GET", format!("/assistants/{assistant}/graph"), Value::Null),
        (
            "GET",
            format!("/assistants/{assistant}/schemas"),
            Value::Null,
        ),
        (
            "GET",
            format!("/assistants/{assistant}/subgraphs"),
            Value::Null,
        ),
        ("DELETE", format!("/assistants/{assistant}"), Value::Null),
        ("POST", "/assistants/search".to_owned(), json!({})),
        (
            "POST",
            "/assistants/search".to_owned(),
            json!({ "name": "secret" }),
        ),
        ("POST", "/assistants/count".to_owned(), json!({})),
        (
            "POST",
            "/runs/batch".to_owned(),
            json!([saying("hi"), of_theirs(json!(1))]),
        ),
        ("POST", "/runs".to_owned(), of_theirs(json!(2))),
        (
            "POST",
            "/runs/crons".to_owned(),
            saying_with(
                "hi",
                json!({ "assistant_id": assistant, "schedule": "0 3 * * *" }),
            ),
        ),
        (
            "GET",
            "/store/items?namespace=n&key=k".to_owned(),
            Value::Null,
        ),
        ("POST", "/store/items/search".to_owned(), json!({})),
        ("POST", "/store/namespaces".to_owned(), json!({})),
        (
            "DELETE",
            "/store/items".to_owned(),
            json!({ "namespace": ["n"], "key": "k" }),
        ),
        ("POST", "/threads/search".to_owned(), json!({})),
        ("POST", "/threads/count".to_owned(), json!({})),
        ("POST", "/runs/crons/search".to_owned(), json!({})),
        ("POST", "/runs/crons/count".to_owned(), json!({})),
    ]);
    let masked = |response: &HttpResponse| {
        [&thread, &run, &cron, &assistant]
            .into_iter()
            .fold(response.text().to_owned(), |text, id| {
                text.replace(id.as_str(), unknown)
            })
    };
    for (method, path, body) in routes {
        let theirs = bob.send(method, &path, body.clone()).await;
        let rename = |text: &str| {
            [&thread, &run, &cron, &assistant]
                .into_iter()
                .fold(text.to_owned(), |text, id| {
                    text.replace(id.as_str(), unknown)
                })
        };
        let (path_of_none, body_of_none) = (
            rename(&path),
            serde_json::from_str(&rename(&body.to_string())).expect("JSON"),
        );
        let none = bob.send(method, &path_of_none, body_of_none).await;
        assert_eq!(
            (theirs.code(), masked(&theirs)),
            (none.code(), none.text().to_owned()),
            "{method} {path}"
        );
        assert!(!theirs.text().contains("secret"), "{method} {path}");
    }
    assert_eq!(
        ann.send("GET", "/store/items?namespace=n&key=k", Value::Null)
            .await
            .json()["value"],
        json!({ "secret": 1 })
    );
    assert_eq!(
        ann.send("GET", &format!("/runs/crons/{cron}"), Value::Null)
            .await
            .json()["enabled"],
        true
    );
    assert_eq!(
        ann.send("GET", &format!("/assistants/{assistant}"), Value::Null)
            .await
            .json()["version"],
        1
    );
    let runs = ann
        .send("GET", &format!("/threads/{thread}/runs"), Value::Null)
        .await
        .json();
    assert_eq!(
        (runs.as_array().map(Vec::len), &runs[0]["status"]),
        (Some(1), &json!("success"))
    );
}

#[tokio::test]
async fn changes_of_a_graph_assistant_are_private_to_their_user() {
    let gateway = Gateway::new();
    let (ann, bob) = (
        User::new(&gateway, "ann").await,
        User::new(&gateway, "bob").await,
    );
    let all = async |user: &User<'_>| {
        user.send("POST", "/assistants/search", json!({}))
            .await
            .json()
    };
    let current = all(&bob).await;
    let path = format!(
        "/assistants/{}",
        current[0]["assistant_id"].as_str().expect("an id")
    );
    let theirs = ann
        .send(
            "PATCH",
            &path,
            json!({ "name": "secret", "context": { "model_name": "nope" } }),
        )
        .await
        .json();
    assert_eq!(
        (all(&ann).await, all(&bob).await),
        (json!([theirs]), current.clone())
    );
    assert_eq!(bob.send("GET", &path, Value::Null).await.json(), current[0]);
    assert_eq!(
        bob.send("POST", &format!("{path}/versions"), json!({}))
            .await
            .json()
            .as_array()
            .map(Vec::len),
        Some(1)
    );
    assert_eq!(
        bob.send("POST", &format!("{path}/latest"), json!({ "version": 2 }))
            .await
            .code(),
        404
    );
    assert_eq!(
        bob.send("POST", "/runs/wait", saying("say b")).await.code(),
        200
    );
    let mine = bob
        .send("PATCH", &path, json!({ "name": "mine" }))
        .await
        .json();
    assert_eq!(
        (&mine["version"], all(&ann).await),
        (&json!(2), json!([theirs]))
    );
}

//! Journal routes: transcript pages, hidden rows, token counts.

use harness::ids::{RunId, ThreadId};
use harness::runtime::runs::store::{NewRunEvent, RunEventStore};
use serde_json::{Value, json};

use crate::support::{Gateway, saying};

async fn journal(
    gateway: &Gateway,
    thread: &str,
    rows: impl IntoIterator<Item = (&'static str, Value)>,
) {
    let at = chrono::DateTime::UNIX_EPOCH;
    let rows = rows.into_iter().map(|(caller, content)| NewRunEvent {
        thread_id: ThreadId::parse(thread).expect("an id"),
        run_id: RunId::parse("r1").expect("an id"),
        user_id: Some("default".to_owned()),
        event_type: "llm.ai.response".to_owned(),
        category: "message".to_owned(),
        content: content.into(),
        metadata: [("caller".to_owned(), Value::from(caller))]
            .into_iter()
            .collect(),
        created_at: at,
    });
    gateway
        .stores
        .append(rows.collect())
        .await
        .expect("a journal");
}

#[tokio::test]
async fn empty_journal_is_an_empty_page() {
    let gateway = Gateway::new();
    let thread = gateway.thread().await;
    let page = gateway
        .get(&format!("/api/threads/{thread}/messages/page"))
        .await;
    assert_eq!(
        page.text(),
        r#"{"data":[],"has_more":false,"next_before_seq":null}"#
    );
}

#[tokio::test]
async fn pages_are_full_and_contiguous_despite_hidden_rows() {
    let gateway = Gateway::new();
    let thread = gateway.thread().await;
    // Long stretches of hidden rows, longer than one page of the store.
    let rows = (0..700).map(|at| {
        let caller = if at % 70 == 0 {
            "lead_agent"
        } else {
            "middleware:title"
        };
        (
            caller,
            json!({ "type": "ai", "id": format!("m{at}"), "content": "x" }),
        )
    });
    journal(&gateway, &thread, rows).await;
    let mut seen = Vec::new();
    let mut before = String::new();
    loop {
        let page = gateway
            .get(&format!(
                "/api/threads/{thread}/messages/page?limit=3{before}"
            ))
            .await
            .json();
        let data = page["data"].as_array().expect("rows").clone();
        let mut ids: Vec<String> = data
            .iter()
            .map(|row| row["content"]["id"].as_str().expect("an id").to_owned())
            .collect();
        ids.extend(std::mem::take(&mut seen));
        seen = ids;
        assert!(
            data.iter()
                .all(|row| row["feedback"].is_null()
                    && row["seq"].as_u64().is_some_and(|seq| seq > 0))
        );
        if page["has_more"] == false {
            assert_eq!(page["next_before_seq"], Value::Null);
            break;
        }
        assert_eq!(data.len(), 3);
        before = format!("&before_seq={}", page["next_before_seq"]);
    }
    let expected: Vec<String> = (0..700).step_by(70).map(|at| format!("m{at}")).collect();
    assert_eq!(seen, expected);
    assert_eq!(
        gateway
            .get(&format!("/api/threads/{thread}/messages/page?after_seq=1"))
            .await
            .code(),
        422
    );
    assert_eq!(
        gateway
            .get(&format!("/api/threads/{thread}/messages?limit=200"))
            .await
            .json()
            .as_array()
            .expect("rows")
            .len(),
        200
    );
}

#[tokio::test]
async fn stream_state_history_and_journal_agree_on_ids() {
    let gateway = Gateway::new();
    let thread = gateway.thread().await;
    for text in ["say a", "say b"] {
        gateway
            .post(&format!("/api/threads/{thread}/runs/wait"), saying(text))
            .await;
    }
    let ids = |messages: &Value| -> Vec<String> {
        messages
            .as_array()
            .expect("messages")
            .iter()
            .map(|message| message["id"].as_str().expect("an id").to_owned())
            .collect()
    };
    let state = ids(&gateway
        .get(&format!("/api/threads/{thread}/state"))
        .await
        .json()["values"]["messages"]);
    let history = ids(&gateway
        .post(
            &format!("/api/threads/{thread}/history"),
            json!({ "limit": 1 }),
        )
        .await
        .json()[0]["values"]["messages"]);
    let page = gateway
        .get(&format!("/api/threads/{thread}/messages/page"))
        .await
        .json();
    let transcript: Vec<String> = page["data"]
        .as_array()
        .expect("rows")
        .iter()
        .map(|row| row["content"]["id"].as_str().expect("an id").to_owned())
        .collect();
    assert_eq!((state.len(), &history, &transcript), (4, &state, &state));
    let messages = &gateway
        .get(&format!("/api/threads/{thread}/state"))
        .await
        .json()["values"]["messages"];
    assert_eq!(messages[3]["run_id"], page["data"][3]["run_id"]);
    assert!(messages[3]["additional_kwargs"]["turn_duration"].is_number());
}

#[tokio::test]
async fn rows_and_counts_are_available_after_a_run() {
    let gateway = Gateway::new();
    let thread = gateway.thread().await;
    let waited = gateway
        .post(&format!("/api/threads/{thread}/runs/wait"), saying("say a"))
        .await;
    let run = waited
        .header("content-location")
        .rsplit('/')
        .next()
        .expect("an id")
        .to_owned();
    let base = format!("/api/threads/{thread}/runs/{run}");
    let messages = gateway.get(&format!("{base}/messages")).await.json();
    assert_eq!(
        (
            messages["data"].as_array().expect("rows").len(),
            &messages["has_more"]
        ),
        (2, &json!(false))
    );
    let events = gateway
        .get(&format!("{base}/events?limit=2000"))
        .await
        .json();
    let types: Vec<&str> = events
        .as_array()
        .expect("rows")
        .iter()
        .filter_map(|row| row["event_type"].as_str())
        .collect();
    assert!(
        types.contains(&"llm.human.input") && types.contains(&"llm.ai.response"),
        "{types:?}"
    );
    assert!(types.ends_with(&["run.end", "run.delivery"]), "{types:?}");
    let only = gateway
        .get(&format!("{base}/events?event_types=llm.ai.response,x"))
        .await
        .json();
    assert_eq!(only.as_array().expect("rows").len(), 1);
    assert_eq!(
        gateway
            .get(&format!("{base}/events?task_id=none"))
            .await
            .json(),
        json!([])
    );
    let changes = gateway.get(&format!("{base}/workspace-changes")).await;
    assert_eq!(
        changes.text(),
        r#"{"available":false,"version":1,"summary":{"created":0,"modified":0,"deleted":0,"symlink_created":0,"additions":0,"deletions":0,"truncated":false},"files":[],"limits":{}}"#
    );
    let usage = gateway
        .get(&format!(
            "/api/threads/{thread}/token-usage?include_active=true"
        ))
        .await
        .json();
    assert_eq!(
        (&usage["total_runs"], &usage["by_caller"]["lead_agent"]),
        (&json!(1), &json!(0))
    );
    assert_eq!(
        gateway
            .post(
                &format!("/api/threads/{thread}/suggestions"),
                json!({ "messages": [], "n": 3 })
            )
            .await
            .json(),
        json!({ "suggestions": [] })
    );
}

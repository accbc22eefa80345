//! Totals of a user's runs.

use serde_json::{Value, json};

use crate::support::{Gateway, saying};

async fn console(gateway: &Gateway, path: &str) -> Value {
    let response = gateway.get(&format!("/api/console/{path}")).await;
    assert_eq!(response.code(), 200, "{}", response.text());
    response.json()
}

#[tokio::test]
async fn a_new_user_sees_zeros_on_every_day() {
    let gateway = Gateway::new();
    let stats = console(&gateway, "stats").await;
    let zeros = json!({
        "total_runs": 0, "active_runs": 0, "failed_runs": 0, "total_threads": 0, "total_agents": 0, "total_tokens": 0,
        "total_cost": null, "currency": null,
    });
    assert_eq!(stats, zeros);
    assert_eq!(
        console(&gateway, "runs").await,
        json!({ "runs": [], "has_more": false })
    );
    let usage = console(&gateway, "usage").await;
    assert_eq!(usage["days"].as_array().unwrap().len(), 14);
    assert_eq!(
        (
            &usage["by_model"],
            &usage["total_tokens"],
            &usage["total_cost"]
        ),
        (&json!({}), &json!(0), &Value::Null)
    );
}

#[tokio::test]
async fn runs_of_all_threads_are_counted_and_paged() {
    let gateway = Gateway::at_noon();
    for text in ["say one", "fail once", "say two"] {
        let thread = gateway.thread().await;
        gateway
            .post(&format!("/api/threads/{thread}/runs/wait"), saying(text))
            .await;
    }
    let stats = console(&gateway, "stats").await;
    assert_eq!(
        (
            &stats["total_runs"],
            &stats["failed_runs"],
            &stats["total_threads"]
        ),
        (&json!(3), &json!(1), &json!(3))
    );
    let page = console(&gateway, "runs?limit=2").await;
    assert_eq!(
        (page["runs"].as_array().unwrap().len(), &page["has_more"]),
        (2, &json!(true))
    );
    let rest = console(&gateway, "runs?limit=2&offset=2").await;
    assert_eq!(
        (rest["runs"].as_array().unwrap().len(), &rest["has_more"]),
        (1, &json!(false))
    );
    let failed = console(&gateway, "runs?status=error").await;
    assert_eq!(failed["runs"].as_array().unwrap().len(), 1);
    assert!(
        failed["runs"][0]["error"]
            .as_str()
            .unwrap()
            .contains("once"),
        "{failed}"
    );
    let usage = console(&gateway, "usage?days=1").await;
    assert_eq!(
        (&usage["days"][0]["runs"], &usage["total_runs"]),
        (&json!(3), &json!(3))
    );
}

#[tokio::test]
async fn draft_without_a_thread_is_charged_to_its_user() {
    let gateway = Gateway::at_noon();
    let draft = json!({ "text": "[[usage 3,4]] then say Better." });
    assert_eq!(gateway.post("/api/input-polish", draft).await.code(), 200);
    let usage = console(&gateway, "usage?days=1").await;
    // 3 tokens at one euro and 4 tokens at two euros each.
    assert_eq!(
        (
            &usage["total_tokens"],
            &usage["total_cost"],
            &usage["currency"]
        ),
        (&json!(7), &json!(11.0), &json!("EUR"))
    );
    let model =
        json!({ "tokens": 7, "runs": 0, "cost": 11.0, "input_tokens": 3, "cache_read_tokens": 0 });
    assert_eq!(usage["by_model"], json!({ "fake": model }));
    assert_eq!(
        (&usage["days"][0]["total_tokens"], &usage["days"][0]["cost"]),
        (&json!(7), &json!(11.0))
    );
    assert_eq!(console(&gateway, "stats").await["total_cost"], 11.0);
}

#[tokio::test]
async fn invalid_console_parameters_are_rejected() {
    let gateway = Gateway::new();
    for path in [
        "runs?limit=0",
        "runs?limit=101",
        "runs?limit=x",
        "runs?offset=-1",
        "runs?offset=99999999999999999999",
        "runs?status=odd",
        "usage?days=0",
        "usage?days=91",
        "usage?days=1.5",
        "usage?tz_offset_minutes=841",
        "usage?tz_offset_minutes=-841",
        "usage?tz_offset_minutes=x",
    ] {
        assert_eq!(
            gateway.get(&format!("/api/console/{path}")).await.code(),
            422,
            "{path}"
        );
    }
    for path in [
        "usage?tz_offset_minutes=840&days=90",
        "usage?tz_offset_minutes=-840",
        "runs?limit=100&offset=1000000000&status=timeout",
    ] {
        assert_eq!(
            gateway.get(&format!("/api/console/{path}")).await.code(),
            200,
            "{path}"
        );
    }
}

//! Feedback, and its short form in journal rows.

use async_trait::async_trait;
use deerflow_domain::feedback::{Feedback, FeedbackStore};
use harness::ids::{RunId, ThreadId};
use harness::runtime::actor_context::Owner;
use harness::runtime::runs::store::StoreError;
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::support::{Gateway, saying};

/// In-memory feedback of one user.
#[derive(Debug, Default)]
pub(crate) struct FeedbackRows(Mutex<Vec<Feedback>>);

#[async_trait]
impl FeedbackStore for FeedbackRows {
    async fn put(&self, mut feedback: Feedback) -> Result<Option<Feedback>, StoreError> {
        let mut rows = self.0.lock();
        if let Some(at) = rows.iter().position(|row| row.run_id == feedback.run_id) {
            feedback.feedback_id = rows.remove(at).feedback_id;
        }
        rows.push(feedback.clone());
        Ok(Some(feedback))
    }

    async fn list(
        &self,
        thread: &ThreadId,
        run: Option<&RunId>,
        _owner: &Owner,
    ) -> Result<Vec<Feedback>, StoreError> {
        let fits =
            |row: &&Feedback| row.thread_id == *thread && run.is_none_or(|run| row.run_id == *run);
        Ok(self.0.lock().iter().filter(fits).cloned().collect())
    }

    async fn delete(
        &self,
        _thread: &ThreadId,
        run: &RunId,
        id: Option<&str>,
        _owner: &Owner,
    ) -> Result<bool, StoreError> {
        let mut rows = self.0.lock();
        let before = rows.len();
        rows.retain(|row| row.run_id != *run || id.is_some_and(|id| row.feedback_id != id));
        Ok(rows.len() < before)
    }
}

async fn answered(gateway: &Gateway) -> (String, String) {
    let thread = gateway.thread().await;
    let run = gateway
        .post(&format!("/api/threads/{thread}/runs"), saying("say a"))
        .await
        .json();
    let run = run["run_id"].as_str().expect("an id").to_owned();
    gateway.wait_for_status(&thread, &run).await;
    (format!("/api/threads/{thread}"), run)
}

#[tokio::test]
async fn feedback_is_added_changed_and_removed() {
    let gateway = Gateway::new();
    let (thread, run) = answered(&gateway).await;
    let path = format!("{thread}/runs/{run}/feedback");
    let up = gateway
        .send("PUT", &path, Some(json!({ "rating": 1, "comment": null })))
        .await
        .json();
    let keys: Vec<&String> = up.as_object().expect("a row").keys().collect();
    assert_eq!(
        keys,
        [
            "feedback_id",
            "run_id",
            "thread_id",
            "user_id",
            "message_id",
            "rating",
            "comment",
            "created_at"
        ]
    );
    assert_eq!(
        (&up["rating"], &up["comment"], &up["user_id"]),
        (&json!(1), &Value::Null, &json!("default"))
    );
    let down = gateway
        .post(
            &path,
            json!({ "rating": -1, "comment": "meh", "message_id": "m1" }),
        )
        .await
        .json();
    assert_eq!(down["feedback_id"], up["feedback_id"]);
    assert_eq!(gateway.get(&path).await.json(), json!([down]));
    assert_eq!(
        gateway.get(&format!("{path}/stats")).await.json(),
        json!({ "run_id": run, "total": 1, "positive": 0, "negative": 1 })
    );

    let pages = [
        format!("{thread}/messages/page"),
        format!("{thread}/messages"),
    ];
    let expected = json!({ "feedback_id": up["feedback_id"], "rating": -1, "comment": "meh" });
    for page in &pages {
        let rows = gateway.get(page).await.json();
        let rows = rows
            .get("data")
            .unwrap_or(&rows)
            .as_array()
            .expect("rows")
            .clone();
        let feedback: Vec<&Value> = rows.iter().map(|row| &row["feedback"]).collect();
        assert_eq!(feedback, [&Value::Null, &expected], "{page}");
    }

    let wrong = gateway.send("DELETE", &format!("{path}/other"), None).await;
    assert_eq!(wrong.code(), 404);
    assert_eq!(
        gateway.send("DELETE", &path, None).await.json(),
        json!({ "success": true })
    );
    let none = gateway.send("DELETE", &path, None).await;
    assert_eq!(
        (none.code(), none.json()),
        (404, json!({ "detail": "No feedback found for this run" }))
    );
    let id = gateway
        .send("PUT", &path, Some(json!({ "rating": 1 })))
        .await
        .json()["feedback_id"]
        .as_str()
        .expect("an id")
        .to_owned();
    assert_eq!(
        gateway
            .send("DELETE", &format!("{path}/{id}"), None)
            .await
            .json(),
        json!({ "success": true })
    );
}

#[tokio::test]
async fn a_rating_is_one_or_minus_one_and_the_run_must_exist() {
    let gateway = Gateway::new();
    let (thread, run) = answered(&gateway).await;
    let path = format!("{thread}/runs/{run}/feedback");
    for (body, code) in [
        (json!({ "rating": 0 }), 400),
        (json!({ "rating": 5 }), 400),
        (json!({ "rating": -1.5 }), 400),
        (json!({ "rating": u64::MAX }), 400),
        (json!({ "rating": "1" }), 422),
        (json!({}), 422),
        (json!({ "rating": 1, "comment": 2 }), 422),
    ] {
        let response = gateway.send("PUT", &path, Some(body.clone())).await;
        assert_eq!(response.code(), code, "{body}: {}", response.text());
        if code == 400 {
            assert_eq!(
                response.json(),
                json!({ "detail": "rating must be +1 or -1" })
            );
        }
    }
    let unknown = gateway
        .send(
            "PUT",
            &format!("{thread}/runs/nope/feedback"),
            Some(json!({ "rating": 1 })),
        )
        .await;
    assert_eq!(
        (unknown.code(), unknown.json()),
        (404, json!({ "detail": "Run nope not found" }))
    );
    assert_eq!(
        gateway
            .get(&format!("/api/threads/nope/runs/{run}/feedback"))
            .await
            .code(),
        404
    );
}

//! JSON of feedback.

use deerflow_domain::feedback::Feedback;
use harness::clock::iso;
use serde_json::{Value, json};

/// Returns the whole row.
pub fn feedback_json(feedback: &Feedback) -> Value {
    json!({
        "feedback_id": feedback.feedback_id,
        "run_id": feedback.run_id,
        "thread_id": feedback.thread_id,
        "user_id": feedback.user_id,
        "message_id": feedback.message_id,
        "rating": feedback.rating.as_number(),
        "comment": feedback.comment,
        "created_at": iso(feedback.created_at),
    })
}

/// Returns the short form for a journal row.
pub fn feedback_short_json(feedback: &Feedback) -> Value {
    json!({ "feedback_id": feedback.feedback_id, "rating": feedback.rating.as_number(), "comment": feedback.comment })
}

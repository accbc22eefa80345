//! Calls that a person has to allow: what is asked, and what counts as a yes.
//!
//! Question and answer have the form of LangChain's human-in-the-loop middleware, which LangGraph's interfaces show as a card.

use serde_json::{Value, json};

use crate::messages::ToolCall;

/// What a person is shown: the call with the very arguments that it would be made with.
pub(super) fn question(call: &ToolCall, reason: &str) -> Value {
    json!({
        "action_requests": [{ "name": call.name, "args": call.args, "description": reason }],
        "review_configs": [{ "action_name": call.name, "allowed_decisions": ["approve", "reject"] }],
    })
}

/// Whether the answer allows the call. Whatever is not plainly a yes is a no.
pub(super) fn approves(answer: &Value) -> bool {
    match answer {
        Value::Bool(yes) => *yes,
        _ => matches!(answer["decisions"].as_array().map(Vec::as_slice), Some([one]) if one["type"] == "approve"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_plain_yes_allows() {
        let approve = json!({"type": "approve"});
        for yes in [json!(true), json!({"decisions": [approve]})] {
            assert!(approves(&yes), "{yes}");
        }
        for no in [
            json!(false),
            json!(null),
            json!("approve"),
            json!("yes"),
            json!(1),
            json!([]),
            json!({}),
            json!({"decisions": []}),
            json!({"decisions": [approve, approve]}),
            json!({"decisions": [{"type": "reject"}, approve]}),
            json!({"decisions": [{"type": "Approve"}]}),
            json!({"decisions": [{"type": ["approve"]}]}),
            json!({"decisions": {"type": "approve"}}),
            approve,
        ] {
            assert!(!approves(&no), "{no}");
        }
    }
}

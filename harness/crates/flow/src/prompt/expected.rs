//! Structured output that a turn shall return.

use serde_json::json;

use crate::adapter::ExpectedOutput;
use crate::schema::OutputKind;

/// Returns the expected output of a kind: a plan, an evaluation, or none.
pub fn expected_output(kind: OutputKind) -> Option<ExpectedOutput> {
    match kind {
        OutputKind::Plan => Some(ExpectedOutput {
            schema_ref: "plan".to_owned(),
            schema: None,
        }),
        OutputKind::Score => Some(ExpectedOutput {
            schema_ref: "score".to_owned(),
            schema: Some(json!({
                "type": "object",
                "properties": {
                    "score": {"type": "number"},
                    "canComplete": {"type": "boolean"},
                    "reason": {"type": "string"},
                },
            })),
        }),
        _ => None,
    }
}

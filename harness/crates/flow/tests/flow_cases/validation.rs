//! Comparison of findings: the exact list of errors, and the exact set of warnings.

use std::collections::BTreeSet;

use deerflow_flow::finding::Validation;
use serde_json::{Value, json};

use super::matching::compare;

/// Adds the differences of a validation.
pub(crate) fn compare_validation(
    differences: &mut Vec<String>,
    expect: &Value,
    found: &Validation,
) {
    if let Some(expected) = expect.get("structural") {
        return compare(differences, "structural", &json!(found.errors), expected);
    }
    let expected = &expect["validation"];
    let errors = expected.get("errors").cloned().unwrap_or_else(|| json!([]));
    compare(differences, "errors", &json!(found.errors), &errors);
    if let Some(warnings) = expected["warnings"].as_array() {
        let expected: BTreeSet<&str> = warnings.iter().filter_map(Value::as_str).collect();
        let codes = found.warnings.iter().map(|warning| warning.code.as_str());
        let found: BTreeSet<&str> = codes.collect();
        if expected != found {
            differences.push(format!("warnings: expected {expected:?}, got {found:?}"));
        }
    }
}

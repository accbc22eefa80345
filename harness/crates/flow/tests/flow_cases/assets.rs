//! Cases of type `assets`.

use deerflow_flow::assets::{MemoryAssets, scan};
use serde_json::{Map, Value, json};

use super::matching::compare;

/// Returns the differences of a case.
pub(crate) fn run(case: &Value) -> Vec<String> {
    let mut differences = Vec::new();
    let files = case["files"].as_object().cloned().unwrap_or_default();
    let text = |value: Value| value.as_str().unwrap_or_default().to_owned();
    let files = MemoryAssets::new(
        files
            .into_iter()
            .map(|(path, content)| (path, text(content))),
    );
    let mut manifest = json!(scan(&files));
    for kind in ["instructions", "skills"] {
        manifest[kind] = contents(&manifest[kind]);
    }
    for (key, expected) in case["expect"].as_object().into_iter().flatten() {
        compare(&mut differences, key, &manifest[key], expected);
    }
    differences
}

/// Cases state texts instead of files.
fn contents(files: &Value) -> Value {
    let files = files.as_object().into_iter().flatten();
    let content = |(name, file): (&String, &Value)| (name.clone(), file["content"].clone());
    Value::Object(files.map(content).collect::<Map<_, _>>())
}

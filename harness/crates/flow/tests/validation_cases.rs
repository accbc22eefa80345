//! Compares validation and asset manifests with the acceptance cases of a folder: `FLOW_CASES`,
//! else those of this repository.

use std::collections::BTreeSet;
use std::path::PathBuf;

use deerflow_flow::assets::{MemoryAssets, PromptAssetManifest, scan};
use deerflow_flow::binding::AdapterList;
use deerflow_flow::finding::{Finding, Validation};
use deerflow_flow::schema::Document;
use deerflow_flow::validate::{Options, validate};
use serde_json::{Value, json};

#[expect(
    clippy::disallowed_methods,
    reason = "the folder of a test run is its parameter"
)]
fn folder() -> PathBuf {
    std::env::var_os("FLOW_CASES").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/flow_cases")),
        PathBuf::from,
    )
}

fn cases() -> Vec<(String, Value)> {
    let entries = std::fs::read_dir(folder()).expect("the folder of cases");
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.expect("an entry").path())
        .collect();
    files.retain(|path| {
        path.extension()
            .is_some_and(|extension| extension == "json")
    });
    files.sort();
    let read = |path: PathBuf| {
        let name = path
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let text = std::fs::read_to_string(&path).expect("a readable case");
        (name, serde_json::from_str(&text).expect("a case in JSON"))
    };
    files.into_iter().map(read).collect()
}

fn validation_of(case: &Value) -> Validation {
    let document = match Document::from_value(case["flow"].clone()) {
        Ok(document) => document,
        Err(validation) => return validation,
    };
    let manifest: PromptAssetManifest = case.get("manifest").map_or_else(Default::default, |m| {
        serde_json::from_value(m.clone()).expect("a manifest")
    });
    let kinds = case
        .get("adapters")
        .cloned()
        .unwrap_or_else(|| json!(["fake"]));
    let kinds: Vec<String> = serde_json::from_value(kinds).expect("kinds of adapters");
    let options = Options {
        strict: case["options"]["strict"].as_bool().unwrap_or(true),
        ..Options::default()
    };
    validate(&document, &manifest, &AdapterList::new(kinds), &options)
}

/// Returns `true` if every field of `expected` has the same value in `found`.
fn is_subset(expected: &Value, found: &Value) -> bool {
    match (expected, found) {
        (Value::Object(expected), Value::Object(found)) => expected
            .iter()
            .all(|(key, value)| found.get(key).is_some_and(|found| is_subset(value, found))),
        _ => expected == found,
    }
}

fn check_errors(expected: &Value, found: &[Finding], differences: &mut Vec<String>) {
    let found: Vec<Value> = found
        .iter()
        .map(|finding| serde_json::to_value(finding).expect("a finding"))
        .collect();
    let expected = expected.as_array().cloned().unwrap_or_default();
    let same = expected.len() == found.len()
        && expected
            .iter()
            .zip(&found)
            .all(|(expected, found)| is_subset(expected, found));
    if !same {
        differences.push(format!(
            "errors: expected {}, found {}",
            json!(expected),
            json!(found)
        ));
    }
}

fn check_flow(case: &Value) -> Vec<String> {
    let mut differences = Vec::new();
    let found = validation_of(case);
    let expect = &case["expect"];
    if let Some(structural) = expect.get("structural") {
        check_errors(structural, &found.errors, &mut differences);
    } else if let Some(validation) = expect.get("validation") {
        check_errors(&validation["errors"], &found.errors, &mut differences);
        if let Some(warnings) = validation["warnings"].as_array() {
            let expected: BTreeSet<&str> = warnings.iter().filter_map(Value::as_str).collect();
            let found: BTreeSet<&str> = found.warnings.iter().map(|w| w.code.as_str()).collect();
            if expected != found {
                differences.push(format!("warnings: expected {expected:?}, found {found:?}"));
            }
        }
    } else if !found.valid {
        differences.push(format!("not valid: {}", json!(found.errors)));
    }
    differences
}

fn check_assets(case: &Value) -> Vec<String> {
    let files: Vec<(String, String)> = case["files"]
        .as_object()
        .expect("files")
        .iter()
        .map(|(path, text)| (path.clone(), text.as_str().expect("a text").to_owned()))
        .collect();
    let manifest = scan(&MemoryAssets::new(files));
    let mut differences = Vec::new();
    let errors: Vec<Value> = manifest
        .errors
        .iter()
        .map(|error| serde_json::to_value(error).expect("an error"))
        .collect();
    for (key, expected) in case["expect"].as_object().expect("expectations") {
        let same = match key.as_str() {
            "globalSystemPrompt" => json!(manifest.global_system_prompt) == *expected,
            "agents" => is_subset(expected, &json!(manifest.agents)),
            "instructions" | "skills" => {
                let assets = if key == "skills" {
                    &manifest.skills
                } else {
                    &manifest.instructions
                };
                let texts = assets
                    .iter()
                    .map(|(name, asset)| (name.clone(), json!(asset.content)));
                Value::Object(texts.collect()) == *expected
            }
            "errors" => {
                let expected = expected.as_array().cloned().unwrap_or_default();
                expected.len() == errors.len()
                    && expected
                        .iter()
                        .all(|e| errors.iter().any(|found| is_subset(e, found)))
            }
            _ => true,
        };
        if !same {
            differences.push(format!(
                "{key}: expected {expected}, found {}",
                json!(manifest)
            ));
        }
    }
    differences
}

#[test]
fn validation_and_assets_match_the_cases() {
    let mut failed = Vec::new();
    for (name, case) in cases() {
        let differences = match case["type"].as_str() {
            Some("flow") => check_flow(&case),
            Some("assets") => check_assets(&case),
            _ => continue,
        };
        failed.extend(
            differences
                .into_iter()
                .map(|difference| format!("{name}: {difference}")),
        );
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

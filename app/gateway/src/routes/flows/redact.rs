//! Removes secrets from a document that leaves the server.

use deerflow_flow::finding::{FindingCode, Validation};
use deerflow_flow::schema::Document;
use serde_json::{Value, json};

/// Returns the text of a document without its secrets, and their places as JSON pointers. Each
/// secret is replaced by a reference of the same name. A document without secrets keeps its text.
pub(super) fn redacted(document: &Document, validation: &Validation) -> (String, Vec<String>) {
    let mut value = document.value().clone();
    let mut places = Vec::new();
    let secrets = validation.warnings.iter().chain(&validation.errors);
    for finding in secrets.filter(|finding| finding.code == FindingCode::SecretInFlow) {
        let Some(path) = &finding.path else { continue };
        let name = path.rsplit('/').next().unwrap_or_default().to_owned();
        if let Some(secret) = value.pointer_mut(path) {
            *secret = json!({ "secret": name });
            places.push(path.clone());
        }
    }
    if places.is_empty() {
        return (document.text().to_owned(), places);
    }
    (written(value, document.text()), places)
}

/// Writes a document in the language of the original text.
fn written(value: Value, original: &str) -> String {
    let json = || serde_json::to_string_pretty(&value).unwrap_or_default();
    if original
        .trim_start_matches('\u{feff}')
        .trim_start()
        .starts_with('{')
    {
        return json();
    }
    let document = Document::from_value(value.clone()).ok();
    let yaml = document.and_then(|document| document.flow.to_yaml().ok());
    yaml.unwrap_or_else(json)
}

//! Guardrail rules in a separate file.

use std::path::Path;

use harness::config::{GuardrailProviderConfig, GuardrailsConfig};
use serde_json::{Map, Value};

/// Key with the file name.
const FILE: &str = "file";
/// Maximum size of the file, in bytes.
const MAX_BYTES: u64 = 1024 * 1024;

/// Replaces the file name in `provider.config.file`, relative to `base`, by the file's keys. If the
/// file cannot be read, the provider is replaced by one that decides nothing, so `fail_closed`
/// applies.
pub(super) fn with_file(mut section: GuardrailsConfig, base: &Path) -> GuardrailsConfig {
    if let Some(provider) = &mut section.provider
        && let Some(name) = provider.config.get(FILE).cloned()
    {
        match name
            .as_str()
            .filter(|name| !name.is_empty())
            .map_or(Err("it is not a file name".to_owned()), |name| {
                read(&base.join(name))
            }) {
            Ok(keys) => {
                provider.config.remove(FILE);
                for (key, value) in keys {
                    provider.config.insert(key, value);
                }
            }
            Err(reason) => {
                tracing::error!(file = %name, %reason, "cannot read the guardrail rules");
                *provider = GuardrailProviderConfig::default();
            }
        }
    }
    section
}

fn read(path: &Path) -> Result<Map<String, Value>, String> {
    let facts = std::fs::metadata(path).map_err(|error| error.to_string())?;
    if facts.len() > MAX_BYTES {
        return Err(format!("{} bytes are more than {MAX_BYTES}", facts.len()));
    }
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    serde_saphyr::from_str(&text).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn section(file: &Value) -> GuardrailsConfig {
        serde_json::from_value(
            json!({"enabled": true, "provider": {"use": "rules", "config": {"file": file}}}),
        )
        .unwrap()
    }

    #[test]
    fn rules_are_read_from_file_and_invalid_file_decides_nothing() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(
            dir.path().join("rules.yaml"),
            "default: deny\nrules:\n  - {tools: [ls], action: allow}\n",
        )
        .unwrap();
        std::fs::write(dir.path().join("bad.yaml"), "- just\n- a list\n").unwrap();
        let provider = |file: Value| with_file(section(&file), dir.path()).provider.unwrap();
        let read = provider(json!("rules.yaml"));
        assert_eq!(
            (
                read.kind.as_str(),
                read.config.get("default"),
                read.config.get("file")
            ),
            ("rules", Some(&json!("deny")), None)
        );
        assert_eq!(
            read.config["rules"],
            json!([{"tools": ["ls"], "action": "allow"}])
        );
        for bad in [
            json!("bad.yaml"),
            json!("none.yaml"),
            json!(""),
            json!(5),
            json!(null),
        ] {
            assert_eq!(provider(bad).kind, "");
        }
    }
}

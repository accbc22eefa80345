//! Warnings about settings of `extensions_config.json` that have no effect, and about misspelt keys.

use std::path::Path;

use super::document::{Content, Entry, Node};
use super::error::Warning;
use super::ineffective_settings;
use super::locate::locate_extensions;
use super::unknown_keys;
use crate::config_file::Environment;

/// Section of `config.yaml` that takes the same settings.
const SECTION: &str = "extensions";

/// Returns the warnings of the extensions file. An unreadable file has none: its users report it.
pub(super) fn warnings(environment: &Environment) -> Vec<Warning> {
    let Ok(path) = locate_extensions(environment) else {
        return Vec::new();
    };
    std::fs::read_to_string(&path)
        .map(|text| warnings_of(&text, &path))
        .unwrap_or_default()
}

/// Compares the file as the section of `config.yaml` that takes the same settings.
fn warnings_of(text: &str, path: &Path) -> Vec<Warning> {
    // JSON is YAML.
    let Ok(Some(root)) = Node::read(text) else {
        return Vec::new();
    };
    let place = root.place;
    let section = Entry {
        key: SECTION.to_owned(),
        place,
        value: root,
        replaces: None,
    };
    let content = Content::Map(vec![section]);
    let file = Node { place, content };
    let mut warnings = ineffective_settings::warnings(&file, path);
    warnings.extend(unknown_keys::compare(&file, path).warnings);
    for warning in &mut warnings {
        if let Some(key) = warning.key.strip_prefix(&format!("{SECTION}.")) {
            warning.key = key.to_owned();
        }
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(text: &str) -> Vec<String> {
        let warnings = warnings_of(text, Path::new("extensions_config.json"));
        warnings.into_iter().map(|warning| warning.key).collect()
    }

    #[test]
    fn settings_without_effect_are_reported_by_their_keys() {
        let text = r#"{
            "middlewares": ["a.b:C"],
            "mcpInterceptors": ["a.b:c"],
            "mcpServers": {
                "x": {"command": "npx", "routing": {"mode": "prefer", "keywords": ["k"]}},
                "y": {"command": "npx", "task_toolsets": [{"name": "t"}], "routing": {"mode": "off"}}
            },
            "skills": {"s": {"enabled": false}}
        }"#;
        let expected = [
            "middlewares",
            "mcpInterceptors",
            "mcpServers.x.routing.mode",
            "mcpServers.y.task_toolsets",
        ];
        assert_eq!(keys(text), expected);
    }

    #[test]
    fn misspelt_keys_are_reported() {
        let text = r#"{
            "mcpServres": {},
            "mcpServers": {"x": {"command": "npx", "tool_cal_timeout": 60, "oauth": {"client_di": "c"}}}
        }"#;
        let expected = [
            "mcpServres",
            "mcpServers.x.tool_cal_timeout",
            "mcpServers.x.oauth.client_di",
        ];
        assert_eq!(keys(text), expected);
    }

    #[test]
    fn effective_and_unreadable_files_have_no_warnings() {
        for text in ["{}", "", "{\"mcpInterceptors\": []}", "{broken", "[1]"] {
            assert_eq!(keys(text), [""; 0], "{text}");
        }
    }

    #[test]
    fn located_file_is_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("extensions_config.json");
        std::fs::write(&file, r#"{"mcpInterceptors": ["a.b:c"]}"#).expect("written");
        let environment = Environment::of(folder.path(), None::<(String, String)>);
        let found = warnings(&environment);
        assert_eq!(found.len(), 1);
        let text = found[0].to_string();
        assert!(text.contains("extensions_config.json:1:"), "{text}");
        assert!(text.contains("mcpInterceptors"), "{text}");
    }
}

//! Tests of the extensions file: preserved content, rejected content, and concurrent edits.

use std::os::unix::fs::{PermissionsExt, symlink};

use serde_json::json;

use super::*;

fn fresh() -> (tempfile::TempDir, ExtensionsFile) {
    let folder = tempfile::tempdir().unwrap();
    let file = ExtensionsFile::at(folder.path().join("extensions_config.json"));
    (folder, file)
}

fn switch(file: &ExtensionsFile, name: &str, enabled: bool) {
    file.edit(|all| {
        all.switch_skill(name, enabled);
        Ok::<_, ExtensionsError>(())
    })
    .unwrap();
}

#[test]
fn missing_file_is_empty_and_created_by_first_change() {
    let (_folder, file) = fresh();
    assert_eq!(file.load().unwrap().skill_state("any"), None);
    switch(&file, "any", false);
    assert_eq!(file.load().unwrap().skill_state("any"), Some(false));
    assert_eq!(
        fs::metadata(file.path()).unwrap().permissions().mode() & 0o777,
        0o600
    );
}

#[test]
fn change_preserves_other_content() {
    let (_folder, file) = fresh();
    let before = json!({"zebra": [1], "mcpServers": {"a": {"env": {"K": "$KEY"}}}, "skills": {"s": {"enabled": true, "note": "mine"}, "odd": 5}});
    fs::write(file.path(), before.to_string()).unwrap();
    fs::set_permissions(file.path(), fs::Permissions::from_mode(0o640)).unwrap();
    switch(&file, "s", false);
    switch(&file, "odd", false);
    let after: Value = serde_json::from_str(&fs::read_to_string(file.path()).unwrap()).unwrap();
    let mut expected = before.clone();
    expected["skills"] =
        json!({"s": {"enabled": false, "note": "mine"}, "odd": {"enabled": false}});
    assert_eq!(after, expected);
    assert_eq!(
        fs::metadata(file.path()).unwrap().permissions().mode() & 0o777,
        0o640
    );
}

#[test]
fn symlink_is_preserved() {
    let (folder, file) = fresh();
    let target = folder.path().join("elsewhere.json");
    fs::write(&target, "{}").unwrap();
    symlink(&target, file.path()).unwrap();
    switch(&file, "s", false);
    assert!(fs::symlink_metadata(file.path()).unwrap().is_symlink());
    assert!(fs::read_to_string(&target).unwrap().contains("enabled"));
}

#[test]
fn content_other_than_a_map_is_rejected_and_preserved() {
    let (_folder, file) = fresh();
    for bad in ["[]", "{\"skills\": ", "", "\u{0}"] {
        fs::write(file.path(), bad).unwrap();
        let error = file.load().unwrap_err().to_string();
        assert!(
            error.starts_with("extensions_config.json is invalid: ") && error.contains("line"),
            "{error}"
        );
        assert!(file.edit(|_| Ok::<_, ExtensionsError>(())).is_err());
        assert_eq!(fs::read_to_string(file.path()).unwrap(), bad);
    }
}

#[test]
fn file_is_read_again_only_after_change() {
    let (_folder, file) = fresh();
    switch(&file, "s", false);
    let first = file.load().unwrap();
    assert!(Arc::ptr_eq(&first, &file.load().unwrap()));
    switch(&file, "s", true);
    assert_eq!(file.load().unwrap().skill_state("s"), Some(true));
}

#[test]
fn concurrent_changes_are_not_lost() {
    let (_folder, file) = fresh();
    std::thread::scope(|scope| {
        for at in 0..8 {
            // Each thread has its own handle, as a process would.
            let file = ExtensionsFile::at(file.path());
            scope.spawn(move || switch(&file, &format!("s{at}"), false));
        }
    });
    assert_eq!(file.load().unwrap().section(SKILLS).unwrap().len(), 8);
}

#[test]
fn config_overrides_file_and_variables_are_resolved() {
    let file = Extensions(
        json!({"skills": {"a": {"enabled": true}}, "mcpServers": {}})
            .as_object()
            .unwrap()
            .clone()
            .into(),
    );
    let over = json!({"mcp_servers": {"s": {"env": {"A": "$SET", "B": "$UNSET", "C": "plain"}}}});
    let all = file
        .overlaid(over.as_object().unwrap())
        .resolved(|name| (name == "SET").then(|| "value".to_owned()));
    assert_eq!(
        all.section(MCP_SERVERS).unwrap()["s"]["env"],
        json!({"A": "value", "B": "", "C": "plain"})
    );
    assert!(all.section(SKILLS).unwrap().contains_key("a"));
    assert!(!format!("{all:?}").contains("value"));
}

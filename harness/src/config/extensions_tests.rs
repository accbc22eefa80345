//! The file of extensions: what is kept, what is refused, and who waits.

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
fn a_missing_file_says_nothing_and_the_first_change_makes_it() {
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
fn a_change_keeps_what_it_does_not_touch() {
    let (_folder, file) = fresh();
    let before = json!({"zebra": [1], "mcpServers": {"a": {"env": {"K": "$KEY"}}}, "skills": {"s": {"enabled": true, "note": "mine"}, "odd": 5}});
    fs::write(file.path(), before.to_string()).unwrap();
    fs::set_permissions(file.path(), fs::Permissions::from_mode(0o640)).unwrap();
    switch(&file, "s", false);
    switch(&file, "odd", false);
    let after: Value = serde_json::from_str(&fs::read_to_string(file.path()).unwrap()).unwrap();
    let mut wanted = before.clone();
    wanted["skills"] = json!({"s": {"enabled": false, "note": "mine"}, "odd": {"enabled": false}});
    assert_eq!(after, wanted);
    assert_eq!(
        fs::metadata(file.path()).unwrap().permissions().mode() & 0o777,
        0o640
    );
}

#[test]
fn a_link_stays_a_link() {
    let (folder, file) = fresh();
    let target = folder.path().join("elsewhere.json");
    fs::write(&target, "{}").unwrap();
    symlink(&target, file.path()).unwrap();
    switch(&file, "s", false);
    assert!(fs::symlink_metadata(file.path()).unwrap().is_symlink());
    assert!(fs::read_to_string(&target).unwrap().contains("enabled"));
}

#[test]
fn what_is_not_a_map_is_refused_with_its_place_and_stays() {
    let (_folder, file) = fresh();
    for bad in ["[]", "{\"skills\": ", "", "\u{0}"] {
        fs::write(file.path(), bad).unwrap();
        let error = file.load().unwrap_err().to_string();
        assert!(
            error.starts_with("extensions_config.json is not usable: ") && error.contains("line"),
            "{error}"
        );
        assert!(file.edit(|_| Ok::<_, ExtensionsError>(())).is_err());
        assert_eq!(fs::read_to_string(file.path()).unwrap(), bad);
    }
}

#[test]
fn an_unchanged_file_is_read_once_and_a_changed_one_again() {
    let (_folder, file) = fresh();
    switch(&file, "s", false);
    let first = file.load().unwrap();
    assert!(Arc::ptr_eq(&first, &file.load().unwrap()));
    switch(&file, "s", true);
    assert_eq!(file.load().unwrap().skill_state("s"), Some(true));
}

#[test]
fn changes_of_several_at_once_are_all_there() {
    let (_folder, file) = fresh();
    std::thread::scope(|scope| {
        for at in 0..8 {
            // Each has a handle of its own, as processes do.
            let file = ExtensionsFile::at(file.path());
            scope.spawn(move || switch(&file, &format!("s{at}"), false));
        }
    });
    assert_eq!(file.load().unwrap().section(SKILLS).unwrap().len(), 8);
}

#[test]
fn the_configuration_wins_over_the_file_and_variables_are_filled_in() {
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

//! Tests of upgrades of old, malformed and hostile files.

use std::path::Path;

use harness::config_file::{Environment, parse};

use super::*;

const HOSTILE: &str = r##"# my config, touched by many hands

config_version: 1  # do not forget

# --- models ---
models:
  # the good one
  - name: "quoted name"   # inline comment
    use: 'src.models.patched_deepseek:PatchedChatDeepSeek'
    api_key: $DEEPSEEK_API_KEY
    note: "src. is not a class path"
    when_thinking_enabled: {extra_body: {thinking: {type: enabled}}}

  - &second
    name: second
    use: src.models.vllm_provider:VllmChatModel # an old path
    model: m
title:
  enabled: yes # keep my yes
  prompt_template: |
    Line one: {user_msg}
    # this is no comment

    line three

  # trailing comment of title

# a section nobody knows
mystery: {a: 1, "b c": [1, 2]}   # flow
summarization: {enabled: true}
memory:
sandbox:
    use: "src.sandbox.local:LocalSandboxProvider"   # four spaces
    # an unknown key
    warp_factor: 9
    mounts:
    - host_path: /srv  # not indented
      container_path: /mnt
"unknown: quoted": ünïcode ☂
suggestions:   {  }

# final comment"##;

fn upgraded(text: &str) -> Upgrade {
    upgrade_text(text).unwrap().expect("something to do")
}

#[test]
fn upgrade_preserves_hostile_file_and_adds_new_keys() {
    let upgrade = upgraded(HOSTILE);
    assert_eq!(upgrade.from, 1);
    assert_eq!(
        upgrade.renamed,
        ["models[0].use", "models[1].use", "sandbox.use"]
    );

    for line in HOSTILE.lines() {
        let expected = match line {
            _ if line.starts_with("config_version") => {
                "config_version: 34  # do not forget".to_owned()
            }
            _ if line.contains("use: ") => line.replacen("src.", "deerflow.", 1),
            _ if line.starts_with("summarization") || line.starts_with("suggestions") => continue,
            _ => line.to_owned(),
        };
        assert!(
            upgrade.text.lines().any(|new| new == expected),
            "{expected}\n---\n{}",
            upgrade.text
        );
    }
    for key in [
        "title.max_words",
        "sandbox.bash_command_timeout",
        "summarization.keep",
        "suggestions.enabled",
        "runs",
        "database",
    ] {
        assert!(
            upgrade.added.contains(&key.to_owned()),
            "{key}: {:?}",
            upgrade.added
        );
    }
    for key in ["models", "tools", "tool_groups", "memory", "title.enabled"] {
        assert!(!upgrade.added.contains(&key.to_owned()), "{key}");
    }
}

#[test]
fn an_upgrade_changes_no_decision() {
    for text in [
        HOSTILE,
        "title: {max_words: 9}\n",
        "",
        "# nothing\n",
        "---\ntitle:\n  max_words: 3\n",
    ] {
        let config = |text: &str| {
            let environment = Environment::of("/", [("DEEPSEEK_API_KEY", "k")]);
            let text = text
                .replace("src.models", "deerflow.models")
                .replace("src.sandbox", "deerflow.sandbox");
            let text = text.replace("    api_key:", "    model: m\n    api_key:");
            // An empty file is rejected; an upgrade treats it as an empty map.
            let is_empty = text
                .lines()
                .all(|line| line.is_empty() || line.starts_with('#'));
            let text = if is_empty { "{}\n".to_owned() } else { text };
            let loaded = parse(&text, Path::new("config.yaml"), &environment).unwrap();
            let mut config = loaded.config;
            config.config_version = 0;
            format!("{config:?}")
        };
        assert_eq!(config(text), config(&upgraded(text).text));
    }
}

#[test]
fn upgrading_twice_changes_nothing() {
    for text in [HOSTILE, "", "title: {}\n", "a: 1"] {
        let once = upgraded(text).text;
        assert!(upgrade_text(&once).unwrap().is_none(), "{once}");
    }
    assert!(upgrade_text(EXAMPLE).unwrap().is_none());
}

#[test]
fn the_upgraded_file_warns_no_more_than_before() {
    let environment = Environment::default();
    let text = upgraded("title: {max_words: 9}\n").text;
    let loaded = parse(&text, Path::new("config.yaml"), &environment).unwrap();
    assert_eq!(loaded.warnings, [], "{text}");
}

#[test]
fn every_example_section_is_one_paragraph() {
    let example = Node::parse(EXAMPLE).unwrap();
    for entry in example.entries() {
        let paragraphs = EXAMPLE
            .split("\n\n")
            .filter(|text| section_of(text) == Some(&entry.key));
        assert_eq!(paragraphs.count(), 1, "{}", entry.key);
    }
}

#[test]
fn class_paths_of_newer_files_are_left_alone() {
    let upgrade = upgraded("config_version: 5\nsandbox:\n  use: src.mine:Sandbox\n");
    assert_eq!(upgrade.renamed, [""; 0]);
    assert!(upgrade.text.contains("use: src.mine:Sandbox"));
}

#[test]
fn unsafe_edit_is_rejected() {
    assert!(matches!(
        upgrade_text("title: [\n"),
        Err(UpgradeError::Syntax(_))
    ));
    assert!(matches!(
        upgrade_text("config_version: x\n"),
        Err(UpgradeError::Version)
    ));
    assert!(matches!(
        upgrade_text("config_version: 99\n"),
        Err(UpgradeError::Newer(99))
    ));
    assert!(matches!(
        upgrade_text("{title: {max_words: 3}}\n"),
        Err(UpgradeError::Unsafe)
    ));
    assert!(upgrade_text("title: {}\n...\n").map_or(true, |done| done.is_some()));
}

#[test]
fn aliases_and_merge_keys_survive() {
    let text =
        "base: &base\n  max_words: 3\ntitle:\n  <<: *base\n  enabled: true\nuploads: *base\n";
    let upgrade = upgraded(text);
    assert!(
        upgrade.text.starts_with("config_version: 34\n"),
        "{}",
        upgrade.text
    );
    assert!(upgrade.text.contains(text), "{}", upgrade.text);
}

#[test]
fn windows_line_ends_survive() {
    let text = "config_version: 3\r\n# note\r\ntitle:\r\n  max_words: 3\r\n";
    let upgrade = upgraded(text);
    assert!(upgrade.text.contains("# note\r\n"), "{:?}", upgrade.text);
}

#[cfg(unix)]
#[test]
fn the_file_is_backed_up_and_keeps_its_permissions() {
    use std::os::unix::fs::PermissionsExt;

    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("config.yaml");
    fs::write(&path, HOSTILE).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    let upgrade = upgrade_file(&path).unwrap().unwrap();
    assert_eq!(fs::read_to_string(&upgrade.backup).unwrap(), HOSTILE);
    assert!(upgrade.backup.ends_with("config.yaml.bak"));
    assert_eq!(fs::read_to_string(&path).unwrap(), upgrade.text);
    assert_eq!(
        fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o600
    );
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);

    assert!(upgrade_file(&path).unwrap().is_none());
    assert_eq!(fs::read_to_string(&upgrade.backup).unwrap(), HOSTILE);
}

#[cfg(unix)]
#[test]
fn a_link_stays_a_link() {
    let dir = tempfile::tempdir().unwrap();
    let target = dir.path().join("real.yaml");
    let link = dir.path().join("config.yaml");
    fs::write(&target, "title: {}\n").unwrap();
    std::os::unix::fs::symlink(&target, &link).unwrap();
    upgrade_file(&link).unwrap().unwrap();
    assert!(
        fs::symlink_metadata(&link)
            .unwrap()
            .file_type()
            .is_symlink()
    );
    assert!(
        fs::read_to_string(&target)
            .unwrap()
            .contains("config_version: 34")
    );
}

#[test]
fn truncated_files_are_upgraded_completely_or_rejected() {
    let lines: Vec<&str> = HOSTILE.lines().collect();
    let without_a_line = (0..lines.len()).map(|gone| {
        let preserved: Vec<&str> = lines
            .iter()
            .enumerate()
            .filter(|(at, _)| *at != gone)
            .map(|(_, line)| *line)
            .collect();
        preserved.join("\n")
    });
    let cut = HOSTILE
        .char_indices()
        .step_by(23)
        .map(|(end, _)| HOSTILE[..end].to_owned());
    for text in without_a_line.chain(cut) {
        if let Ok(Some(upgrade)) = upgrade_text(&text) {
            assert!(
                upgrade_text(&upgrade.text).unwrap().is_none(),
                "{text}\n--- became ---\n{}",
                upgrade.text
            );
        }
    }
}

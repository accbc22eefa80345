//! Tests of unknown keys and of the suggested corrections.

use super::*;

fn warnings(text: &str) -> Vec<String> {
    let root = Node::parse(text).unwrap();
    compare(&root, Path::new("c.yaml"))
        .warnings
        .iter()
        .map(Warning::to_string)
        .collect()
}

#[test]
fn unknown_key_warning_suggests_nearest_key() {
    let ignored = "is not a known key and has no effect";
    let cases = [
        (
            "titel: {}",
            format!("c.yaml:1:1: `titel` {ignored}; did you mean `title`?"),
        ),
        (
            "title:\n  max_word: 3",
            format!("c.yaml:2:3: `title.max_word` {ignored}; did you mean `max_words`?"),
        ),
        (
            "title:\n  zebra: 3",
            format!("c.yaml:2:3: `title.zebra` {ignored}"),
        ),
        (
            "subagents:\n  agents:\n    bash: {max_turn: 3}",
            format!(
                "c.yaml:3:12: `subagents.agents.bash.max_turn` {ignored}; did you mean `max_turns`?"
            ),
        ),
        (
            "sandbox:\n  mounts:\n    - {host_paht: a}",
            format!(
                "c.yaml:3:8: `sandbox.mounts[0].host_paht` {ignored}; did you mean `host_path`?"
            ),
        ),
        (
            "extensions:\n  mcpServers:\n    x: {routing: {mod: off}}",
            format!(
                "c.yaml:3:19: `extensions.mcpServers.x.routing.mod` {ignored}; did you mean `mode`?"
            ),
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(warnings(text), [expected]);
    }
}

#[test]
fn misspelt_keys_of_channels_are_reported() {
    let ignored = "is not a known key and has no effect";
    let cases = [
        (
            "channels:\n  telegram: {bot_tokn: t}",
            format!(
                "c.yaml:2:14: `channels.telegram.bot_tokn` {ignored}; did you mean `bot_token`?"
            ),
        ),
        (
            "channels:\n  slack:\n    session: {users: {U1: {contxt: {}}}}",
            format!(
                "c.yaml:3:28: `channels.slack.session.users.U1.contxt` {ignored}; did you mean `context`?"
            ),
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(warnings(text), [expected]);
    }
    assert_eq!(warnings("channels: {telegrm: {}}").len(), 1);
    assert!(warnings("channels: {acme: {token: t}}").is_empty());
}

#[test]
fn provider_keys_are_warned_about_only_if_misspelt() {
    assert!(warnings("models:\n  - {name: a, frequency_penalty: 1, seed: 2}").is_empty());
    assert_eq!(
        warnings("models:\n  - suports_vision: true"),
        [
            "c.yaml:2:5: `models[0].suports_vision` is not a known key and is passed on unchanged; \
          did you mean `supports_vision`?"
        ]
    );
}

#[test]
fn opaque_maps_are_not_checked() {
    assert!(
        warnings("tools: [{name: t, use: u, anything: {goes: 1}}]\nsandbox: {environment: {A: b}}")
            .is_empty()
    );
}

#[test]
fn duplicate_key_is_warned_about() {
    assert_eq!(
        warnings("title: {}\ntitle: {}"),
        ["c.yaml:2:1: `title` is a duplicate; the one in line 1 has no effect"]
    );
}

#[test]
fn distances_count_edits_and_swaps() {
    for (left, right, expected) in [
        ("", "abc", 3),
        ("title", "titel", 1),
        ("a", "a", 0),
        ("kitten", "sitting", 3),
    ] {
        assert_eq!(distance(left, right), expected, "{left} {right}");
    }
}

#[test]
fn unknown_key_of_identity_providers_is_a_problem() {
    let text = "auth:\n  oidc:\n    enable: true\n    providers:\n      corp: {admin_email: [a]}";
    let root = Node::parse(text).unwrap();
    let compared = compare(&root, Path::new("c.yaml"));
    assert_eq!(compared.warnings, []);
    let problems: Vec<String> = compared.problems.iter().map(ToString::to_string).collect();
    assert_eq!(problems.len(), 2, "{problems:?}");
    assert!(
        problems[0].starts_with("c.yaml:3:5: `auth.oidc.enable`"),
        "{problems:?}"
    );
    let place = "c.yaml:5:14: `auth.oidc.providers.corp.admin_email`";
    assert!(problems[1].starts_with(place), "{problems:?}");
}

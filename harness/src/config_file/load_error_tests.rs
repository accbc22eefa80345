//! Tests of the errors of invalid configurations.

use super::*;

#[test]
fn empty_file_error_names_the_file() {
    for text in [
        "",
        " \n\t",
        "# only a comment\n",
        "---\n",
        "null\n",
        "~",
        "\u{feff}",
    ] {
        let error = load_with(text, &[]).unwrap_err();
        assert!(matches!(error, ConfigError::Empty { .. }), "{text:?}");
        assert!(
            error
                .to_string()
                .starts_with("config.yaml contains no settings"),
            "{error}"
        );
    }
    assert!(
        load_with("{}\n", &[]).is_ok(),
        "an empty map is intentional"
    );
}

#[test]
fn rules_of_roles_are_rejected_with_their_place() {
    let section = |rules: &str| {
        format!(
            "authorization:\n  enabled: true\n  provider:\n    use: deerflow.authz.rbac:RbacAuthorizationProvider\n    config:\n      roles:\n        user:\n{rules}"
        )
    };
    for (text, expected) in [
        (
            "authorization:\n  enabled: true\n  provider:\n    use: company.policy:Provider\n"
                .to_owned(),
            "config.yaml:4:10: `authorization.provider.use` is \"company.policy:Provider\", allowed: deerflow.authz.rbac:RbacAuthorizationProvider",
        ),
        (
            section("          tools: {allow: null}\n"),
            "config.yaml:8:26: `authorization.provider.config.roles.user.tools.allow` is null, allowed: a list",
        ),
        (
            section("          tool: {allow: []}\n"),
            "config.yaml:8:17: `authorization.provider.config.roles.user.tool` is an unknown section, allowed: tools",
        ),
    ] {
        let refused = refusal(&text);
        assert!(refused.starts_with(expected), "{refused}");
    }
    let valid = section(
        "          tools: {allow: [ls], deny: [bash]}\n          sandbox: {allow: false}\n",
    );
    assert!(load_with(&valid, &[]).is_ok());
    assert!(load_with("authorization: {enabled: false, provider: null}\n", &[]).is_ok());
}

#[test]
fn invalid_value_error_names_location_key_and_allowed() {
    let cases = [
        (
            "title:\n  max_words: 99\n",
            "config.yaml:2:14: `title.max_words` is 99, allowed: 1 to 20",
        ),
        (
            "title:\n  max_words: many\n",
            "config.yaml:2:14: `title.max_words` is \"many\", allowed: a whole number from 0",
        ),
        (
            "title:\n  max_words: -3\n",
            "config.yaml:2:14: `title.max_words` is -3, allowed: a whole number from 0",
        ),
        (
            "title:\n  enabled: perhaps\n",
            "config.yaml:2:12: `title.enabled` is \"perhaps\", allowed: true or false",
        ),
        (
            "title: 5\n",
            "config.yaml:1:8: `title` is 5, allowed: a map",
        ),
        (
            "title: []\n",
            "config.yaml:1:8: `title` is a list, allowed: a map",
        ),
        (
            "models: {}\n",
            "config.yaml:1:9: `models` is a map, allowed: a list",
        ),
        (
            "models:\n  - use: u\n    model: m\n",
            "config.yaml:2:5: `models[0]` lacks the key `name`",
        ),
        (
            "models:\n  - name: a\n    use: 5\n    model: m\n",
            "config.yaml:3:10: `models[0].use` is 5, allowed: text",
        ),
        (
            "database:\n  backend: sqlit\n",
            "config.yaml:2:12: `database.backend` is \"sqlit\", allowed: memory, sqlite, postgres; did you mean `sqlite`?",
        ),
        (
            "log_level: loud\n",
            "config.yaml:1:12: `log_level` is not allowed: found \"loud\", expected one of trace, debug, info, warning, \
             error, critical",
        ),
        (
            "summarization:\n  trigger: soon\n",
            "config.yaml:2:12: `summarization.trigger` is not allowed: `{type: tokens|messages|fraction, value: number}` \
             or a list of them",
        ),
        (
            "acp_agents:\n  a: {description: d}\n",
            "config.yaml:2:6: `acp_agents.a` lacks the key `command`",
        ),
        (
            "acp_agents:\n  a: {command: c, description: d, timeout_seconds: 0}\n",
            "config.yaml:2:52: `acp_agents.a.timeout_seconds` is 0, allowed: 1 to 2592000",
        ),
        (
            "acp_agents:\n  a: {command: c, description: ' '}\n",
            "config.yaml:2:32: `acp_agents.a.description` is empty, allowed: some text",
        ),
        (
            "acp_agents:\n  a: {command: c, description: d, env: {KEY: $NOT_SET}}\n",
            "config.yaml:2:46: `acp_agents.a.env.KEY` refers to the environment variable NOT_SET, which is not set",
        ),
        (
            "sandbox:\n  mounts:\n    - {host_path: /a}\n",
            "config.yaml:3:7: `sandbox.mounts[0]` lacks the key `container_path`",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(refusal(text), expected);
    }
}

#[test]
fn all_violations_are_reported_at_once() {
    let text = "title: {max_words: 0}\nsuggestions:\n  max_suggestions: 9\n";
    assert_eq!(
        refusal(text),
        "config.yaml:1:20: `title.max_words` is 0, allowed: 1 to 20\n\
         config.yaml:3:20: `suggestions.max_suggestions` is 9, allowed: 1 to 5"
    );
}

#[test]
fn invalid_yaml_error_names_file_and_line() {
    let error = refusal("title:\n  max_words: [1\nmodels: 5\n");
    assert!(error.starts_with("config.yaml:"), "{error}");
}

#[test]
fn invalid_value_from_variable_is_not_printed() {
    let error = load_with("title: {max_words: $CANARY}\n", &[("CANARY", "s3cret")]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "config.yaml:1:20: `title.max_words` is the value of $CANARY, allowed: a whole number from 0"
    );
}

#[test]
fn non_utf8_file_is_rejected() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(FILE);
    std::fs::write(&path, b"title: \xff\xfe").unwrap();
    let error = load_file(&path, &Environment::default()).unwrap_err();
    assert!(error.to_string().contains("cannot be read"), "{error}");
}

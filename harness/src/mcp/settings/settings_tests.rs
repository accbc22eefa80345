//! Tests of redacting, restoring and validating server entries.

use serde_json::{Map, Value, json};

use super::change::replaced;
use super::*;

fn map(value: Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap()
}

fn launchers() -> Vec<String> {
    vec!["npx".to_owned(), "uvx".to_owned()]
}

#[test]
fn redacted_values_are_restored() {
    let stored = json!({
        "command": "npx",
        "env": {"KEY": "$KEY", "EMPTY": ""},
        "headers": {"X": "canary"},
        "oauth": {"token_url": "http://t/", "client_secret": "canary", "extra_token_params": {"p": "canary"}},
        "myApiKey": "canary",
        "later": {"kept": 1},
    });
    let out = view::view(&stored);
    assert!(!out.to_string().contains("canary") && !out.to_string().contains("$KEY"));
    assert_eq!(
        (&out["env"], &out["oauth"]["token_url"]),
        (&json!({"KEY": "***", "EMPTY": ""}), &json!("http://t/"))
    );
    assert_eq!(
        (
            &out["type"],
            &out["session_init_timeout"],
            &out["later"]["kept"]
        ),
        (&json!("stdio"), &json!(60.0), &json!(1))
    );
    let back = replaced(
        &map(json!({"s": stored})),
        map(json!({"s": out})),
        &launchers(),
    )
    .unwrap();
    let back = back["s"].as_object().unwrap();
    for (name, value) in stored
        .as_object()
        .unwrap()
        .iter()
        .filter(|(name, _)| *name != "oauth")
    {
        assert_eq!(back.get(name), Some(value), "{name}");
    }
    assert_eq!(back["oauth"]["client_secret"], "canary");
    let new = json!({"t": {"command": "npx", "env": {"KEY": "***"}}});
    let refused = replaced(&map(json!({"s": stored})), map(new), &launchers()).unwrap_err();
    assert!(
        refused.starts_with("`env.KEY` is redacted") && refused.contains("'t'"),
        "{refused}"
    );
}

#[test]
fn secrets_are_not_sent_to_new_destinations() {
    let stored = map(json!({
        "p": {"command": "npx", "args": ["-y", "a"], "env": {"KEY": "canary"}},
        "h": {"type": "http", "url": "https://a/mcp", "headers": {"X": "canary"}, "oauth": {"token_url": "https://t/", "client_secret": "canary"}},
    }));
    let changed = |name: &str, path: &str, value: Value| {
        let mut server = view::view(&stored[name]);
        match path.split_once('/') {
            Some((outer, inner)) => server[outer][inner] = value,
            None => server[path] = value,
        }
        replaced(&stored, map(json!({name: server})), &launchers())
    };
    for (name, path, value, field) in [
        ("p", "command", json!("uvx"), "`command`"),
        ("p", "args", json!(["-y", "thief"]), "`args`"),
        ("p", "cwd", json!("/tmp"), "`cwd`"),
        ("h", "url", json!("https://thief/mcp"), "`url`"),
        ("h", "url", json!("http://a/mcp"), "`url`"),
        (
            "h",
            "oauth/token_url",
            json!("https://thief/"),
            "`oauth.token_url`",
        ),
    ] {
        let refused = changed(name, path, value).unwrap_err();
        assert!(
            refused.starts_with(field) && !refused.contains("canary"),
            "{refused}"
        );
    }
    assert_eq!(
        changed("h", "url", json!("https://a/other")).unwrap()["h"]["headers"]["X"],
        "canary",
        "the same server"
    );
    let new_secrets = json!({"h": {"type": "http", "url": "https://b/", "headers": {"X": "new"}}});
    assert!(
        replaced(&stored, map(new_secrets), &launchers()).is_ok(),
        "secrets that are entered may go anywhere"
    );
}

#[test]
fn only_launchers_without_code_options_are_allowed() {
    let check = |server: Value| replaced(&Map::new(), map(json!({"s": server})), &launchers());
    assert!(check(json!({"command": "npx", "args": ["-y", "@x/y", "--config", "a"], "env": {"API_KEY": "k"}})).is_ok());
    assert!(check(json!({"type": "http", "url": "http://h/"})).is_ok());
    for command in ["bash", "/tmp/npx", "npx ", "", "./uvx"] {
        assert!(check(json!({"command": command})).is_err(), "{command}");
    }
    for arg in [
        "-c",
        "-yc",
        "--call=x",
        "--ca",
        "--eval",
        "-e",
        "--node-options=--require=x",
    ] {
        assert!(
            check(json!({"command": "npx", "args": ["-y", arg]})).is_err(),
            "{arg}"
        );
    }
    for field in [json!({"cwd": "/tmp"}), json!({"starts_in_workspace": true})] {
        let mut server = json!({"command": "npx", "args": ["x"]});
        server.as_object_mut().unwrap().extend(map(field.clone()));
        assert!(check(server).is_err(), "{field}");
    }
    for package in ["./x", "user/repo", "git+https://h/x"] {
        assert!(
            check(json!({"command": "npx", "args": ["-y", package]})).is_err(),
            "{package}"
        );
    }
    let execution_variables = [
        "LD_PRELOAD",
        "NODE_OPTIONS",
        "npm_config_call",
        "Path",
        "PYTHONPATH",
        "HOME",
        "XDG_CONFIG_HOME",
        "UV_INDEX_URL",
        "pip_index_url",
    ];
    for variable in execution_variables {
        assert!(
            check(json!({"command": "npx", "env": {variable: "x"}})).is_err(),
            "{variable}"
        );
    }
}

#[test]
fn stored_programs_stay_allowed() {
    let bare = map(json!({"s": {"command": "/opt/server"}}));
    let view = json!({"s": view::view(&bare["s"])});
    assert!(
        replaced(&bare, map(view), &launchers()).is_ok(),
        "the unchanged view"
    );
    let stored = map(json!({"s": {"command": "/opt/server", "args": ["-c", "x"]}}));
    let put = |server: Value| replaced(&stored, map(json!({"s": server})), &launchers());
    assert!(put(json!({"command": "/opt/server", "args": ["-c", "x"], "enabled": false})).is_ok());
    assert!(put(json!({"command": "/opt/server", "args": ["-c", "y"]})).is_err());
}

#[test]
fn all_issues_are_reported_with_path_and_without_text() {
    let servers = json!({
        "": {},
        "a": {"enabled": "canary", "args": "canary", "env": {"K": ["canary"]}, "tool_call_timeout": 0, "routing": {"mode": "x", "y": 1}},
        "b": 5,
        "c": {"task_toolsets": [{"name": "n"}], "tools": {"t": {"routing": {"z": 1}}}, "url": null, "unknown": {"free": true}},
    });
    let issues = server_issues(&map(servers));
    let paths: Vec<String> = issues
        .iter()
        .map(|issue| issue.at.iter().map(|part| format!("/{part}")).collect())
        .collect();
    let expected = [
        r#"/"""#,
        r#"/"a"/"enabled""#,
        r#"/"a"/"args""#,
        r#"/"a"/"env""#,
        r#"/"a"/"tool_call_timeout""#,
        r#"/"a"/"routing"/"mode""#,
        r#"/"a"/"routing"/"y""#,
        r#"/"b""#,
        r#"/"c"/"task_toolsets"/0/"submit_tool""#,
        r#"/"c"/"task_toolsets"/0/"status_tool""#,
        r#"/"c"/"task_toolsets"/0/"cancel_tool""#,
        r#"/"c"/"tools"/"t"/"routing"/"z""#,
    ];
    assert_eq!(paths, expected);
    assert!(
        issues
            .iter()
            .all(|issue| !issue.value.to_string().contains("canary"))
    );
}

#[test]
fn too_many_servers_is_one_issue() {
    let many: Map<String, Value> = (0..201)
        .map(|number| (number.to_string(), json!({})))
        .collect();
    let issues = server_issues(&many);
    assert_eq!(
        (
            issues.len(),
            issues[0].kind,
            issues[0].at.len(),
            &issues[0].value
        ),
        (1, "too_long", 0, &json!(201))
    );
}

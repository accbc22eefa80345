//! Tests of parsing server entries.

use serde_json::json;

use super::*;

fn read(entry: Value) -> Result<ServerSpec, SpecError> {
    ServerSpec::read("s", &entry).map(|spec| spec.unwrap())
}

#[test]
fn transport_requires_its_fields() {
    let stdio = read(json!({"command": " npx ", "args": ["-y", "x"], "env": {"K": "canary"}, "url": null, "later": 1})).unwrap();
    assert!(
        matches!(&stdio.link, Link::Stdio { command, args, .. } if command == "npx" && args == &["-y", "x"])
    );
    assert!(!format!("{stdio:?}").contains("canary"));
    let http = read(
        json!({"transport": "http", "url": "https://h/mcp?k=1", "headers": {"X-Key": "canary"}}),
    )
    .unwrap();
    assert!(
        matches!(&http.link, Link::Http { kind: HttpKind::Streamable, headers, .. } if headers["x-key"] == "canary")
    );
    assert!(!format!("{:?}", http.link).contains("canary"));
    assert!(matches!(
        read(json!({"type": "sse", "url": "http://h/sse"}))
            .unwrap()
            .link,
        Link::Http {
            kind: HttpKind::Sse,
            ..
        }
    ));
    assert_eq!(
        read(json!({})).unwrap_err(),
        SpecError::Missing {
            field: "command",
            kind: "stdio"
        }
    );
    assert_eq!(
        read(json!({"type": "sse"})).unwrap_err(),
        SpecError::Missing {
            field: "url",
            kind: "sse"
        }
    );
    assert_eq!(
        read(json!({"type": "pipe", "command": "x"})).unwrap_err(),
        SpecError::UnknownType
    );
    assert_eq!(
        read(json!({"type": "http", "url": "file:///etc/passwd"})).unwrap_err(),
        SpecError::Address("url")
    );
    for name in ["Accept", "Mcp-Session-Id", "bad name"] {
        let wrong = read(json!({"type": "http", "url": "http://h/", "headers": {name: "v"}}));
        assert_eq!(wrong.unwrap_err(), SpecError::Header(name.to_owned()));
    }
}

#[test]
fn type_error_names_field_without_value() {
    let wrong = read(json!({"command": "x", "env": {"TOKEN": {"nested": "canary"}}})).unwrap_err();
    assert_eq!(wrong.to_string(), "`env.TOKEN` has the wrong type");
    assert!(matches!(
        read(json!("canary")).unwrap_err(),
        SpecError::Shape(_)
    ));
}

#[test]
fn timeout_must_be_finite_and_positive() {
    for wrong in [json!(0), json!(-1), json!(1e300), json!(86_401)] {
        assert_eq!(
            read(json!({"command": "x", "tool_call_timeout": wrong})).unwrap_err(),
            SpecError::Limit("tool_call_timeout")
        );
        assert_eq!(
            read(json!({"command": "x", "session_init_timeout": wrong})).unwrap_err(),
            SpecError::Limit("session_init_timeout")
        );
    }
    let spec =
        read(json!({"command": "x", "tool_call_timeout": 0.5, "session_init_timeout": null}))
            .unwrap();
    assert_eq!(
        (spec.call_limit, spec.init_limit),
        (Duration::from_millis(500), DEFAULT_INIT_TIMEOUT)
    );
}

#[test]
fn disabled_or_invalid_server_keeps_others() {
    let mut extensions = Extensions::default();
    extensions.change_section(MCP_SERVERS, |servers| {
        servers.insert("off".to_owned(), json!({"enabled": false, "type": 5}));
        servers.insert("broken".to_owned(), json!({"type": "http"}));
        servers.insert(
            "good".to_owned(),
            json!({"command": "x", "tools": {"rm": {"enabled": false}, "ls": {"routing": {}}}}),
        );
    });
    let all = ServerSpec::all(&extensions);
    assert_eq!(
        all.iter()
            .map(|(name, _)| name.as_str())
            .collect::<Vec<_>>(),
        ["broken", "good"]
    );
    let good = all[1].1.as_ref().unwrap();
    assert!(all[0].1.is_err() && good.hidden.contains("rm") && !good.hidden.contains("ls"));
    assert!(good.is_same(&good.clone()) && !good.is_same(&read(json!({"command": "x"})).unwrap()));
}

//! Client view of a server: every field, without secrets.

use serde_json::{Map, Value, json};

use super::secrets::redacted;

/// Returns the entry with defaults for missing fields.
pub(super) fn view(stored: &Value) -> Value {
    let none = Map::new();
    let stored = stored.as_object().unwrap_or(&none);
    let mut fields = defaults(json!({
        "enabled": true,
        "type": stored.get("transport").and_then(Value::as_str).unwrap_or("stdio"),
        "command": null,
        "args": [],
        "env": {},
        "url": null,
        "headers": {},
        "oauth": null,
        "description": "",
        "routing": routing(),
        "tools": {},
        "tool_name_prefix": true,
        "tool_call_timeout": null,
        "session_init_timeout": 60.0,
        "task_toolsets": [],
    }));
    for (name, value) in stored
        .iter()
        .filter(|(name, value)| !value.is_null() && *name != "transport")
    {
        let value = match (name.as_str(), value) {
            ("oauth", Value::Object(configured)) => overlaid(defaults(oauth()), configured),
            ("routing", Value::Object(configured)) => overlaid(defaults(routing()), configured),
            _ => value.clone(),
        };
        fields.insert(name.clone(), value);
    }
    redacted(&Value::Object(fields))
}

fn overlaid(mut fields: Map<String, Value>, configured: &Map<String, Value>) -> Value {
    fields.extend(
        configured
            .iter()
            .map(|(name, value)| (name.clone(), value.clone())),
    );
    Value::Object(fields)
}

fn defaults(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

fn routing() -> Value {
    json!({ "mode": "off", "priority": 0, "keywords": [] })
}

fn oauth() -> Value {
    json!({
        "enabled": true,
        "token_url": "",
        "grant_type": "client_credentials",
        "client_id": null,
        "client_secret": null,
        "refresh_token": null,
        "scope": null,
        "audience": null,
        "token_field": "access_token",
        "token_type_field": "token_type",
        "expires_in_field": "expires_in",
        "default_token_type": "Bearer",
        "refresh_skew_seconds": 60,
        "extra_token_params": {},
    })
}

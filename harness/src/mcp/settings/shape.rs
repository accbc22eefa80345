//! Validates the fields of server entries. Reports all errors at once.

use serde_json::{Map, Value};

/// Maximum number of servers of an installation.
const MAX_SERVERS: usize = 200;
/// Maximum length of a server name, in characters.
const MAX_NAME_CHARS: usize = 64;
/// Maximum timeout, in seconds.
const MAX_TIMEOUT_SECS: f64 = 24.0 * 3600.0;

/// Type of a field.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Flag,
    Text,
    Texts,
    TextMap,
    Seconds,
    Whole,
    Map(&'static [(&'static str, Kind)]),
    /// Map without unknown fields.
    Closed(&'static [(&'static str, Kind)]),
    ClosedList(&'static [(&'static str, Kind)], &'static [&'static str]),
    MapOf(&'static [(&'static str, Kind)]),
    Word(&'static [&'static str]),
}

const ROUTING: &[(&str, Kind)] = &[
    ("mode", Kind::Word(&["off", "prefer"])),
    ("priority", Kind::Whole),
    ("keywords", Kind::Texts),
];
const TOOLSET_FIELDS: &[&str] = &["name", "submit_tool", "status_tool", "cancel_tool"];
const TOOLSET: &[(&str, Kind)] = &[
    ("name", Kind::Text),
    ("submit_tool", Kind::Text),
    ("status_tool", Kind::Text),
    ("cancel_tool", Kind::Text),
];
const OAUTH: &[(&str, Kind)] = &[
    ("enabled", Kind::Flag),
    ("token_url", Kind::Text),
    (
        "grant_type",
        Kind::Word(&["client_credentials", "refresh_token"]),
    ),
    ("client_id", Kind::Text),
    ("client_secret", Kind::Text),
    ("refresh_token", Kind::Text),
    ("scope", Kind::Text),
    ("audience", Kind::Text),
    ("token_field", Kind::Text),
    ("token_type_field", Kind::Text),
    ("expires_in_field", Kind::Text),
    ("default_token_type", Kind::Text),
    ("refresh_skew_seconds", Kind::Whole),
    ("extra_token_params", Kind::TextMap),
];
const SERVER: &[(&str, Kind)] = &[
    ("enabled", Kind::Flag),
    (
        "type",
        Kind::Word(&["stdio", "sse", "http", "streamable_http", "streamable-http"]),
    ),
    (
        "transport",
        Kind::Word(&["stdio", "sse", "http", "streamable_http", "streamable-http"]),
    ),
    ("command", Kind::Text),
    ("args", Kind::Texts),
    ("env", Kind::TextMap),
    ("cwd", Kind::Text),
    ("starts_in_workspace", Kind::Flag),
    ("url", Kind::Text),
    ("headers", Kind::TextMap),
    ("oauth", Kind::Map(OAUTH)),
    ("description", Kind::Text),
    ("routing", Kind::Closed(ROUTING)),
    (
        "tools",
        Kind::MapOf(&[("enabled", Kind::Flag), ("routing", Kind::Closed(ROUTING))]),
    ),
    ("tool_name_prefix", Kind::Flag),
    ("tool_call_timeout", Kind::Seconds),
    ("session_init_timeout", Kind::Seconds),
    ("task_toolsets", Kind::ClosedList(TOOLSET, TOOLSET_FIELDS)),
];

/// Validation error of server entries from a client.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{}: {message}", .at.iter().map(Value::to_string).collect::<Vec<_>>().join("/"))]
pub struct ServerIssue {
    /// Machine-readable code.
    pub kind: &'static str,
    /// Path to the value: server name, then keys and indices. Empty if the error concerns all
    /// servers.
    pub at: Vec<Value>,
    /// Violated rule, for users.
    pub message: String,
    /// Rejected number, boolean or server name, or the number of servers if there are too many;
    /// null for any other value, which may contain a secret.
    pub value: Value,
}

impl ServerIssue {
    fn new(kind: &'static str, at: Vec<Value>, message: impl Into<String>, value: Value) -> Self {
        Self {
            kind,
            at,
            message: message.into(),
            value,
        }
    }
}

/// Returns all validation errors of servers from a client.
pub fn server_issues(servers: &Map<String, Value>) -> Vec<ServerIssue> {
    if servers.len() > MAX_SERVERS {
        let message = format!("Dictionary should have at most {MAX_SERVERS} items");
        return vec![ServerIssue::new(
            "too_long",
            Vec::new(),
            message,
            servers.len().into(),
        )];
    }
    let mut issues = Vec::new();
    for (name, server) in servers {
        let at = vec![name.as_str().into()];
        if name.trim().is_empty() || name.chars().count() > MAX_NAME_CHARS {
            let message = format!("A server's name has 1 to {MAX_NAME_CHARS} characters");
            issues.push(ServerIssue::new(
                "value_error",
                at.clone(),
                message,
                name.as_str().into(),
            ));
        }
        check(Kind::Map(SERVER), server, at, &mut issues);
    }
    issues
}

/// Checks one value. Null counts as absent, except for a whole server entry.
fn check(kind: Kind, value: &Value, at: Vec<Value>, issues: &mut Vec<ServerIssue>) {
    let mut wrong = |kind: &'static str, message: String| {
        issues.push(ServerIssue::new(kind, at.clone(), message, echoed(value)))
    };
    let is_texts = |mut values: Box<dyn Iterator<Item = &Value> + '_>| values.all(Value::is_string);
    match (kind, value) {
        (Kind::Flag, Value::Bool(_)) | (Kind::Text, Value::String(_)) => {}
        (Kind::Flag, _) => wrong("bool_type", "Input should be a valid boolean".to_owned()),
        (Kind::Text, _) => wrong("string_type", "Input should be a valid string".to_owned()),
        (Kind::Texts, Value::Array(items)) if is_texts(Box::new(items.iter())) => {}
        (Kind::Texts, _) => wrong(
            "list_type",
            "Input should be a valid list of strings".to_owned(),
        ),
        (Kind::TextMap, Value::Object(fields)) if is_texts(Box::new(fields.values())) => {}
        (Kind::TextMap, _) => wrong(
            "dict_type",
            "Input should be a valid dictionary of strings".to_owned(),
        ),
        (Kind::Seconds, Value::Number(number))
            if number
                .as_f64()
                .is_some_and(|seconds| seconds > 0.0 && seconds <= MAX_TIMEOUT_SECS) => {}
        (Kind::Seconds, _) => wrong(
            "greater_than",
            "Input should be a number of seconds above 0, 86400 at most".to_owned(),
        ),
        (Kind::Whole, Value::Number(number))
            if number
                .as_i64()
                .is_some_and(|number| (0..=1_000_000).contains(&number)) => {}
        (Kind::Whole, _) => wrong(
            "int_type",
            "Input should be a valid integer, 0 or more".to_owned(),
        ),
        (Kind::Word(words), Value::String(word)) if words.contains(&word.as_str()) => {}
        (Kind::Word(words), _) => {
            wrong("literal_error", format!("Input should be one of {words:?}"))
        }
        (Kind::Map(known), Value::Object(fields)) => {
            check_fields(known, fields, false, &at, issues)
        }
        (Kind::Closed(known), Value::Object(fields)) => {
            check_fields(known, fields, true, &at, issues)
        }
        (Kind::MapOf(known), Value::Object(entries)) => {
            for (name, entry) in entries {
                check(Kind::Map(known), entry, below(&at, name.as_str()), issues);
            }
        }
        (Kind::Map(_) | Kind::Closed(_) | Kind::MapOf(_), _) => {
            wrong("dict_type", "Input should be a valid dictionary".to_owned())
        }
        (Kind::ClosedList(known, required), Value::Array(items)) => {
            for (n, item) in items.iter().enumerate() {
                check(Kind::Closed(known), item, below(&at, n), issues);
                let blank = |field: &&&str| {
                    item.get(**field)
                        .is_none_or(|value| value.is_null() || value == "")
                };
                for field in required.iter().filter(blank) {
                    issues.push(ServerIssue::new(
                        "missing",
                        below(&below(&at, n), *field),
                        "Field required",
                        Value::Null,
                    ));
                }
            }
        }
        (Kind::ClosedList(..), _) => wrong("list_type", "Input should be a valid list".to_owned()),
    }
}

fn check_fields(
    known: &[(&str, Kind)],
    fields: &Map<String, Value>,
    closed: bool,
    at: &[Value],
    issues: &mut Vec<ServerIssue>,
) {
    for (name, value) in fields {
        match known.iter().find(|(field, _)| field == name) {
            Some((_, kind)) if !value.is_null() => {
                check(*kind, value, below(at, name.as_str()), issues)
            }
            None if closed => {
                issues.push(ServerIssue::new(
                    "extra_forbidden",
                    below(at, name.as_str()),
                    "Extra inputs are not permitted",
                    Value::Null,
                ));
            }
            _ => {}
        }
    }
}

fn below(at: &[Value], path: impl Into<Value>) -> Vec<Value> {
    at.iter().cloned().chain([path.into()]).collect()
}

/// Returns the value if an error may repeat it; null for texts, lists and maps, which may contain a
/// secret.
fn echoed(value: &Value) -> Value {
    match value {
        Value::Number(_) | Value::Bool(_) | Value::Null => value.clone(),
        _ => Value::Null,
    }
}

//! Redacts the secrets of a server entry in responses and restores them in requests.

use reqwest::Url;
use serde_json::{Map, Value};

use super::program_fields::{PROGRAM, non_blank};

/// Placeholder of a secret.
pub(super) const REDACTED: &str = "***";

/// Maps whose values all count as secrets.
const SECRET_MAPS: [&str; 3] = ["env", "headers", "extra_token_params"];
/// Name parts that mark a value as a secret.
const SECRET_NAMES: [&str; 6] = [
    "secret",
    "password",
    "token",
    "api_key",
    "apikey",
    "authorization",
];
/// Fields that contain no secret although their names contain such a part.
const PLAIN_NAMES: [&str; 4] = [
    "token_url",
    "token_field",
    "token_type_field",
    "default_token_type",
];

/// Returns the entry without its secrets.
pub(super) fn redacted(entry: &Value) -> Value {
    match entry {
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| (name.clone(), redacted_field(name, value)))
            .collect::<Map<_, _>>()
            .into(),
        Value::Array(items) => items.iter().map(redacted).collect(),
        other => other.clone(),
    }
}

fn redacted_field(name: &str, value: &Value) -> Value {
    match value {
        Value::Object(fields) if SECRET_MAPS.contains(&name) => fields
            .iter()
            .map(|(name, value)| {
                (
                    name.clone(),
                    if is_empty(value) {
                        value.clone()
                    } else {
                        REDACTED.into()
                    },
                )
            })
            .collect::<Map<_, _>>()
            .into(),
        Value::String(text) if !text.is_empty() && is_secret(name) => REDACTED.into(),
        other => redacted(other),
    }
}

fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SECRET_NAMES.iter().any(|part| name.contains(part)) && !PLAIN_NAMES.contains(&name.as_str())
}

fn is_empty(value: &Value) -> bool {
    value.is_null() || value.as_str().is_some_and(str::is_empty)
}

/// Failure to restore a secret. The texts name fields and contain no value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum RestoreError {
    #[error("`{0}` is redacted, but no value is stored for it")]
    NotStored(String),
    #[error("`{0}` differs from the stored value: enter the secrets for the new destination")]
    DestinationChanged(&'static str),
}

/// Replaces each placeholder by the stored value. A secret is restored only if its destination did
/// not change.
pub(super) fn restored(entry: Value, stored: Option<&Value>) -> Result<Value, RestoreError> {
    let restored = restored_at(entry.clone(), stored, "").map_err(RestoreError::NotStored)?;
    let changed_destination = stored
        .filter(|_| restored != entry)
        .and_then(|stored| changed_destination(&restored, stored));
    changed_destination.map_or(Ok(restored), |field| {
        Err(RestoreError::DestinationChanged(field))
    })
}

/// Returns the first field that makes the secrets of the entry go to another destination than
/// before.
fn changed_destination(entry: &Value, stored: &Value) -> Option<&'static str> {
    let is_other = |field: &&str| non_blank(entry, field) != non_blank(stored, field);
    let origin_of = |entry: &Value, path: &str| {
        entry
            .pointer(path)
            .and_then(Value::as_str)
            .map(origin)
            .filter(|text| !text.is_empty())
    };
    let has_other_origin = |path: &str| origin_of(entry, path) != origin_of(stored, path);
    let program = PROGRAM.into_iter().find(is_other);
    let address = [("/url", "url"), ("/oauth/token_url", "oauth.token_url")]
        .into_iter()
        .find(|(path, _)| has_other_origin(path));
    program.or_else(|| address.map(|(_, name)| name))
}

/// Returns the origin of an address; the text itself if it is not an address, for example a
/// variable reference.
fn origin(address: &str) -> String {
    Url::parse(address.trim()).map_or_else(
        |_no_address| address.to_owned(),
        |url| url.origin().ascii_serialization(),
    )
}

fn restored_at(entry: Value, stored: Option<&Value>, path: &str) -> Result<Value, String> {
    match entry {
        Value::String(text) if text == REDACTED => stored
            .filter(|stored| stored.is_string())
            .cloned()
            .ok_or_else(|| path.trim_start_matches('.').to_owned()),
        Value::Object(fields) => {
            let restore = |(name, value): (String, Value)| {
                let value = restored_at(
                    value,
                    stored.and_then(|stored| stored.get(&name)),
                    &format!("{path}.{name}"),
                )?;
                Ok((name, value))
            };
            fields
                .into_iter()
                .map(restore)
                .collect::<Result<Map<_, _>, String>>()
                .map(Value::Object)
        }
        Value::Array(items) => {
            let restore = |(at, item)| {
                restored_at(
                    item,
                    stored.and_then(|stored| stored.get(at)),
                    &format!("{path}[{at}]"),
                )
            };
            items
                .into_iter()
                .enumerate()
                .map(restore)
                .collect::<Result<Vec<_>, String>>()
                .map(Value::Array)
        }
        other => Ok(other),
    }
}

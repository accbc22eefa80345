//! Secrets of a server's entry: hidden on the way out, put back on the way in.

use reqwest::Url;
use serde_json::{Map, Value};

use super::change::{PROGRAM, said};

/// What stands for a secret.
pub(super) const HIDDEN: &str = "***";

/// Maps in which every value is taken for a secret.
const SECRET_MAPS: [&str; 3] = ["env", "headers", "extra_token_params"];
/// Parts of names that say that a value is one.
const SECRET_NAMES: [&str; 6] = [
    "secret",
    "password",
    "token",
    "api_key",
    "apikey",
    "authorization",
];
/// Fields with such a name that are none.
const PLAIN_NAMES: [&str; 4] = [
    "token_url",
    "token_field",
    "token_type_field",
    "default_token_type",
];

/// The entry without its secrets.
pub(super) fn hidden(entry: &Value) -> Value {
    match entry {
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| (name.clone(), hidden_field(name, value)))
            .collect::<Map<_, _>>()
            .into(),
        Value::Array(items) => items.iter().map(hidden).collect(),
        other => other.clone(),
    }
}

fn hidden_field(name: &str, value: &Value) -> Value {
    match value {
        Value::Object(fields) if SECRET_MAPS.contains(&name) => fields
            .iter()
            .map(|(name, value)| {
                (
                    name.clone(),
                    if is_empty(value) {
                        value.clone()
                    } else {
                        HIDDEN.into()
                    },
                )
            })
            .collect::<Map<_, _>>()
            .into(),
        Value::String(text) if !text.is_empty() && is_secret(name) => HIDDEN.into(),
        other => hidden(other),
    }
}

fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SECRET_NAMES.iter().any(|part| name.contains(part)) && !PLAIN_NAMES.contains(&name.as_str())
}

fn is_empty(value: &Value) -> bool {
    value.is_null() || value.as_str().is_some_and(str::is_empty)
}

/// Why nothing is put back. The texts name places and show no value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Kept {
    #[error("`{0}` is hidden, and nothing is stored there")]
    Nowhere(String),
    #[error("`{0}` is not what is stored: write out the secrets that are to go there")]
    Elsewhere(&'static str),
}

/// The entry with what is stored wherever it says that something is hidden. Secrets go where they went before and nowhere else.
pub(super) fn restored(entry: Value, stored: Option<&Value>) -> Result<Value, Kept> {
    let restored = restored_at(entry.clone(), stored, "").map_err(Kept::Nowhere)?;
    let moved = stored
        .filter(|_| restored != entry)
        .and_then(|stored| moved(&restored, stored));
    moved.map_or(Ok(restored), |field| Err(Kept::Elsewhere(field)))
}

/// The first field by which the entry sends its secrets somewhere else than the stored one.
fn moved(entry: &Value, stored: &Value) -> Option<&'static str> {
    let is_other = |field: &&str| said(entry, field) != said(stored, field);
    let origin_of = |entry: &Value, place: &str| {
        entry
            .pointer(place)
            .and_then(Value::as_str)
            .map(origin)
            .filter(|text| !text.is_empty())
    };
    let is_elsewhere = |place: &str| origin_of(entry, place) != origin_of(stored, place);
    let program = PROGRAM.into_iter().find(is_other);
    let address = [("/url", "url"), ("/oauth/token_url", "oauth.token_url")]
        .into_iter()
        .find(|(place, _)| is_elsewhere(place));
    program.or_else(|| address.map(|(_, name)| name))
}

/// Which server an address is of; the text itself where it is none, such as a variable.
fn origin(address: &str) -> String {
    Url::parse(address.trim()).map_or_else(
        |_no_address| address.to_owned(),
        |url| url.origin().ascii_serialization(),
    )
}

fn restored_at(entry: Value, stored: Option<&Value>, place: &str) -> Result<Value, String> {
    match entry {
        Value::String(text) if text == HIDDEN => stored
            .filter(|stored| stored.is_string())
            .cloned()
            .ok_or_else(|| place.trim_start_matches('.').to_owned()),
        Value::Object(fields) => {
            let restore = |(name, value): (String, Value)| {
                let value = restored_at(
                    value,
                    stored.and_then(|stored| stored.get(&name)),
                    &format!("{place}.{name}"),
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
                    &format!("{place}[{at}]"),
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

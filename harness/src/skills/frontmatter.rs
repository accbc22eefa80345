//! The head of a `SKILL.md`: YAML between two lines of three dashes.
//!
//! Skills of the installation are read leniently: keys that nobody knows are somebody else's. What a user brings along is
//! [checked](check) by the rules of the format.

use serde_json::{Map, Value};

use super::skill::is_skill_name;
use crate::sandbox::virtual_paths::misleads_a_reader;

/// The longest head, in bytes.
const MAX_BYTES: usize = 64 * 1024;
/// The longest name of any skill and the longest description of one that is brought along, in characters.
const MAX_NAME_CHARS: usize = 128;
const MAX_DESCRIPTION_CHARS: usize = 1_024;
/// The keys of the format.
const KEYS: &[&str] = &[
    "name",
    "description",
    "license",
    "allowed-tools",
    "metadata",
    "compatibility",
    "version",
    "author",
    "required-secrets",
    "secrets-autonomous",
];

/// What a skill says of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Frontmatter {
    /// What it is called.
    pub name: String,
    /// When to use it.
    pub description: String,
    /// Under which terms.
    pub license: Option<String>,
    /// The tools that an agent may call while it works by the skill; any when it does not say.
    pub allowed_tools: Option<Vec<String>>,
}

/// Why a text is no skill.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FrontmatterError {
    /// There is none.
    #[error("the file must begin with its frontmatter: a line `---`, YAML, and another line `---`")]
    Missing,
    /// It is too long.
    #[error("the frontmatter is longer than {MAX_BYTES} bytes")]
    TooLong,
    /// It is no YAML map.
    #[error(
        "the frontmatter is no YAML map: {0}; put quotes around a value that has a colon in it"
    )]
    Yaml(String),
    /// A key says something it cannot.
    #[error("`{key}` {problem}")]
    Key {
        /// Which.
        key: String,
        /// What is wrong with it.
        problem: String,
    },
}

/// Reads the head of a skill.
///
/// # Errors
/// What is wrong with it, in words for whoever wrote it.
pub fn parse(text: &str) -> Result<Frontmatter, FrontmatterError> {
    read(&keys_of(text)?)
}

/// Reads the head of a skill that somebody brings along, by all rules of the format.
///
/// # Errors
/// As [`parse`].
pub fn check(text: &str) -> Result<Frontmatter, FrontmatterError> {
    let keys = keys_of(text)?;
    if let Some(unknown) = keys.keys().find(|key| !KEYS.contains(&key.as_str())) {
        return Err(wrong(
            unknown,
            format!("is no key of a skill; the keys are {}", KEYS.join(", ")),
        ));
    }
    let head = read(&keys)?;
    if !is_skill_name(&head.name) {
        let problem = format!(
            "is {}, allowed: 1 to 64 small letters, digits and single hyphens between them",
            shown(&head.name)
        );
        return Err(wrong("name", problem));
    }
    if head.description.chars().count() > MAX_DESCRIPTION_CHARS {
        return Err(wrong(
            "description",
            format!("is longer than {MAX_DESCRIPTION_CHARS} characters"),
        ));
    }
    if head.description.contains(['<', '>']) {
        return Err(wrong("description", "has an angle bracket in it"));
    }
    if keys
        .get("secrets-autonomous")
        .is_some_and(|value| !value.is_boolean())
    {
        return Err(wrong("secrets-autonomous", "must be true or false"));
    }
    check_secrets(keys.get("required-secrets"))?;
    Ok(head)
}

fn keys_of(text: &str) -> Result<Map<String, Value>, FrontmatterError> {
    let yaml = yaml_of(text).ok_or(FrontmatterError::Missing)?;
    if yaml.len() > MAX_BYTES {
        return Err(FrontmatterError::TooLong);
    }
    serde_saphyr::from_str(yaml)
        .map_err(|error| FrontmatterError::Yaml(first_line(&error.to_string())))
}

/// What stands between the first line, which is `---`, and the next such line.
fn yaml_of(text: &str) -> Option<&str> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let after = text.strip_prefix("---")?;
    let (rest_of_line, body) = after.split_once('\n')?;
    if !rest_of_line.trim().is_empty() {
        return None;
    }
    let mut at = 0;
    for line in body.split_inclusive('\n') {
        if line.trim_end() == "---" {
            return body.get(..at);
        }
        at += line.len();
    }
    None
}

fn read(keys: &Map<String, Value>) -> Result<Frontmatter, FrontmatterError> {
    let name = required(keys, "name")?;
    if name.chars().count() > MAX_NAME_CHARS
        || name.chars().any(|c| misleads_a_reader(c) || c == '/')
    {
        return Err(wrong(
            "name",
            format!(
                "is {}, which is too long or has characters that no name has",
                shown(&name)
            ),
        ));
    }
    let description = required(keys, "description")?;
    let license = match keys.get("license") {
        None | Some(Value::Null) => None,
        Some(Value::String(text)) => Some(text.clone()),
        Some(_) => return Err(wrong("license", "must be a text")),
    };
    Ok(Frontmatter {
        name,
        description,
        license,
        allowed_tools: allowed_tools(keys.get("allowed-tools"))?,
    })
}

fn required(keys: &Map<String, Value>, key: &str) -> Result<String, FrontmatterError> {
    match keys.get(key) {
        Some(Value::String(text)) if !text.trim().is_empty() => Ok(text.trim().to_owned()),
        None | Some(Value::Null) => Err(wrong(key, "is missing")),
        Some(_) => Err(wrong(key, "must be a text that is not empty")),
    }
}

fn allowed_tools(value: Option<&Value>) -> Result<Option<Vec<String>>, FrontmatterError> {
    let Some(value) = value.filter(|value| !value.is_null()) else {
        return Ok(None);
    };
    let name = |item: &Value| {
        item.as_str()
            .map(str::trim)
            .filter(|name| !name.is_empty())
            .map(str::to_owned)
    };
    let names = value
        .as_array()
        .and_then(|items| items.iter().map(name).collect());
    names
        .map(Some)
        .ok_or_else(|| wrong("allowed-tools", "must be a list of names of tools"))
}

/// Names, or maps with a `name` and whether the skill works without it.
fn check_secrets(value: Option<&Value>) -> Result<(), FrontmatterError> {
    let Some(value) = value.filter(|value| !value.is_null()) else {
        return Ok(());
    };
    let is_name = |value: Option<&Value>| {
        value
            .and_then(Value::as_str)
            .is_some_and(|name| !name.trim().is_empty())
    };
    let is_secret = |item: &Value| match item {
        Value::Object(fields) => {
            is_name(fields.get("name")) && fields.get("optional").is_none_or(Value::is_boolean)
        }
        other => is_name(Some(other)),
    };
    let is_list = value
        .as_array()
        .is_some_and(|items| items.iter().all(is_secret));
    if is_list {
        Ok(())
    } else {
        Err(wrong("required-secrets", "must be a list of names"))
    }
}

fn wrong(key: &str, problem: impl Into<String>) -> FrontmatterError {
    FrontmatterError::Key {
        key: key.chars().take(MAX_NAME_CHARS).collect(),
        problem: problem.into(),
    }
}

/// A value on one short line.
fn shown(text: &str) -> String {
    let start: String = text.chars().take(80).collect();
    format!("{start:?}")
}

fn first_line(text: &str) -> String {
    text.lines()
        .map(str::trim)
        .find(|line| !line.is_empty())
        .unwrap_or_default()
        .chars()
        .take(300)
        .collect()
}

#[cfg(test)]
#[path = "frontmatter_tests.rs"]
mod tests;

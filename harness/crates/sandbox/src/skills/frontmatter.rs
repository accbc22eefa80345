//! Frontmatter of a `SKILL.md`: YAML between two lines of three dashes.
//!
//! Skills of the installation are parsed leniently: unknown keys are ignored. Skills of users are
//! [checked](check) against the format.

use serde_json::{Map, Value};

use super::skill_name::is_skill_name;
use crate::sandbox::virtual_paths::is_misleading_char;

/// Maximum length of the frontmatter, in bytes.
const MAX_BYTES: usize = 64 * 1024;
/// Maximum length of a skill name, and of the description of a custom skill, in characters.
const MAX_NAME_CHARS: usize = 128;
const MAX_DESCRIPTION_CHARS: usize = 1_024;
/// Keys of the format.
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

/// Metadata of a skill.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Frontmatter {
    /// Name of the skill.
    pub name: String,
    /// Description of when to use the skill.
    pub description: String,
    /// License of the skill.
    pub license: Option<String>,
    /// Tools that an agent may call while the skill is active; `None` allows all.
    pub allowed_tools: Option<Vec<String>>,
}

/// Reason why a text is not a valid skill.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FrontmatterError {
    /// The frontmatter is missing.
    #[error("the file must begin with its frontmatter: a line `---`, YAML, and another line `---`")]
    Missing,
    /// The frontmatter is too long.
    #[error("the frontmatter is longer than {MAX_BYTES} bytes")]
    TooLong,
    /// The frontmatter is not a YAML map.
    #[error(
        "the frontmatter is not a YAML map: {0}; put quotes around a value that contains a colon"
    )]
    Yaml(String),
    /// A key has an invalid value.
    #[error("`{key}` {problem}")]
    Key {
        /// The key.
        key: String,
        /// Description of the problem.
        problem: String,
    },
}

/// Parses the frontmatter of a skill.
///
/// # Errors
/// The problem, worded for the author of the skill.
pub fn parse(text: &str) -> Result<Frontmatter, FrontmatterError> {
    read(&keys_of(text)?)
}

/// Parses the frontmatter of a custom skill and checks it against all rules of the format.
///
/// # Errors
/// As [`parse`].
pub fn check(text: &str) -> Result<Frontmatter, FrontmatterError> {
    let keys = keys_of(text)?;
    if let Some(unknown) = keys.keys().find(|key| !KEYS.contains(&key.as_str())) {
        return Err(key_error(
            unknown,
            format!("is not a key of a skill; the keys are {}", KEYS.join(", ")),
        ));
    }
    let head = read(&keys)?;
    if !is_skill_name(&head.name) {
        let problem = format!(
            "is {}, allowed: 1 to 64 lower-case letters, digits and single hyphens between them",
            quoted(&head.name)
        );
        return Err(key_error("name", problem));
    }
    if head.description.chars().count() > MAX_DESCRIPTION_CHARS {
        return Err(key_error(
            "description",
            format!("is longer than {MAX_DESCRIPTION_CHARS} characters"),
        ));
    }
    if head.description.contains(['<', '>']) {
        return Err(key_error("description", "contains an angle bracket"));
    }
    if keys
        .get("secrets-autonomous")
        .is_some_and(|value| !value.is_boolean())
    {
        return Err(key_error("secrets-autonomous", "must be true or false"));
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

/// Returns the text between the first line, which must be `---`, and the next such line.
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
        || name.chars().any(|c| is_misleading_char(c) || c == '/')
    {
        return Err(key_error(
            "name",
            format!(
                "is {}, which is too long or contains invalid characters",
                quoted(&name)
            ),
        ));
    }
    let description = required(keys, "description")?;
    let license = match keys.get("license") {
        None | Some(Value::Null) => None,
        Some(Value::String(text)) => Some(text.clone()),
        Some(_) => return Err(key_error("license", "must be a string")),
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
        None | Some(Value::Null) => Err(key_error(key, "is missing")),
        Some(_) => Err(key_error(key, "must be a non-empty string")),
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
        .ok_or_else(|| key_error("allowed-tools", "must be a list of tool names"))
}

/// Accepts names, or maps with a `name` and an optional flag.
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
        Err(key_error("required-secrets", "must be a list of names"))
    }
}

fn key_error(key: &str, problem: impl Into<String>) -> FrontmatterError {
    FrontmatterError::Key {
        key: key.chars().take(MAX_NAME_CHARS).collect(),
        problem: problem.into(),
    }
}

/// Formats a value on one short line.
fn quoted(text: &str) -> String {
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

//! Rules of a body, compiled once from the schema of its type.

use std::ops::RangeInclusive;

use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::issues::{missing_issue, number_issue, texts_issue, texts_of, word_issue};
use crate::error::Issue;
use crate::schema::TypeSchema;

/// Maximum number of nulls that one response reports: a large body can contain millions.
pub(super) const MAX_NULL_ISSUES: usize = 100;

/// Fields of a body with their rules.
#[derive(Debug)]
pub struct Layout {
    root: Value,
    components: Map<String, Value>,
    names: Vec<String>,
    fields: Vec<Field>,
}

/// One field of a body.
#[derive(Debug)]
struct Field {
    name: String,
    required: bool,
    nullable: bool,
    rule: Rule,
}

/// Rule of a field. A schema that no rule expresses is checked by the function that uses the body.
#[derive(Debug)]
enum Rule {
    Any,
    Text,
    Flag,
    Object,
    Integer,
    Number(RangeInclusive<u64>),
    Word(Vec<String>),
    Texts,
    Words(Vec<String>),
}

impl Layout {
    /// Compiles the rules of `T`.
    pub(crate) fn of<T: ToSchema>() -> Self {
        let TypeSchema { root, components } = TypeSchema::of::<T>();
        let is_required = |name: &str| {
            let required = root.get("required").and_then(Value::as_array);
            required.is_some_and(|names| names.iter().any(|required| required == name))
        };
        let properties = || root.get("properties").and_then(Value::as_object);
        let names = properties().into_iter().flat_map(Map::keys);
        let names = names.cloned().collect();
        let fields = properties()
            .into_iter()
            .flatten()
            .map(|(name, schema)| Field {
                name: name.clone(),
                required: is_required(name),
                nullable: takes_null(schema, &components),
                rule: Rule::of(schema, &components),
            })
            .collect();
        Self {
            root,
            components,
            names,
            fields,
        }
    }

    /// Names of the fields.
    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    /// Checks the fields except `unchecked` and removes the invalid ones, and nulls that the field's
    /// type does not have. A null counts as absent.
    pub(super) fn check(
        &self,
        map: &mut Map<String, Value>,
        unchecked: &[&str],
        is_platform: bool,
    ) -> Vec<Issue> {
        let mut issues = Vec::new();
        let mut removed = Vec::new();
        for field in &self.fields {
            let value = map.get(&field.name);
            let is_absent = value.is_none_or(Value::is_null);
            let is_checked = !unchecked.contains(&field.name.as_str());
            let issue = match value {
                _ if is_absent => {
                    (field.required && is_checked).then(|| missing_issue(&field.name, map))
                }
                Some(value) if is_checked => field.rule.issue(&field.name, value, is_platform),
                _ => None,
            };
            if issue.is_some() || (is_absent && !field.nullable) {
                removed.push(&field.name);
            }
            issues.extend(issue);
        }
        for name in removed {
            map.swap_remove(name);
        }
        issues
    }

    /// Returns an issue for every null in `value` that the schema does not allow, up to
    /// [`MAX_NULL_ISSUES`]. Alternatives (`anyOf`) are not checked.
    pub(super) fn nulls(&self, value: &Value, mut at: Vec<Value>) -> Vec<Issue> {
        let mut issues = Vec::new();
        self.collect_nulls(&self.root, value, &mut at, &mut issues);
        issues
    }

    fn collect_nulls(
        &self,
        schema: &Value,
        value: &Value,
        at: &mut Vec<Value>,
        issues: &mut Vec<Issue>,
    ) {
        if issues.len() >= MAX_NULL_ISSUES {
            return;
        }
        let schema = resolved(schema, &self.components);
        let mut enter = |schema: Option<&Value>, value: &Value, part: Value| {
            if let Some(schema) = schema {
                at.push(part);
                self.collect_nulls(schema, value, at, issues);
                at.pop();
            }
        };
        match value {
            Value::Object(fields) => {
                let properties = schema.get("properties");
                fields.iter().for_each(|(key, value)| {
                    enter(
                        properties.and_then(|known| known.get(key)),
                        value,
                        key.as_str().into(),
                    )
                });
            }
            Value::Array(items) => items
                .iter()
                .enumerate()
                .for_each(|(n, item)| enter(schema.get("items"), item, n.into())),
            Value::Null if !takes_null(schema, &self.components) => issues.push(Issue::new(
                "type",
                at.clone(),
                "Input should not be null",
                value,
            )),
            _ => {}
        }
    }
}

impl Rule {
    fn of(schema: &Value, components: &Map<String, Value>) -> Self {
        let schema = resolved(schema, components);
        if let Some([only, null]) = schema
            .get("anyOf")
            .and_then(Value::as_array)
            .map(Vec::as_slice)
        {
            return if null.get("type").is_some_and(|kind| kind == "null") {
                Self::of(only, components)
            } else {
                Self::Any
            };
        }
        if let Some(words) = words_of(schema) {
            return Self::Word(words);
        }
        let kinds: Vec<&str> = match schema.get("type") {
            Some(Value::String(kind)) => vec![kind],
            Some(Value::Array(kinds)) => kinds
                .iter()
                .filter_map(Value::as_str)
                .filter(|kind| *kind != "null")
                .collect(),
            _ => Vec::new(),
        };
        let bound = |key: &str| schema.get(key).and_then(Value::as_u64);
        match kinds.as_slice() {
            ["string"] => Self::Text,
            ["boolean"] => Self::Flag,
            ["object"] => Self::Object,
            ["integer"] => match (bound("minimum"), bound("maximum")) {
                (Some(low), Some(high)) => Self::Number(low..=high),
                _ => Self::Integer,
            },
            ["array"] => {
                let item = schema.get("items").map(|item| resolved(item, components));
                match item.map(|item| (words_of(item), item.get("type"))) {
                    Some((Some(words), _)) => Self::Words(words),
                    Some((None, Some(kind))) if kind == "string" => Self::Texts,
                    _ => Self::Any,
                }
            }
            _ => Self::Any,
        }
    }

    fn issue(&self, key: &str, value: &Value, is_platform: bool) -> Option<Issue> {
        let wrong = |is_valid: bool, kind, message: &str| {
            let loc = || vec!["body".into(), key.into()];
            (!is_valid).then(|| Issue::new(kind, loc(), message, value))
        };
        match self {
            Self::Any => None,
            Self::Text => wrong(
                value.is_string(),
                "string_type",
                "Input should be a valid string",
            ),
            Self::Flag => wrong(
                value.is_boolean(),
                "bool_type",
                "Input should be a valid boolean",
            ),
            Self::Object => wrong(
                value.is_object(),
                "dict_type",
                "Input should be a valid dictionary",
            ),
            Self::Integer => wrong(
                value.is_i64(),
                "int_type",
                "Input should be a valid integer",
            ),
            Self::Number(range) => (!value.as_u64().is_some_and(|number| range.contains(&number)))
                .then(|| number_issue(vec!["body".into(), key.into()], value, range.clone())),
            Self::Word(words) => (!value.as_str().is_some_and(|text| contains(words, text)))
                .then(|| word_issue(key, value, words.iter().map(String::as_str))),
            Self::Texts => texts_of(value).is_none().then(|| texts_issue(key, value)),
            Self::Words(words) => {
                let Some(texts) = texts_of(value) else {
                    return Some(texts_issue(key, value));
                };
                // DeerFlow's clients may name any field.
                let unknown = texts
                    .into_iter()
                    .find(|text| is_platform && !contains(words, text))?;
                Some(Issue::new(
                    "literal_error",
                    vec!["body".into(), key.into()],
                    format!("Input should be one of {words:?}"),
                    &unknown.into(),
                ))
            }
        }
    }
}

fn contains(words: &[String], text: &str) -> bool {
    words.iter().any(|word| word == text)
}

/// Returns the words that a schema allows, if it allows only words.
fn words_of(schema: &Value) -> Option<Vec<String>> {
    let words = schema.get("enum")?.as_array()?;
    let words = words.iter().filter(|word| !word.is_null());
    words.map(|word| word.as_str().map(str::to_owned)).collect()
}

fn takes_null(schema: &Value, components: &Map<String, Value>) -> bool {
    let schema = resolved(schema, components);
    if let Some(ways) = schema.get("anyOf").and_then(Value::as_array) {
        return ways.iter().any(|way| takes_null(way, components));
    }
    match (schema.get("type"), schema.get("enum")) {
        (Some(Value::Array(types)), _) => types.iter().any(|one| one == "null"),
        (Some(only), _) => only == "null",
        (None, Some(Value::Array(values))) => values.iter().any(Value::is_null),
        (None, _) => schema.get("const").is_none_or(Value::is_null),
    }
}

fn resolved<'a>(schema: &'a Value, components: &'a Map<String, Value>) -> &'a Value {
    let named = schema
        .get("$ref")
        .and_then(Value::as_str)
        .and_then(|path| path.strip_prefix("#/components/schemas/"));
    named
        .and_then(|name| components.get(name))
        .unwrap_or(schema)
}

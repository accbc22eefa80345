//! Form of a question that asks for several values.

use serde::Serialize;
use serde_json::Value;

use super::options::options_of;

/// Kinds of fields that the web UI shows.
const TYPES: [&str; 7] = [
    "text",
    "textarea",
    "number",
    "select",
    "multi_select",
    "checkbox",
    "date",
];
/// Names of properties that every JavaScript object has: the web UI refuses fields with them.
const RESERVED_NAMES: [&str; 13] = [
    "__proto__",
    "constructor",
    "prototype",
    "toString",
    "toLocaleString",
    "valueOf",
    "hasOwnProperty",
    "isPrototypeOf",
    "propertyIsEnumerable",
    "__defineGetter__",
    "__defineSetter__",
    "__lookupGetter__",
    "__lookupSetter__",
];
/// Maximum number of fields.
const MAX_FIELDS: usize = 16;
/// Maximum number of options of a field.
const MAX_OPTIONS: usize = 24;
/// Maximum length of each text, in characters.
const MAX_CHARS: usize = 200;
/// Maximum size of all fields as JSON, in bytes: the text of a larger form does not fit into one
/// message of a chat platform.
const MAX_BYTES: usize = 16_384;

/// Field of a form, as the web UI reads it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct FormField {
    name: String,
    label: String,
    #[serde(rename = "type")]
    kind: String,
    required: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    options: Option<Vec<FieldOption>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    placeholder: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct FieldOption {
    id: String,
    label: String,
    value: String,
}

impl FormField {
    /// Returns the field as a line of text.
    pub(super) fn line(&self) -> String {
        let required = if self.required { " (required)" } else { "" };
        let labels = self.options.iter().flatten();
        let labels: Vec<&str> = labels.map(|option| option.label.as_str()).collect();
        let choice = match (labels.is_empty(), self.kind.as_str()) {
            (false, _) => format!(": {}", labels.join(", ")),
            (true, "checkbox") => ": yes, no".to_owned(),
            (true, _) => String::new(),
        };
        format!("{}{required}{choice}", self.label)
    }
}

/// Returns the fields of a form: a list, or the JSON text of one. One field that cannot be used
/// makes the whole form `None`, because a form without it would look complete; the question is then
/// asked as text. An unknown kind, and a choice without options, become a text field.
pub(super) fn fields_of(value: Option<&Value>) -> Option<Vec<FormField>> {
    let parsed;
    let list = match value? {
        Value::Array(list) => list,
        Value::String(text) => {
            parsed = serde_json::from_str::<Vec<Value>>(text).ok()?;
            &parsed
        }
        _ => return None,
    };
    if list.is_empty() || list.len() > MAX_FIELDS {
        return None;
    }
    let mut fields: Vec<FormField> = Vec::with_capacity(list.len());
    for entry in list {
        let field = field_of(entry)?;
        if fields.iter().any(|known| known.name == field.name) {
            return None;
        }
        fields.push(field);
    }
    let size = serde_json::to_vec(&fields).ok()?.len();
    (size <= MAX_BYTES).then_some(fields)
}

fn field_of(entry: &Value) -> Option<FormField> {
    let entry = entry.as_object()?;
    let text = |key: &str| {
        let text = entry.get(key)?.as_str()?.trim();
        (!text.is_empty()).then(|| text.to_owned())
    };
    let name = text("name").filter(|name| !RESERVED_NAMES.contains(&name.as_str()))?;
    let label = text("label").unwrap_or_else(|| name.clone());
    let placeholder = text("placeholder");
    let known = text("type").filter(|kind| TYPES.contains(&kind.as_str()));
    let mut kind = known.unwrap_or_else(|| "text".to_owned());
    let mut options = None;
    if kind == "select" || kind == "multi_select" {
        let labels = options_of(entry.get("options"));
        if labels.len() > MAX_OPTIONS || labels.iter().any(|label| is_too_long(label)) {
            return None;
        }
        let numbered = labels.into_iter().enumerate();
        let list: Vec<FieldOption> = numbered
            .map(|(at, label)| FieldOption {
                id: format!("{name}-option-{}", at + 1),
                value: label.clone(),
                label,
            })
            .collect();
        if list.is_empty() {
            kind = "text".to_owned();
        } else {
            options = Some(list);
        }
    }
    let texts = [Some(&name), Some(&label), placeholder.as_ref()];
    if texts.into_iter().flatten().any(|text| is_too_long(text)) {
        return None;
    }
    Some(FormField {
        required: is_true(entry.get("required")),
        name,
        label,
        kind,
        options,
        placeholder,
    })
}

fn is_too_long(text: &str) -> bool {
    text.chars().nth(MAX_CHARS).is_some()
}

/// Reads a truth value in the forms that models write: `true`, `"True"`, `1`.
fn is_true(value: Option<&Value>) -> bool {
    match value {
        Some(Value::Bool(value)) => *value,
        Some(Value::Number(number)) => number.as_f64().is_some_and(|number| number != 0.0),
        Some(Value::String(text)) => text.trim().eq_ignore_ascii_case("true"),
        _ => false,
    }
}

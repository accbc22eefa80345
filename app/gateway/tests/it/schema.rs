//! The OpenAPI document for tests: its operations, and validation of values.

use serde_json::{Map, Value, json};

/// The document.
pub(crate) struct Document(pub(crate) Value);

/// An operation of the document.
#[derive(Debug, Clone)]
pub(crate) struct Operation {
    pub(crate) id: String,
    pub(crate) path: String,
    pub(crate) method: String,
    /// Schema of the body, if any.
    pub(crate) body: Option<Value>,
    pub(crate) body_required: bool,
    /// Query parameters with their schemas.
    pub(crate) query: Vec<(String, Value)>,
}

impl Operation {
    pub(crate) fn method(&self) -> &str {
        &self.method
    }
}

impl Document {
    pub(crate) fn operations(&self) -> Vec<Operation> {
        let paths = self.0["paths"].as_object().expect("paths");
        let all = paths.iter().flat_map(|(path, item)| {
            item.as_object()
                .expect("operations")
                .iter()
                .map(move |entry| (path, entry))
        });
        all.map(|(path, (method, operation))| {
            let parameters = operation["parameters"].as_array().into_iter().flatten();
            let query = parameters.filter(|parameter| parameter["in"] == "query");
            let text = |value: &Value| value.as_str().expect("text").to_owned();
            Operation {
                id: text(&operation["operationId"]),
                path: path.clone(),
                method: method.to_ascii_uppercase(),
                body: operation
                    .pointer("/requestBody/content/application~1json/schema")
                    .cloned(),
                body_required: operation["requestBody"]["required"] == true,
                query: query
                    .map(|parameter| (text(&parameter["name"]), parameter["schema"].clone()))
                    .collect(),
            }
        })
        .collect()
    }

    /// Resolves a reference to a schema.
    pub(crate) fn resolve<'a>(&'a self, schema: &'a Value) -> &'a Value {
        match schema["$ref"].as_str() {
            Some(path) => self
                .0
                .pointer(path.trim_start_matches('#'))
                .expect("a schema"),
            None => schema,
        }
    }

    /// Returns a value with only the required fields.
    pub(crate) fn sample(&self, schema: &Value) -> Value {
        let schema = self.resolve(schema);
        if let Some(example) = schema["examples"].get(0) {
            return example.clone();
        }
        match (schema["type"].as_str(), schema["format"].as_str()) {
            (Some("string"), Some("uuid")) => json!("22222222-2222-4222-8222-222222222222"),
            (Some("string"), _) => json!("text"),
            (Some("integer" | "number"), _) => {
                schema.get("minimum").cloned().unwrap_or_else(|| json!(1))
            }
            (Some("array"), _) => json!([self.sample(&schema["items"])]),
            _ => {
                let needed = schema["required"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .filter_map(Value::as_str);
                needed
                    .map(|name| (name.to_owned(), self.sample(&schema["properties"][name])))
                    .collect::<Map<_, _>>()
                    .into()
            }
        }
    }

    /// Returns the words that a field may have, or a list with each of them.
    pub(crate) fn words(&self, field: &Value) -> Vec<Value> {
        let field = self.resolve(field);
        let of_choices = field["anyOf"]
            .as_array()
            .into_iter()
            .flatten()
            .flat_map(|choice| self.words(choice));
        let of_items = field
            .get("items")
            .map(|item| self.words(item))
            .unwrap_or_default();
        let own = field["enum"].as_array().cloned().unwrap_or_default();
        own.into_iter()
            .chain(of_items.into_iter().map(|word| json!([word])))
            .chain(of_choices)
            .collect()
    }

    /// `true` if the value matches the schema, for the features that the document uses.
    pub(crate) fn fits(&self, schema: &Value, value: &Value) -> bool {
        let schema = self.resolve(schema);
        if let Some(choices) = schema["anyOf"].as_array() {
            return choices.iter().any(|choice| self.fits(choice, value));
        }
        let type_fits = |kind: &str| match kind {
            "null" => value.is_null(),
            "boolean" => value.is_boolean(),
            "integer" => value.is_i64() || value.is_u64(),
            "number" => value.is_number(),
            "string" => value.is_string(),
            "array" => value.is_array(),
            _ => value.is_object(),
        };
        let kinds = match &schema["type"] {
            Value::String(kind) => vec![kind.as_str()],
            Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        let bound = |name: &str| schema[name].as_f64();
        let length = |name: &str| schema[name].as_u64().map(|length| length as usize);
        (kinds.is_empty() || kinds.iter().any(|kind| type_fits(kind)))
            && schema.get("const").is_none_or(|only| only == value)
            && schema["enum"]
                .as_array()
                .is_none_or(|words| words.contains(value))
            && value.as_f64().is_none_or(|number| {
                bound("minimum").is_none_or(|low| number >= low)
                    && bound("maximum").is_none_or(|high| number <= high)
                    && bound("exclusiveMinimum").is_none_or(|low| number > low)
            })
            && value
                .as_str()
                .is_none_or(|text| match schema["format"].as_str() {
                    Some("uuid") => uuid::Uuid::parse_str(text).is_ok(),
                    Some("date-time" | "uri") => text.len() > 9,
                    _ => length("minLength").is_none_or(|least| text.len() >= least),
                })
            && value.as_array().is_none_or(|items| {
                length("minItems").is_none_or(|least| items.len() >= least)
                    && length("maxItems").is_none_or(|most| items.len() <= most)
                    && schema
                        .get("items")
                        .is_none_or(|item| items.iter().all(|value| self.fits(item, value)))
            })
            && value
                .as_object()
                .is_none_or(|map| self.fields_fit(schema, map))
    }

    fn fields_fit(&self, schema: &Value, map: &Map<String, Value>) -> bool {
        let needed = schema["required"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str);
        let rest = &schema["additionalProperties"];
        needed.into_iter().all(|name| map.contains_key(name))
            && schema["maxProperties"]
                .as_u64()
                .is_none_or(|most| map.len() as u64 <= most)
            && map
                .iter()
                .all(|(name, value)| match schema["properties"].get(name) {
                    Some(field) => self.fits(field, value),
                    None => {
                        rest != &Value::Bool(false) && (!rest.is_object() || self.fits(rest, value))
                    }
                })
    }
}

//! JSON Schema of a shape, for editors.

use serde_json::{Map, Value, json};

use super::types::{MAX_NAME, Record, Shape};

/// Returns the schema of a record with the records that it contains under `$defs`.
pub(crate) fn record_schema(record: &'static Record) -> Value {
    let mut definitions = Map::new();
    let mut schema = Map::new();
    schema.insert(
        "$schema".to_owned(),
        json!("https://json-schema.org/draft/2020-12/schema"),
    );
    schema.insert("title".to_owned(), json!(record.name));
    schema.extend(object(record, &mut definitions));
    if !definitions.is_empty() {
        schema.insert("$defs".to_owned(), Value::Object(definitions));
    }
    Value::Object(schema)
}

/// Returns the schema of a shape; adds the records that it contains to `definitions`.
pub(crate) fn shape_schema(shape: &'static Shape, definitions: &mut Map<String, Value>) -> Value {
    match shape {
        Shape::Any => json!({}),
        Shape::Text => json!({"type": "string"}),
        Shape::Name => json!({"type": "string", "minLength": 1, "maxLength": MAX_NAME}),
        Shape::NodeId => json!({
            "type": "string", "minLength": 1, "maxLength": 128,
            "pattern": "^[^|:\\u0000-\\u001f]+$",
            "not": {"enum": ["__start__", "__end__", "*"]},
        }),
        Shape::Version => json!({"enum": ["1.0", "2.0", 1.0, 2.0]}),
        Shape::Bool => json!({"type": "boolean"}),
        Shape::Integer(min, u64::MAX) => json!({"type": "integer", "minimum": min}),
        Shape::Integer(min, max) => json!({"type": "integer", "minimum": min, "maximum": max}),
        Shape::Number(f64::MIN, f64::MAX) => json!({"type": "number"}),
        Shape::Number(min, max) => json!({"type": "number", "minimum": min, "maximum": max}),
        Shape::Positive => json!({"type": "number", "exclusiveMinimum": 0}),
        Shape::OneOf(names) => json!({"enum": names}),
        Shape::List(item, min, max) => {
            let mut schema = json!({"type": "array", "items": shape_schema(item, definitions)});
            if *min > 0 {
                schema["minItems"] = json!(min);
            }
            if *max < usize::MAX {
                schema["maxItems"] = json!(max);
            }
            schema
        }
        Shape::Map(value) => {
            json!({"type": "object", "additionalProperties": shape_schema(value, definitions)})
        }
        Shape::Record(record) => {
            if !definitions.contains_key(record.name) {
                definitions.insert(record.name.to_owned(), Value::Null);
                let schema = object(record, definitions);
                definitions.insert(record.name.to_owned(), Value::Object(schema));
            }
            json!({"$ref": format!("#/$defs/{}", record.name)})
        }
    }
}

fn object(record: &'static Record, definitions: &mut Map<String, Value>) -> Map<String, Value> {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for field in record.fields {
        let mut schema = shape_schema(&field.shape, definitions);
        schema["description"] = json!(field.doc);
        properties.insert(field.name.to_owned(), schema);
        if field.required {
            required.push(field.name);
        }
    }
    let mut object = Map::new();
    object.insert("type".to_owned(), json!("object"));
    object.insert("properties".to_owned(), Value::Object(properties));
    if !required.is_empty() {
        object.insert("required".to_owned(), json!(required));
    }
    object
}

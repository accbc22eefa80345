//! Schemas and parameters of operations.

use serde_json::Value;
use utoipa::openapi::path::{Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder, Schema, Type};
use utoipa::openapi::{RefOr, Required};

pub(super) fn parameter(
    place: ParameterIn,
    name: &str,
    schema: Schema,
    description: Option<&str>,
) -> Parameter {
    let required = if place == ParameterIn::Path {
        Required::True
    } else {
        Required::False
    };
    ParameterBuilder::new()
        .parameter_in(place)
        .name(name)
        .required(required)
        .description(description)
        .schema(Some(schema))
        .build()
}

/// Schema of a string.
pub(crate) fn text() -> Schema {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .build()
        .into()
}

/// Schema of a boolean.
pub(crate) fn flag() -> Schema {
    ObjectBuilder::new()
        .schema_type(Type::Boolean)
        .default(Some(Value::Bool(false)))
        .build()
        .into()
}

/// Schema of an integer with bounds and a default.
pub(crate) fn number(low: u32, high: u32, default: u32) -> Schema {
    let number = ObjectBuilder::new()
        .schema_type(Type::Integer)
        .default(Some(default.into()));
    number
        .minimum(Some(f64::from(low)))
        .maximum(Some(f64::from(high)))
        .build()
        .into()
}

/// Schema of an integer of at least `low`.
pub(crate) fn whole_number(low: u32) -> Schema {
    ObjectBuilder::new()
        .schema_type(Type::Integer)
        .minimum(Some(f64::from(low)))
        .build()
        .into()
}

/// Schema of an integer from `-max_abs` to `max_abs` that defaults to zero.
pub(crate) fn signed(max_abs: u32) -> Schema {
    let number = ObjectBuilder::new()
        .schema_type(Type::Integer)
        .default(Some(0.into()));
    number
        .minimum(Some(-f64::from(max_abs)))
        .maximum(Some(f64::from(max_abs)))
        .build()
        .into()
}

/// Schema of a string that must be in `words`.
pub(crate) fn word<T>(words: &[(&str, T)]) -> Schema {
    let words = words.iter().map(|(word, _)| *word);
    ObjectBuilder::new()
        .schema_type(Type::String)
        .enum_values(Some(words))
        .build()
        .into()
}

/// Schema of a list of strings: the parameter is repeated, or holds commas or a JSON list.
pub(crate) fn texts() -> Schema {
    ArrayBuilder::new().items(RefOr::T(text())).build().into()
}

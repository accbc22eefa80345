//! JSON schemas of types in the spelling of the OpenAPI document.

mod plain;
mod words;

pub(crate) use plain::plain;
pub(crate) use words::words;

use serde_json::{Map, Value};
use utoipa::ToSchema;
use utoipa::openapi::schema::{AnyOfBuilder, ObjectBuilder, Schema, Type};
use utoipa::openapi::{Ref, RefOr};

/// Schema of a type and of all types that it refers to, by name.
pub(crate) struct TypeSchema {
    /// Schema of the type.
    pub(crate) root: Value,
    /// Schemas of the types that it refers to, by name.
    pub(crate) components: Map<String, Value>,
}

impl TypeSchema {
    /// Returns the schema of `T`.
    pub(crate) fn of<T: ToSchema>() -> Self {
        let mut schemas = Vec::new();
        T::schemas(&mut schemas);
        Self {
            root: to_json(&T::schema()),
            components: schemas
                .iter()
                .map(|(name, schema)| (name.clone(), to_json(schema)))
                .collect(),
        }
    }
}

/// Converts a schema to JSON. Schemas of types can always be converted.
fn to_json(schema: &RefOr<Schema>) -> Value {
    let mut json = serde_json::to_value(schema).unwrap_or_default();
    plain(&mut json);
    json
}

/// Reference to the schema of `T`.
pub(crate) fn reference<T: ToSchema>() -> RefOr<Schema> {
    RefOr::Ref(Ref::from_schema_name(T::name()))
}

/// Adds the schema of `T` and of the types that it refers to.
pub(crate) fn collect<T: ToSchema>(schemas: &mut Vec<(String, RefOr<Schema>)>) {
    schemas.push((T::name().into_owned(), T::schema()));
    T::schemas(schemas);
}

/// Schema of an object with at most `max` entries.
pub(crate) fn limited_object(max: usize, description: &str) -> ObjectBuilder {
    ObjectBuilder::new()
        .schema_type(Type::Object)
        .max_properties(Some(max))
        .description(Some(description))
}

/// Schema of a value that matches one of `ways`.
pub(crate) fn any_of(ways: impl IntoIterator<Item = RefOr<Schema>>) -> AnyOfBuilder {
    ways.into_iter()
        .fold(AnyOfBuilder::new(), AnyOfBuilder::item)
}

/// Returns the schema of an object, changed by `change`.
pub(crate) fn changed_object(
    schema: RefOr<Schema>,
    change: impl FnOnce(&mut utoipa::openapi::schema::Object),
) -> RefOr<Schema> {
    match schema {
        RefOr::T(Schema::Object(mut object)) => {
            change(&mut object);
            RefOr::T(Schema::Object(object))
        }
        other => other,
    }
}

//! Description of JSON documents as data: a checker and JSON Schemas derive from the same tables.

mod check;
mod describe;
mod json_schema;
mod types;

pub(crate) use check::{Problem, check, check_fields};
pub(crate) use json_schema::{record_schema, shape_schema};
pub(crate) use types::{Field, Record, Shape, optional, required};

#[cfg(test)]
#[path = "shape_tests.rs"]
mod tests;

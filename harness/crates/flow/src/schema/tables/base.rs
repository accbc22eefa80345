//! Shapes that several tables use.

use crate::schema::shape::{Field, Record, Shape};

pub(super) const NUMBER: Shape = Shape::Number(f64::MIN, f64::MAX);
pub(super) const COUNT: Shape = Shape::Integer(1, u64::MAX);
pub(super) const TEXTS: Shape = list(&Shape::Text);
pub(super) const OBJECT: Shape = Shape::Map(&Shape::Any);

pub(super) const fn list(item: &'static Shape) -> Shape {
    Shape::List(item, 0, usize::MAX)
}

pub(super) const fn record(name: &'static str, fields: &'static [Field]) -> Record {
    Record { name, fields }
}

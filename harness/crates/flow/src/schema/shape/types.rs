//! Types of the description.

/// Maximum characters of ids and names. Messages repeat them.
pub(crate) const MAX_NAME: usize = 1_000;

/// Shape of a value.
#[derive(Debug)]
pub(crate) enum Shape {
    /// Any value.
    Any,
    /// Text, which may be empty.
    Text,
    /// Text of 1 to [`MAX_NAME`] characters.
    Name,
    /// Id of a node: namespaces and breakpoints are made of it.
    NodeId,
    /// Version of the document format; a number is read as text.
    Version,
    /// True or false.
    Bool,
    /// Integer in a range; a number such as 3.0 is read as 3.
    Integer(u64, u64),
    /// Finite number in a range.
    Number(f64, f64),
    /// Finite number above zero.
    Positive,
    /// One of some texts.
    OneOf(&'static [&'static str]),
    /// List with a minimum and a maximum of items.
    List(&'static Shape, usize, usize),
    /// Object with any keys and values of one shape.
    Map(&'static Shape),
    /// Object with known fields. Others are accepted and reported as unknown.
    Record(&'static Record),
}

/// Object with known fields.
#[derive(Debug)]
pub(crate) struct Record {
    /// Name in JSON Schemas.
    pub(crate) name: &'static str,
    /// Fields in the order of checks.
    pub(crate) fields: &'static [Field],
}

/// Field of a record.
#[derive(Debug)]
pub(crate) struct Field {
    /// Key.
    pub(crate) name: &'static str,
    /// `true` if it must be present.
    pub(crate) required: bool,
    /// Shape of its value; null stands for absence.
    pub(crate) shape: Shape,
    /// Meaning, for editors.
    pub(crate) doc: &'static str,
}

/// Creates a required field.
pub(crate) const fn required(name: &'static str, shape: Shape, doc: &'static str) -> Field {
    Field {
        name,
        required: true,
        shape,
        doc,
    }
}

/// Creates an optional field.
pub(crate) const fn optional(name: &'static str, shape: Shape, doc: &'static str) -> Field {
    Field {
        name,
        required: false,
        shape,
        doc,
    }
}

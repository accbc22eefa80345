//! `command`: a change of a thread's state.

use serde::Deserialize;
use serde_json::Value;
use utoipa::ToSchema;
use utoipa::openapi::schema::{self, ArrayBuilder, ObjectBuilder, Schema, Type};

use crate::schema::any_of;

/// Resume value, state update and target nodes.
#[derive(Debug, ToSchema)]
pub struct Command {
    /// Value that resumes an interrupt.
    #[schema(required = false)]
    pub resume: Value,
    /// Channel values, or pairs of channel and value.
    #[schema(schema_with = update, required = false)]
    pub update: Value,
    /// Nodes to go to.
    #[schema(inline)]
    pub goto: Option<Goto>,
}

/// A node with its own input.
#[derive(Debug, Deserialize, ToSchema)]
pub struct Send {
    /// Name of the node.
    pub node: String,
    /// Input of the node.
    #[serde(default)]
    pub input: Value,
}

fn update() -> Schema {
    let object =
        ObjectBuilder::new().schema_type(schema::SchemaType::from_iter([Type::Object, Type::Null]));
    let any = Schema::Object(
        ObjectBuilder::new()
            .schema_type(schema::SchemaType::AnyValue)
            .build(),
    );
    let name = Schema::Object(ObjectBuilder::new().schema_type(Type::String).build());
    let pair = ArrayBuilder::new()
        .items(schema::ArrayItems::False)
        .prefix_items([name, any])
        .min_items(Some(2))
        .max_items(Some(2));
    let pairs = ArrayBuilder::new().items(pair);
    Schema::AnyOf(
        any_of([object.into(), pairs.into()])
            .description(Some("Channel values, or pairs of channel and value."))
            .build(),
    )
}

/// Nodes to go to.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum Goto {
    /// A node.
    Node(String),
    /// A node with its own input.
    Send(Send),
    /// Several nodes.
    Many(#[schema(inline)] Vec<NodeTarget>),
}

/// A node, or a node with its own input.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum NodeTarget {
    /// A node.
    Node(String),
    /// A node with its own input.
    Send(Send),
}

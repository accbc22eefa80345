//! Nodes, ports and edges.

use super::base::{OBJECT, list, record};
use crate::schema::shape::{Record, Shape, optional, required};

/// Maximum nodes of a flow.
pub const MAX_NODES: usize = 500;
/// Maximum edges of a flow.
pub const MAX_EDGES: usize = 2_000;
/// Maximum ports on one side of a node.
const MAX_PORTS: usize = 500;

static NODE_SHAPE: Shape = Shape::Record(&NODE);
static EDGE_SHAPE: Shape = Shape::Record(&EDGE);
static PORT_SHAPE: Shape = Shape::Record(&PORT);
static PARAM_SHAPE: Shape = Shape::Record(&PARAM);
static PARAM_OPTION_SHAPE: Shape = Shape::Record(&PARAM_OPTION);

/// Ports of one side of a node.
pub(super) const PORTS: Shape = Shape::List(&PORT_SHAPE, 0, MAX_PORTS);
/// Form fields of a node.
pub(super) const PARAMS: Shape = list(&PARAM_SHAPE);

pub(super) static GRAPH: Record = record(
    "Graph",
    &[
        required("startNodeId", Shape::Name, "Node that a run starts with."),
        required("nodes", Shape::List(&NODE_SHAPE, 1, MAX_NODES), "Nodes."),
        required(
            "edges",
            Shape::List(&EDGE_SHAPE, 0, MAX_EDGES),
            "Edges in the order in which routing examines them.",
        ),
    ],
);

static NODE: Record = record(
    "Node",
    &[
        required("nodeId", Shape::NodeId, "Id, unique in the flow."),
        optional(
            "nodeType",
            Shape::OneOf(&["agent", "router", "input", "output", "loop", "parallel"]),
            "Kind in format 1.0; nodeKind takes precedence.",
        ),
        optional("nodeKind", Shape::Name, "Kind, as family.variant."),
        optional("label", Shape::Text, "Label for people."),
        optional("description", Shape::Text, "Description for people."),
        optional(
            "agentId",
            Shape::Text,
            "Agent definition that executes the node.",
        ),
        optional(
            "agentRef",
            Shape::Text,
            "Agent asset that executes the node, before agentId.",
        ),
        optional(
            "agentMdPath",
            Shape::Text,
            "Path that an editor displays; never opened.",
        ),
        optional("config", OBJECT, "Settings of the kind."),
        optional("inputPorts", PORTS, "Inputs; those of the kind if empty."),
        optional("outputPorts", PORTS, "Outputs; those of the kind if empty."),
        optional(
            "params",
            PARAMS,
            "Form fields of an editor; never read by a run.",
        ),
        optional("category", Shape::Text, "Group in a palette."),
    ],
);

static PORT: Record = record(
    "Port",
    &[
        required("portId", Shape::Name, "Id, unique per side of the node."),
        required(
            "dataType",
            Shape::OneOf(&[
                "string",
                "number",
                "boolean",
                "object",
                "array",
                "any",
                "flow",
                "prompt",
                "documents",
                "plan",
                "score",
                "artifact",
            ]),
            "Type of its values.",
        ),
        optional("label", Shape::Text, "Label for people."),
        optional(
            "required",
            Shape::Bool,
            "Whether an input needs an edge; true if absent.",
        ),
        optional("description", Shape::Text, "Description for people."),
        optional(
            "defaultValue",
            Shape::Any,
            "Value of an input that no edge sets.",
        ),
    ],
);

static PARAM: Record = record(
    "Param",
    &[
        required("paramId", Shape::Name, "Id."),
        required(
            "paramType",
            Shape::OneOf(&[
                "string",
                "number",
                "boolean",
                "select",
                "multiselect",
                "path",
                "url",
                "secret",
                "json",
                "code",
            ]),
            "Type of the form field.",
        ),
        optional("label", Shape::Text, "Label for people."),
        optional("required", Shape::Bool, "Whether the form needs a value."),
        optional("defaultValue", Shape::Any, "Value of an empty form."),
        optional(
            "options",
            list(&PARAM_OPTION_SHAPE),
            "Options of a selection.",
        ),
        optional("description", Shape::Text, "Description for people."),
        optional("validation", Shape::Any, "Rules of the form."),
        optional("group", Shape::Text, "Group of the form."),
    ],
);

static PARAM_OPTION: Record = record(
    "ParamOption",
    &[
        required("value", Shape::Any, "Value."),
        optional("label", Shape::Text, "Label for people."),
    ],
);

static EDGE: Record = record(
    "Edge",
    &[
        required("source", Shape::Name, "Node that it leaves."),
        required("target", Shape::Name, "Node that it enters."),
        optional(
            "sourceHandle",
            Shape::Text,
            "Output port or routing handle.",
        ),
        optional("targetHandle", Shape::Text, "Input port."),
        optional("label", Shape::Text, "Label for people."),
        optional("condition", Shape::Text, "Condition of the edge."),
        optional("dataEdge", Shape::Bool, "Whether it carries a value."),
    ],
);

//! The document and what stands around its graph.

use super::agent::{
    AGENTS, BUDGETS, MEMORY_POLICY, MODEL_PROFILE, SUBAGENT_POLICY, TIMEOUTS, TOOL_POLICY,
};
use super::base::{COUNT, NUMBER, OBJECT, TEXTS, list, record};
use super::graph::{GRAPH, PARAMS, PORTS};
use crate::schema::shape::{Record, Shape, optional, required};

static ADAPTER_CONFIG: Shape = OBJECT;
static POSITION_SHAPE: Shape = Shape::Record(&POSITION);
static NODE_BINDING_SHAPE: Shape = Shape::Record(&NODE_BINDING);
static NODE_SPEC_SHAPE: Shape = Shape::Record(&NODE_SPEC);

/// The shape of a flow document.
pub(crate) static FLOW_SHAPE: Shape = Shape::Record(&FLOW);

/// A flow document.
pub(crate) static FLOW: Record = record(
    "Flow",
    &[
        optional("agentsflow", Shape::Bool, "Marks the file as a flow."),
        required("meta", Shape::Record(&META), "Name and version."),
        required("agents", Shape::Record(&AGENTS), "Agents that nodes name."),
        required("graph", Shape::Record(&GRAPH), "Nodes and edges."),
        optional("runtime", Shape::Record(&RUNTIME), "Limits of a run."),
        optional(
            "layout",
            Shape::Record(&LAYOUT),
            "Drawing; never read by a run.",
        ),
        optional(
            "extensions",
            Shape::Record(&EXTENSIONS),
            "Node kinds of this flow.",
        ),
    ],
);

static META: Record = record(
    "Meta",
    &[
        required(
            "schemaVersion",
            Shape::Version,
            "Version of the document format.",
        ),
        required("name", Shape::Name, "Name of the flow."),
        optional("description", Shape::Text, "Description for people."),
        optional("version", Shape::Text, "Version that the author gives."),
        optional("tags", TEXTS, "Tags."),
        optional("author", Shape::Text, "Author."),
    ],
);

static RUNTIME: Record = record(
    "Runtime",
    &[
        optional(
            "maxConcurrency",
            Shape::Integer(1, u32::MAX as u64),
            "Nodes that run at once.",
        ),
        optional(
            "defaultTurnTimeoutMs",
            COUNT,
            "Limit of turns of agents without one.",
        ),
        optional(
            "persistEvents",
            Shape::Bool,
            "Whether events of turns are stored.",
        ),
        optional("persistMemorySnapshots", Shape::Bool, "Reserved."),
        optional(
            "globalBudget",
            Shape::Record(&BUDGETS),
            "Budgets of the whole run.",
        ),
        optional(
            "adapterConfig",
            Shape::Map(&ADAPTER_CONFIG),
            "Settings of adapters by kind.",
        ),
    ],
);

static LAYOUT: Record = record(
    "Layout",
    &[
        optional("positions", list(&POSITION_SHAPE), "Positions of nodes."),
        optional(
            "viewport",
            Shape::Record(&VIEWPORT),
            "Part of the drawing that is visible.",
        ),
        optional(
            "nodeBindings",
            list(&NODE_BINDING_SHAPE),
            "Bindings as displayed.",
        ),
    ],
);

static POSITION: Record = record(
    "Position",
    &[
        required("nodeId", Shape::Name, "Node."),
        required("x", NUMBER, "Horizontal position."),
        required("y", NUMBER, "Vertical position."),
        optional("width", NUMBER, "Width."),
        optional("height", NUMBER, "Height."),
    ],
);

static VIEWPORT: Record = record(
    "Viewport",
    &[
        optional("x", NUMBER, "Horizontal position."),
        optional("y", NUMBER, "Vertical position."),
        optional("zoom", NUMBER, "Scale."),
    ],
);

static NODE_BINDING: Record = record(
    "NodeBinding",
    &[
        required("nodeId", Shape::Name, "Node."),
        required("agentId", Shape::Name, "Agent that the editor displays."),
        optional(
            "overrides",
            Shape::Record(&OVERRIDES),
            "Reserved; never merged into a run.",
        ),
    ],
);

static OVERRIDES: Record = record(
    "Overrides",
    &[
        optional("modelProfile", Shape::Record(&MODEL_PROFILE), "Reserved."),
        optional("toolPolicy", Shape::Record(&TOOL_POLICY), "Reserved."),
        optional("memoryPolicy", Shape::Record(&MEMORY_POLICY), "Reserved."),
        optional(
            "subagentPolicy",
            Shape::Record(&SUBAGENT_POLICY),
            "Reserved.",
        ),
        optional("timeouts", Shape::Record(&TIMEOUTS), "Reserved."),
        optional("budgets", Shape::Record(&BUDGETS), "Reserved."),
    ],
);

static EXTENSIONS: Record = record(
    "Extensions",
    &[optional(
        "customNodeSpecs",
        list(&NODE_SPEC_SHAPE),
        "Shapes of node kinds; they replace built-in ones of the same kind.",
    )],
);

static NODE_SPEC: Record = record(
    "CustomNodeSpec",
    &[
        required("kind", Shape::Name, "Kind, as family.variant."),
        required("label", Shape::Name, "Label for people."),
        required("category", Shape::Name, "Group in a palette."),
        required("description", Shape::Text, "Description for people."),
        required("icon", Shape::Name, "Icon of an editor."),
        optional("inputPorts", PORTS, "Inputs."),
        optional("outputPorts", PORTS, "Outputs."),
        optional("params", PARAMS, "Form fields of an editor."),
        optional("tags", TEXTS, "Tags."),
        optional("legacyNodeType", Shape::Text, "Kind in format 1.0."),
        optional("visible", Shape::Bool, "Whether a palette displays it."),
        optional(
            "maxInstances",
            Shape::Integer(0, u64::MAX),
            "Hint of a palette.",
        ),
        optional(
            "flowDirection",
            Shape::OneOf(&["horizontal", "vertical"]),
            "Direction of the drawing.",
        ),
        optional("presetAgentRef", Shape::Text, "Hint of an editor."),
        optional("defaultAgentOutputKind", Shape::Text, "Hint of an editor."),
    ],
);

//! List of the node kinds, for palettes and editors.

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::built_in::KindDriver;
use super::settings::settings_of;
use crate::schema::shape::shape_schema;
use crate::schema::{CustomNodeSpec, Flow, Port};

/// Description of a node kind.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeKindInfo {
    /// Kind, as `family.variant`.
    pub kind: String,
    /// Label for people.
    pub label: String,
    /// Group in a palette.
    pub category: String,
    /// Description for people.
    pub description: String,
    /// Icon of an editor.
    pub icon: String,
    /// Default inputs.
    pub input_ports: Vec<Port>,
    /// Default outputs.
    pub output_ports: Vec<Port>,
    /// `true` if edges may leave by handles of any name.
    pub free_output_handles: bool,
    /// JSON Schema of `config`.
    pub config_schema: Value,
    /// `true` if a flow adds the kind.
    pub custom: bool,
    /// `true` if something executes the kind.
    pub executable: bool,
}

/// Kind, label, category, icon and description of each built-in kind.
const BUILT_IN: [[&str; 5]; 17] = [
    [
        "agent.main",
        "Main agent",
        "Agent",
        "bot",
        "A turn of the agent that leads the work.",
    ],
    [
        "agent.sub",
        "Agent",
        "Agent",
        "bot",
        "A turn of an agent that does a part of the work.",
    ],
    [
        "agent.generic",
        "Agent (other)",
        "Agent",
        "bot",
        "A turn of an agent.",
    ],
    [
        "loader.work-dir",
        "Working folder",
        "Loader",
        "folder",
        "Files of the workspace.",
    ],
    [
        "loader.local-dir",
        "Folder",
        "Loader",
        "folder",
        "Files of a folder.",
    ],
    [
        "loader.http-auth",
        "HTTP request",
        "Loader",
        "globe",
        "Response of an HTTP request.",
    ],
    [
        "loader.input",
        "Input",
        "Loader",
        "log-in",
        "Input of the run.",
    ],
    [
        "input.prompt",
        "Prompt",
        "Input",
        "text",
        "A fixed text on its prompt port.",
    ],
    [
        "control.plan-loop",
        "Plan loop",
        "Control",
        "repeat",
        "Plans, executes and evaluates in rounds.",
    ],
    [
        "control.loop",
        "Loop",
        "Control",
        "repeat",
        "Repeats its body a number of times.",
    ],
    [
        "control.condition",
        "Condition",
        "Control",
        "split",
        "Follows the first edge whose condition is true.",
    ],
    [
        "router.generic",
        "Router",
        "Control",
        "split",
        "Follows the first edge whose condition is true.",
    ],
    [
        "control.parallel",
        "Parallel",
        "Control",
        "git-fork",
        "Starts all its branches.",
    ],
    [
        "control.join",
        "Join",
        "Control",
        "git-merge",
        "Waits for all its branches.",
    ],
    [
        "control.human",
        "Human",
        "Control",
        "user",
        "Asks a person and waits for the answer.",
    ],
    [
        "control.subflow",
        "Sub-flow",
        "Control",
        "workflow",
        "Runs another flow.",
    ],
    [
        "control.finish",
        "Finish",
        "Control",
        "flag",
        "Makes the result of the run.",
    ],
];

/// Returns the built-in kinds, with those of `flow` in their place or after them.
pub fn node_kinds(flow: Option<&Flow>) -> Vec<NodeKindInfo> {
    let mut kinds: Vec<NodeKindInfo> = BUILT_IN.iter().filter_map(built_in).collect();
    let custom = flow.and_then(|flow| flow.extensions.as_ref());
    for spec in custom.iter().flat_map(|e| &e.custom_node_specs) {
        let info = custom_kind(spec);
        match kinds.iter_mut().find(|known| known.kind == info.kind) {
            Some(known) if known.custom => {}
            Some(known) => *known = info,
            None => kinds.push(info),
        }
    }
    kinds
}

fn built_in([kind, label, category, icon, description]: &[&str; 5]) -> Option<NodeKindInfo> {
    let driver = KindDriver::of(kind)?;
    Some(NodeKindInfo {
        kind: (*kind).to_owned(),
        label: (*label).to_owned(),
        category: (*category).to_owned(),
        description: (*description).to_owned(),
        icon: (*icon).to_owned(),
        input_ports: driver.inputs().to_vec(),
        output_ports: driver.outputs().to_vec(),
        free_output_handles: driver == KindDriver::Router,
        config_schema: config_schema(driver),
        custom: false,
        executable: true,
    })
}

fn custom_kind(spec: &CustomNodeSpec) -> NodeKindInfo {
    let driver = KindDriver::of(&spec.kind);
    NodeKindInfo {
        kind: spec.kind.clone(),
        label: spec.label.clone(),
        category: spec.category.clone(),
        description: spec.description.clone(),
        icon: spec.icon.clone(),
        input_ports: spec.input_ports.clone(),
        output_ports: spec.output_ports.clone(),
        free_output_handles: false,
        config_schema: driver.map_or_else(|| json!({"type": "object"}), config_schema),
        custom: true,
        executable: driver.is_some(),
    }
}

fn config_schema(driver: KindDriver) -> Value {
    let settings = settings_of(driver);
    let mut definitions = Map::new();
    let mut properties = Map::new();
    let mut required = Vec::new();
    for field in settings.own.fields.iter().chain(settings.common.fields) {
        let mut schema = shape_schema(&field.shape, &mut definitions);
        schema["description"] = json!(field.doc);
        properties.insert(field.name.to_owned(), schema);
        if field.required {
            required.push(field.name);
        }
    }
    json!({
        "type": "object", "properties": properties, "required": required, "$defs": definitions,
    })
}

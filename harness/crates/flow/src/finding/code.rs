//! Codes of findings.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::severity::Severity;

/// Declares the codes with their names on the wire, so that each is written once.
macro_rules! codes {
    ($( $(#[doc = $doc:literal])* $name:ident = $wire:literal $severity:ident, )*) => {
        /// Stable code of a finding.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        pub enum FindingCode {
            $( $(#[doc = $doc])* #[serde(rename = $wire)] $name, )*
        }

        impl FindingCode {
            /// Returns the name on the wire.
            pub fn as_str(self) -> &'static str {
                match self { $( Self::$name => $wire, )* }
            }

            /// Returns the usual severity.
            pub fn severity(self) -> Severity {
                match self { $( Self::$name => Severity::$severity, )* }
            }
        }
    };
}

codes! {
    /// The document does not have the shape of a flow, or exceeds a limit.
    SchemaInvalid = "schema_invalid" Error,
    /// `meta.schemaVersion` is not supported.
    UnsupportedSchemaVersion = "unsupported_schema_version" Error,
    /// Two nodes have one id.
    DuplicateNodeId = "duplicate_node_id" Error,
    /// Two agent definitions have one id.
    DuplicateAgentId = "duplicate_agent_id" Error,
    /// Two ports on one side of a node have one id.
    DuplicatePortId = "duplicate_port_id" Error,
    /// `graph.startNodeId` names no node.
    StartNodeNotFound = "start_node_not_found" Error,
    /// The source of an edge names no node.
    EdgeSourceNotFound = "edge_source_not_found" Error,
    /// The target of an edge names no node.
    EdgeTargetNotFound = "edge_target_not_found" Error,
    /// A handle of an edge names no port of its node.
    EdgePortNotFound = "edge_port_not_found" Error,
    /// The types of the two ports of a data edge do not fit.
    PortTypeMismatch = "port_type_mismatch" Error,
    /// An edge enters the node that it leaves.
    SelfEdge = "self_edge" Error,
    /// Two edges have the same ends and handles.
    DuplicateEdge = "duplicate_edge" Error,
    /// Two data edges enter one input port.
    MultipleDataSources = "multiple_data_sources" Error,
    /// A condition does not parse.
    InvalidCondition = "invalid_condition" Error,
    /// Nothing executes the kind of a node.
    UnknownNodeKind = "unknown_node_kind" Error,
    /// `config.turnMode` is none of the modes.
    InvalidTurnMode = "invalid_turn_mode" Error,
    /// A setting of a node is not valid.
    InvalidConfig = "invalid_config" Error,
    /// No edge leaves a handle that a plan loop needs.
    MissingHandleEdge = "missing_handle_edge" Error,
    /// An agent node names no agent.
    AgentBindingMissing = "agent_binding_missing" Error,
    /// `agentId` names no agent definition.
    AgentNotFound = "agent_not_found" Error,
    /// `agentRef` names neither an asset nor an agent definition.
    AgentRefNotFound = "agent_ref_not_found" Error,
    /// `agentRef` names an asset with errors.
    AgentRefInvalid = "agent_ref_invalid" Error,
    /// No adapter of this kind is registered.
    AdapterNotFound = "adapter_not_found" Error,
    /// The adapter implements another version of the contract.
    AdapterIncompatible = "adapter_incompatible" Error,
    /// The adapter refuses the configuration of an agent.
    AdapterConfigInvalid = "adapter_config_invalid" Error,
    /// No control edge leads to a node.
    UnreachableNode = "unreachable_node" Warning,
    /// No edge enters a required input.
    RequiredInputDisconnected = "required_input_disconnected" Warning,
    /// A data edge carries control, because its source has no control edge.
    ImplicitControlEdge = "implicit_control_edge" Warning,
    /// A data edge lacks a handle and carries no value.
    DataEdgeIncomplete = "data_edge_incomplete" Warning,
    /// A cycle contains no loop node.
    CycleWithoutLimit = "cycle_without_limit" Warning,
    /// A node names two agents.
    AmbiguousBinding = "ambiguous_binding" Warning,
    /// `agentRef` names an agent definition, because there is no asset.
    AgentRefFallback = "agent_ref_fallback" Warning,
    /// `config.turnMode` has a value of a palette.
    TurnModeAlias = "turn_mode_alias" Warning,
    /// `layout.nodeBindings` has overrides, which nothing executes.
    ReservedOverrides = "reserved_overrides" Warning,
    /// `layout.nodeBindings` names another agent than the node.
    BindingMismatch = "binding_mismatch" Warning,
    /// The document contains a secret.
    SecretInFlow = "secret_in_flow" Warning,
    /// A field is not known.
    UnknownField = "unknown_field" Warning,
}

impl fmt::Display for FindingCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

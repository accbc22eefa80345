//! Agent definitions.

use super::base::{COUNT, OBJECT, TEXTS, list, record};
use crate::schema::shape::{Record, Shape, optional, required};

/// Maximum agent definitions of a flow.
pub const MAX_AGENTS: usize = 200;

static SCOPE: Shape = Shape::OneOf(&["session", "run", "node", "agent-local", "artifacts"]);
static DELEGATION_MODE: Shape =
    Shape::OneOf(&["flow-forced", "policy-resolved", "agent-suggested"]);
static AGENT_DEF_SHAPE: Shape = Shape::Record(&AGENT_DEF);

pub(super) static AGENTS: Record = record(
    "Agents",
    &[required(
        "agentDefs",
        Shape::List(&AGENT_DEF_SHAPE, 0, MAX_AGENTS),
        "Definitions, each with a unique agentId.",
    )],
);

static AGENT_DEF: Record = record(
    "AgentDef",
    &[
        required("agentId", Shape::Name, "Id, unique in the flow."),
        required(
            "adapterKind",
            Shape::Name,
            "Kind of the adapter that executes its turns.",
        ),
        optional(
            "modelProfile",
            Shape::Record(&MODEL_PROFILE),
            "Model and system prompt.",
        ),
        optional("toolPolicy", Shape::Record(&TOOL_POLICY), "Tools."),
        optional(
            "memoryPolicy",
            Shape::Record(&MEMORY_POLICY),
            "Earlier messages it receives.",
        ),
        optional(
            "subagentPolicy",
            Shape::Record(&SUBAGENT_POLICY),
            "Delegation.",
        ),
        optional(
            "timeouts",
            Shape::Record(&TIMEOUTS),
            "Time limits in milliseconds.",
        ),
        optional(
            "budgets",
            Shape::Record(&BUDGETS),
            "Budgets of the agent per run.",
        ),
        optional("adapterConfig", OBJECT, "Settings of the adapter."),
        optional(
            "outputKind",
            Shape::OneOf(&[
                "text", "plan", "score", "code", "judge", "review", "artifact", "decision",
            ]),
            "Kind of the output.",
        ),
    ],
);

pub(super) static MODEL_PROFILE: Record = record(
    "ModelProfile",
    &[
        optional("model", Shape::Text, "Name of the model."),
        optional("systemPrompt", Shape::Text, "System prompt."),
        optional("temperature", Shape::Number(0.0, 2.0), "Temperature."),
        optional("maxTokens", COUNT, "Maximum tokens of an answer."),
    ],
);

pub(super) static TOOL_POLICY: Record = record(
    "ToolPolicy",
    &[
        optional(
            "allowedCapabilities",
            TEXTS,
            "Allowed capabilities or tools; all if empty.",
        ),
        optional("blockedTools", TEXTS, "Tools that the agent may not call."),
        optional(
            "approvalRequirement",
            Shape::OneOf(&["never", "always", "destructive_only"]),
            "Calls that need approval.",
        ),
    ],
);

pub(super) static MEMORY_POLICY: Record = record(
    "MemoryPolicy",
    &[
        optional(
            "visibleScopes",
            list(&SCOPE),
            "Scopes that the agent sees; run if absent.",
        ),
        optional("writableScopes", list(&SCOPE), "Reserved."),
        optional("maxItems", COUNT, "Maximum messages."),
        optional("maxBytes", COUNT, "Maximum bytes of text."),
    ],
);

pub(super) static SUBAGENT_POLICY: Record = record(
    "SubagentPolicy",
    &[
        optional(
            "allowedAgents",
            TEXTS,
            "Agents that may be asked for; any if empty.",
        ),
        optional(
            "switchModes",
            list(&DELEGATION_MODE),
            "Modes of delegation.",
        ),
        optional(
            "returnStrategy",
            Shape::OneOf(&["summary-only", "full-trace", "structured-output"]),
            "Part of the result that is returned.",
        ),
        optional(
            "maxDelegations",
            Shape::Integer(0, u64::MAX),
            "Maximum delegations per run.",
        ),
    ],
);

pub(super) static TIMEOUTS: Record = record(
    "Timeouts",
    &[
        optional("turnMs", COUNT, "Limit of a turn."),
        optional("sessionMs", COUNT, "Age at which a session is replaced."),
    ],
);

/// Budgets of an agent, a node or a run.
pub(crate) static BUDGETS: Record = record(
    "Budgets",
    &[
        optional("maxTokens", COUNT, "Input and output tokens."),
        optional("maxCostUsd", Shape::Positive, "Cost in US dollars."),
        optional("maxSteps", COUNT, "Turns."),
        optional("maxWallClockMs", COUNT, "Milliseconds."),
    ],
);

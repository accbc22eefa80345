//! What a run's options mean to the lead agent.

use serde_json::{Map, Value};

/// The options that call for an agent of its own.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct LeadOptions {
    /// The model entry asked for.
    pub(super) model: Option<String>,
    /// Whether the model shall think, where it can.
    pub(super) thinking: bool,
    /// How hard.
    pub(super) reasoning_effort: Option<String>,
    /// Whether the agent plans with a todo list.
    pub(super) plan_mode: bool,
    /// Whether somebody is there to answer questions.
    pub(super) interactive: bool,
}

impl LeadOptions {
    pub(super) fn read(options: &Map<String, Value>) -> Self {
        let text = |key: &str| options.get(key).and_then(Value::as_str).map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned);
        let flag = |key: &str| options.get(key).and_then(Value::as_bool);
        Self {
            model: text("model_name").or_else(|| text("model")),
            thinking: flag("thinking_enabled").unwrap_or(true),
            reasoning_effort: text("reasoning_effort"),
            plan_mode: flag("is_plan_mode").unwrap_or(false),
            interactive: !flag("non_interactive").unwrap_or(false),
        }
    }
}

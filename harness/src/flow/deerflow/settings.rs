//! Settings of an agent of the kind `deerflow`. Pure.

use serde_json::{Map, Value, json};

use super::agents::AgentTarget;
use super::restriction::restriction_of;
use crate::agents::custom::AGENT_NAME;
use crate::agents::tool_restriction::TOOL_RESTRICTION;
use crate::flow::adapter::{AgentInvocation, ConfigFinding};
use crate::flow::compiled::EffectiveAgent;
use crate::runtime::agent::RunContext;

/// Maximum number of super-steps that a flow may allow.
const MAX_RECURSION_LIMIT: u64 = 1_000;
/// Maximum number of tool groups.
const MAX_TOOL_GROUPS: usize = 64;
/// Switches of the configuration, and the run options that they set.
const SWITCHES: [(&str, &str); 3] = [
    ("thinkingEnabled", "thinking_enabled"),
    ("isPlanMode", "is_plan_mode"),
    ("subagentEnabled", "subagent_enabled"),
];
/// Options of the flow's run that do not apply to the agents of its nodes.
const OWN_OPTIONS: [&str; 10] = [
    AGENT_NAME,
    TOOL_RESTRICTION,
    "dry_run",
    "is_bootstrap",
    "is_plan_mode",
    "model",
    "model_name",
    "subagent_enabled",
    "thinking_enabled",
    "tool_groups",
];

/// Settings of an agent.
#[derive(Debug, Clone)]
pub(super) struct Settings {
    pub(super) target: AgentTarget,
    /// Run options that the configuration sets.
    options: Map<String, Value>,
    model: Option<String>,
    /// Maximum number of super-steps of a turn.
    pub(super) max_steps: Option<u64>,
}

impl Settings {
    /// Reads the settings of an agent. Those of the agent precede those of the flow.
    ///
    /// # Errors
    /// All problems of the configuration.
    pub(super) fn read(
        flow_config: &Map<String, Value>,
        agent: &EffectiveAgent,
    ) -> Result<Self, Vec<ConfigFinding>> {
        let mut reader = Reader {
            own: &agent.adapter_config,
            flow: flow_config,
            findings: Vec::new(),
        };
        let (name, kind) = (reader.text("agentName"), reader.text("subagentType"));
        if name.is_some() && kind.is_some() {
            reader.report(
                "conflicting_agents",
                "subagentType",
                "agentName and subagentType exclude each other; remove one",
            );
        }
        let mut options = Map::new();
        if let Some(name) = name {
            options.insert(AGENT_NAME.to_owned(), json!(name));
        }
        for (key, option) in SWITCHES {
            if let Some(switch) = reader.switch(key) {
                options.insert(option.to_owned(), json!(switch));
            }
        }
        if let Some(groups) = reader.tool_groups() {
            options.insert("tool_groups".to_owned(), groups);
        }
        options.insert(TOOL_RESTRICTION.to_owned(), json!(restriction_of(agent)));
        let (model, limit) = (reader.text("modelName"), reader.recursion_limit());
        if !reader.findings.is_empty() {
            return Err(reader.findings);
        }
        Ok(Self {
            target: kind.map_or(AgentTarget::Lead, AgentTarget::Subagent),
            options,
            model,
            max_steps: limit,
        })
    }

    /// Returns the run options of a turn: those of the flow's run, except its ids and its choice of
    /// an agent, with those of the configuration. The model of the node precedes `modelName`, which
    /// precedes the model of the agent.
    pub(super) fn options(
        &self,
        outer: &Map<String, Value>,
        turn: &AgentInvocation,
    ) -> Map<String, Value> {
        let mut options = outer.clone();
        let not_inherited = OWN_OPTIONS.iter().chain(&RunContext::ID_OPTIONS);
        for key in not_inherited {
            options.shift_remove(*key);
        }
        options.extend(self.options.clone());
        let of_agent = &turn.agent.model_profile.model;
        let of_node = turn.model.as_ref().filter(|_| turn.model != *of_agent);
        let model = of_node.or(self.model.as_ref()).or(of_agent.as_ref());
        if let Some(model) = model {
            options.insert("model_name".to_owned(), json!(model));
        }
        options
    }
}

/// Reads the keys of a configuration and collects its problems.
#[derive(Debug)]
struct Reader<'a> {
    own: &'a Map<String, Value>,
    flow: &'a Map<String, Value>,
    findings: Vec<ConfigFinding>,
}

impl<'a> Reader<'a> {
    fn get(&self, key: &str) -> Option<&'a Value> {
        let value = self.own.get(key).or_else(|| self.flow.get(key));
        value.filter(|value| !value.is_null())
    }

    fn report(&mut self, code: &str, key: &str, message: impl Into<String>) {
        self.findings.push(ConfigFinding {
            code: code.to_owned(),
            key: key.to_owned(),
            message: message.into(),
        });
    }

    fn invalid(&mut self, key: &str, expected: &str) {
        self.report("invalid_value", key, format!("{key} must be {expected}"));
    }

    /// Returns a text; a blank one is absent.
    fn text(&mut self, key: &str) -> Option<String> {
        let value = self.get(key)?;
        let Some(text) = value.as_str() else {
            self.invalid(key, "a text");
            return None;
        };
        Some(text.trim().to_owned()).filter(|text| !text.is_empty())
    }

    fn switch(&mut self, key: &str) -> Option<bool> {
        let value = self.get(key)?;
        if !value.is_boolean() {
            self.invalid(key, "true or false");
        }
        value.as_bool()
    }

    fn recursion_limit(&mut self) -> Option<u64> {
        let key = "recursionLimit";
        let limit = self.get(key)?.as_u64();
        let limit = limit.filter(|limit| (1..=MAX_RECURSION_LIMIT).contains(limit));
        if limit.is_none() {
            self.invalid(key, &format!("a number from 1 to {MAX_RECURSION_LIMIT}"));
        }
        limit
    }

    fn tool_groups(&mut self) -> Option<Value> {
        let key = "toolGroups";
        let value = self.get(key)?;
        let is_valid = value.as_array().is_some_and(|groups| {
            groups.len() <= MAX_TOOL_GROUPS && groups.iter().all(Value::is_string)
        });
        if !is_valid {
            self.invalid(key, &format!("a list of at most {MAX_TOOL_GROUPS} texts"));
        }
        Some(value.clone())
    }
}

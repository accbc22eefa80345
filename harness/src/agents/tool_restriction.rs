//! Restriction of an agent's tools by the options of a run.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub(crate) use crate::middlewares::guardrail::ApprovalRule;
use crate::tools::builtins::{ASK_CLARIFICATION, DESCRIBE_SKILL, TOOL_SEARCH};

/// Run option that holds a [`ToolRestriction`].
pub(crate) const TOOL_RESTRICTION: &str = "tool_restriction";
/// Tools that lists of allowed tools do not name: they ask the user and describe other tools.
const ALWAYS_ALLOWED: [&str; 3] = [ASK_CLARIFICATION, DESCRIBE_SKILL, TOOL_SEARCH];

/// Tools that an agent may use. A restriction adds none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ToolRestriction {
    /// Lists of tools and groups. A tool is allowed if each list names it or its group.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) allowed: Vec<Vec<String>>,
    /// Tools and groups that are removed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) blocked: Vec<String>,
    /// Calls that need approval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) approval: Option<ApprovalRule>,
}

impl ToolRestriction {
    /// Reads the restriction of a run. One that cannot be read allows no tools.
    pub(crate) fn read(options: &Map<String, Value>) -> Self {
        let Some(value) = options
            .get(TOOL_RESTRICTION)
            .filter(|value| !value.is_null())
        else {
            return Self::default();
        };
        Self::deserialize(value).unwrap_or_else(|error| {
            tracing::warn!(%error, "the restriction of tools is not valid, the agent gets no tools");
            Self {
                allowed: vec![Vec::new()],
                ..Self::default()
            }
        })
    }

    /// Reports whether the agent may use a tool of this group.
    pub(crate) fn allows(&self, tool: &str, group: Option<&str>) -> bool {
        let names = |list: &[String]| {
            let matches = |name: &String| name == tool || Some(name.as_str()) == group;
            list.iter().any(matches)
        };
        let is_allowed =
            ALWAYS_ALLOWED.contains(&tool) || self.allowed.iter().all(|list| names(list));
        is_allowed && !names(&self.blocked)
    }

    /// Returns the names of all lists, each once.
    pub(crate) fn names(&self) -> Vec<&str> {
        let all = self.allowed.iter().flatten().chain(&self.blocked);
        let mut names: Vec<&str> = all.map(String::as_str).collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn restriction(value: Value) -> ToolRestriction {
        ToolRestriction::read(&Map::from_iter([(TOOL_RESTRICTION.to_owned(), value)]))
    }

    #[test]
    fn tool_needs_its_name_or_group_in_each_list() {
        let both = restriction(json!({"allowed": [["files", "bash"], ["ls", "bash"]]}));
        assert!(both.allows("ls", Some("files")) && both.allows("bash", None));
        assert!(!both.allows("write_file", Some("files")) && !both.allows("ls", None));
        assert!(both.allows("ask_clarification", None));
    }

    #[test]
    fn blocked_names_and_groups_are_removed() {
        let blocked = restriction(json!({"blocked": ["files", "ask_clarification"]}));
        assert!(!blocked.allows("ls", Some("files")));
        assert!(!blocked.allows("ask_clarification", None));
        assert!(blocked.allows("bash", None));
    }

    #[test]
    fn unreadable_restriction_allows_no_tools() {
        for value in [json!("all"), json!({"allowed": "ls"}), json!({"allow": []})] {
            assert!(!restriction(value).allows("ls", None));
        }
        assert!(restriction(Value::Null).allows("ls", None));
    }
}

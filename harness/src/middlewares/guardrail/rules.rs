//! Rules about tools, their arguments and who asks; the first that fits decides.
//!
//! ```yaml
//! default: allow
//! rules:
//!   - {tools: [bash], when: {command: "*rm -rf*"}, action: deny, reason: nothing is deleted here}
//!   - {tools: ["mcp_*"], users: [ann], action: allow}
//! ```

use std::borrow::Cow;
use std::collections::BTreeMap;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::Value;

use super::policy::{Decision, GuardrailPolicy, GuardrailRequest, PolicyError};
use crate::sandbox::VirtualPath;

/// Why a rule without a code denies.
const DENIED_BY_RULE: &str = "rule.denied";
/// Why a call is denied that no rule fits.
const DENIED_BY_DEFAULT: &str = "rule.default_deny";

/// What a rule says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// The call may be made.
    #[default]
    Allow,
    /// It may not.
    Deny,
}

/// One rule. What it does not name fits everything; in patterns `*` stands for any text.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// The tools, as patterns.
    #[serde(default)]
    pub tools: Vec<String>,
    /// The users, as patterns.
    #[serde(default)]
    pub users: Vec<String>,
    /// Arguments and the patterns that their text fits; all of them.
    #[serde(default)]
    pub when: BTreeMap<String, String>,
    /// What follows.
    pub action: Action,
    /// Why, for programs.
    #[serde(default)]
    pub code: Option<String>,
    /// Why, for the model.
    #[serde(default)]
    pub reason: Option<String>,
}

/// Rules in order.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RulePolicy {
    /// What holds where no rule fits.
    #[serde(default)]
    pub default: Action,
    /// The rules.
    #[serde(default)]
    pub rules: Vec<Rule>,
}

impl Rule {
    fn fits(&self, request: &GuardrailRequest<'_>) -> bool {
        let any = |patterns: &[String], text: &str| patterns.is_empty() || patterns.iter().any(|pattern| matches(pattern, text));
        any(&self.tools, request.tool_name)
            && any(&self.users, &request.actor.user_id)
            && self.when.iter().all(|(argument, pattern)| request.tool_input.get(argument).is_some_and(|value| self.reads(pattern, value)))
    }

    /// Whether the pattern fits an argument. A path has many spellings: none slips past a denial, and what is allowed is the
    /// path itself.
    fn reads(&self, pattern: &str, value: &Value) -> bool {
        let text = value.as_str().map_or_else(|| Cow::Owned(value.to_string()), Cow::Borrowed);
        let as_spelled = matches(pattern, &text);
        match VirtualPath::parse(&text) {
            Ok(path) => matches(pattern, &path.to_string()) || (as_spelled && self.action == Action::Deny),
            Err(_) => as_spelled,
        }
    }
}

#[async_trait]
impl GuardrailPolicy for RulePolicy {
    async fn evaluate(&self, request: &GuardrailRequest<'_>) -> Result<Decision, PolicyError> {
        let fitting = self.rules.iter().enumerate().find(|(_, rule)| rule.fits(request));
        Ok(match fitting {
            Some((_, Rule { action: Action::Allow, .. })) => Decision::allow(),
            Some((at, rule)) => {
                let code = rule.code.as_deref().unwrap_or(DENIED_BY_RULE);
                let reason = rule.reason.as_deref().unwrap_or("a rule denies it");
                Decision { policy_id: Some(format!("rules[{at}]")), ..Decision::deny(code, reason) }
            }
            None if self.default == Action::Allow => Decision::allow(),
            None => Decision::deny(DENIED_BY_DEFAULT, "no rule allows it"),
        })
    }
}

/// Whether `text` fits a pattern in which `*` stands for any text.
fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stand_for_any_text() {
        for (pattern, text, fits) in [
            ("bash", "bash", true),
            ("bash", "bash2", false),
            ("*", "", true),
            ("mcp_*", "mcp_x", true),
            ("*rm -rf*", "sudo rm -rf /", true),
            ("a*b*c", "a1b2c", true),
            ("a*b*c", "acb", false),
            ("ab*ba", "aba", false),
            ("", "x", false),
        ] {
            assert_eq!(matches(pattern, text), fits, "{pattern} {text}");
        }
    }

    #[test]
    fn a_path_is_the_same_however_it_is_spelled() {
        let rule = |action| Rule { tools: vec![], users: vec![], when: BTreeMap::new(), action, code: None, reason: None };
        for (pattern, spelled, denied, allowed) in [
            ("/mnt/user-data/outputs/*", "/mnt/user-data/outputs/a", true, true),
            ("/mnt/user-data/outputs/*", "/mnt//user-data/./outputs/a", true, true),
            ("*/./*", "/mnt/user-data/./outputs/a", true, false),
            ("/mnt/user-data/outputs/*", "/mnt/user-data/workspace/a", false, false),
            ("/etc/*", "/etc/./passwd", true, true),
        ] {
            let reads = |action| rule(action).reads(pattern, &Value::from(spelled));
            assert_eq!((reads(Action::Deny), reads(Action::Allow)), (denied, allowed), "{pattern} {spelled}");
        }
    }
}

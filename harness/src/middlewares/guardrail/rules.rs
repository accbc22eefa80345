//! Policy of rules about tools, their arguments and users; the first matching rule decides.
//!
//! ```yaml
//! default: allow
//! rules:
//!   - {tools: [bash], when: {command: "*rm -rf*"}, action: deny, reason: nothing is deleted here}
//!   - {tools: ["mcp_*"], users: [ann], action: allow}
//!   - {tools: ["mcp_*"], action: ask}
//! ```

use std::borrow::Cow;
use std::collections::BTreeMap;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::Value;

use super::policy::{Decision, GuardrailPolicy, GuardrailRequest, PolicyError, Verdict};

/// Default reason code of a rule that denies.
const DENIED_BY_RULE: &str = "rule.denied";
/// Default reason code of a rule that requires approval.
const ASKED_BY_RULE: &str = "rule.ask";
/// Reason code of a call that no rule matches.
const DENIED_BY_DEFAULT: &str = "rule.default_deny";

/// Rule of a policy. An omitted condition matches any call; in patterns `*` matches any text.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Patterns of tool names.
    #[serde(default)]
    pub tools: Vec<String>,
    /// Patterns of user ids.
    #[serde(default)]
    pub users: Vec<String>,
    /// Patterns by argument name; all of them must match. A rule that denies or requires approval
    /// matches if one text of the argument matches, a rule that allows only if all texts match.
    #[serde(default)]
    pub when: BTreeMap<String, String>,
    /// Verdict of the rule.
    pub action: Verdict,
    /// Reason code, for programs.
    #[serde(default)]
    pub code: Option<String>,
    /// Reason text, for the model.
    #[serde(default)]
    pub reason: Option<String>,
}

/// Ordered rules.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RulePolicy {
    /// Verdict if no rule matches.
    #[serde(default)]
    pub default: Verdict,
    /// Rules in order.
    #[serde(default)]
    pub rules: Vec<Rule>,
}

impl Rule {
    fn matches_request(&self, request: &GuardrailRequest<'_>) -> bool {
        let any = |patterns: &[String], text: &str| {
            patterns.is_empty() || patterns.iter().any(|pattern| matches(pattern, text))
        };
        any(&self.tools, request.tool_name)
            && any(&self.users, &request.actor.user_id)
            && self.when.iter().all(|(argument, pattern)| {
                request
                    .tool_input
                    .get(argument)
                    .is_some_and(|value| self.matches_argument(pattern, value))
            })
    }

    /// Reports whether the pattern matches an argument. For a denial or an approval request, one
    /// text in any spelling is enough; for a permission, all texts must match in their normalised
    /// form.
    fn matches_argument(&self, pattern: &str, value: &Value) -> bool {
        let mut texts = Vec::new();
        add_texts(value, &mut texts);
        match self.action {
            Verdict::Deny | Verdict::Ask => {
                let whole = (!value.is_string()).then(|| value.to_string());
                texts.iter().any(|text| {
                    matches(pattern, text)
                        || plain_path(text).is_some_and(|path| matches(pattern, &path))
                }) || whole.is_some_and(|text| matches(pattern, &text))
            }
            Verdict::Allow if texts.is_empty() => matches(pattern, &value.to_string()),
            Verdict::Allow => texts.iter().all(|text| {
                !has_parent_segment(text)
                    && matches(pattern, plain_path(text).as_deref().unwrap_or(text))
            }),
        }
    }
}

/// Collects all texts of a value, including numbers, and keys that have the form of a path.
fn add_texts<'a>(value: &'a Value, texts: &mut Vec<Cow<'a, str>>) {
    match value {
        Value::String(text) => texts.push(Cow::Borrowed(text)),
        Value::Array(values) => values.iter().for_each(|value| add_texts(value, texts)),
        Value::Object(fields) => {
            for (name, value) in fields {
                texts.extend(
                    plain_path(name)
                        .is_some()
                        .then_some(Cow::Borrowed(name.as_str())),
                );
                add_texts(value, texts);
            }
        }
        other => texts.push(Cow::Owned(other.to_string())),
    }
}

/// Reports whether a path has a `..` segment: its target depends on symbolic links on the disk.
fn has_parent_segment(text: &str) -> bool {
    text.split('/').any(|name| name.trim() == "..")
}

/// Returns the normalised form of a text that has the form of an absolute path.
fn plain_path(text: &str) -> Option<String> {
    let text = text.trim();
    let mut names = Vec::new();
    for name in text.strip_prefix('/')?.split('/') {
        match name {
            "" | "." => {}
            ".." => {
                names.pop();
            }
            name => names.push(name),
        }
    }
    Some(format!("/{}", names.join("/")))
}

#[async_trait]
impl GuardrailPolicy for RulePolicy {
    async fn evaluate(&self, request: &GuardrailRequest<'_>) -> Result<Decision, PolicyError> {
        let fitting = self
            .rules
            .iter()
            .enumerate()
            .find(|(_, rule)| rule.matches_request(request));
        let (verdict, code, reason) = match fitting {
            Some((_, rule)) => (rule.action, rule.code.as_deref(), rule.reason.as_deref()),
            None => (self.default, None, None),
        };
        let (usual_code, usual_reason) = match (verdict, fitting) {
            (Verdict::Allow, _) => return Ok(Decision::allow()),
            (Verdict::Ask, _) => (ASKED_BY_RULE, "a person has to allow it"),
            (Verdict::Deny, Some(_)) => (DENIED_BY_RULE, "a rule denies it"),
            (Verdict::Deny, None) => (DENIED_BY_DEFAULT, "no rule allows it"),
        };
        let policy_id = fitting.map(|(at, _)| format!("rules[{at}]"));
        Ok(Decision {
            verdict,
            policy_id,
            ..Decision::deny(code.unwrap_or(usual_code), reason.unwrap_or(usual_reason))
        })
    }
}

/// Reports whether `text` matches a pattern in which `*` matches any text.
fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else {
        return false;
    };
    let Some(last) = parts.next_back() else {
        return rest.is_empty();
    };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
#[path = "rules_tests.rs"]
mod tests;

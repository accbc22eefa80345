//! Rules about tools, their arguments and who asks; the first that fits decides.
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

/// Why a rule without a code denies.
const DENIED_BY_RULE: &str = "rule.denied";
/// Why a rule without a code asks first.
const ASKED_BY_RULE: &str = "rule.ask";
/// Why a call is denied that no rule fits.
const DENIED_BY_DEFAULT: &str = "rule.default_deny";

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
    /// Arguments and the patterns that their texts fit; all of them. Rules that deny or ask need one text of an
    /// argument to fit, a permission all.
    #[serde(default)]
    pub when: BTreeMap<String, String>,
    /// What follows.
    pub action: Verdict,
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
    pub default: Verdict,
    /// The rules.
    #[serde(default)]
    pub rules: Vec<Rule>,
}

impl Rule {
    fn fits(&self, request: &GuardrailRequest<'_>) -> bool {
        let any = |patterns: &[String], text: &str| {
            patterns.is_empty() || patterns.iter().any(|pattern| matches(pattern, text))
        };
        any(&self.tools, request.tool_name)
            && any(&self.users, &request.actor.user_id)
            && self.when.iter().all(|(argument, pattern)| {
                request
                    .tool_input
                    .get(argument)
                    .is_some_and(|value| self.reads(pattern, value))
            })
    }

    /// Whether the pattern fits an argument: a denial or a question when any text in it fits in any spelling, a permission
    /// when all texts fit as what they come to.
    fn reads(&self, pattern: &str, value: &Value) -> bool {
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
                !climbs(text) && matches(pattern, plain_path(text).as_deref().unwrap_or(text))
            }),
        }
    }
}

/// Every text in a value, numbers and names that look like paths among them.
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

/// Whether a name on the way is `..`: where it leads depends on links on the disk.
fn climbs(text: &str) -> bool {
    text.split('/').any(|name| name.trim() == "..")
}

/// What looks like an absolute path, in its one plain spelling.
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
            .find(|(_, rule)| rule.fits(request));
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

/// Whether `text` fits a pattern in which `*` stands for any text.
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
mod tests {
    use serde_json::json;

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
        let rule = |action| Rule {
            tools: vec![],
            users: vec![],
            when: BTreeMap::new(),
            action,
            code: None,
            reason: None,
        };
        for (pattern, spelled, denied, allowed) in [
            (
                "/mnt/user-data/outputs/*",
                "/mnt/user-data/outputs/a",
                true,
                true,
            ),
            (
                "/mnt/user-data/outputs/*",
                "/mnt//user-data/./outputs/a",
                true,
                true,
            ),
            ("*/./*", "/mnt/user-data/./outputs/a", true, false),
            (
                "/mnt/user-data/outputs/*",
                "/mnt/user-data/workspace/a",
                false,
                false,
            ),
            ("/etc/*", "/etc/./passwd", true, true),
            ("/etc/*", "//etc/passwd", true, true),
            ("/etc/*", "/srv/../etc/passwd", true, false),
            ("/etc/*", " /../etc/passwd", true, false),
            ("/srv/*", "/srv/../etc/passwd", true, false),
            (
                "/mnt/user-data/outputs/*",
                "/mnt/user-data/outputs/../workspace/a",
                true,
                false,
            ),
            ("src/*", "src/../../etc/passwd", true, false),
            ("git log*", "git log a..b", true, true),
        ] {
            let reads = |action| rule(action).reads(pattern, &Value::from(spelled));
            assert_eq!(
                (reads(Verdict::Deny), reads(Verdict::Allow)),
                (denied, allowed),
                "{pattern} {spelled}"
            );
        }
    }

    #[test]
    fn every_text_of_an_argument_counts() {
        let rule = |action| Rule {
            tools: vec![],
            users: vec![],
            when: BTreeMap::new(),
            action,
            code: None,
            reason: None,
        };
        for (pattern, value, denied, allowed) in [
            ("/etc/*", json!(["/srv/a", "//etc/passwd"]), true, false),
            (
                "/etc/*",
                json!({"files": [{"path": "/etc/./passwd"}]}),
                true,
                true,
            ),
            ("/srv/*", json!({"/etc/passwd": "/srv/a"}), true, false),
            ("/srv/*", json!(["/srv/a", "/srv/b"]), true, true),
            ("/srv/*", json!([]), false, false),
            ("7", json!(7), true, true),
            ("[[]]*", json!([]), false, false),
            ("[]", json!([]), true, true),
            ("*", json!({}), true, true),
        ] {
            let reads = |action| rule(action).reads(pattern, &value);
            assert_eq!(
                (reads(Verdict::Deny), reads(Verdict::Allow)),
                (denied, allowed),
                "{pattern} {value}"
            );
        }
    }
}

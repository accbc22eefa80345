//! Finds secrets in a document without showing them.

use serde_json::{Map, Value};

use crate::finding::{Collector, Finding, FindingCode, push_segment};
use crate::schema::name_ends;

/// Ends of keys that hold secrets, in lower case without separators.
const SECRET_KEYS: [&str; 10] = [
    "apikey",
    "token",
    "secret",
    "secretkey",
    "password",
    "passwd",
    "privatekey",
    "accesskey",
    "authorization",
    "credentials",
];
/// Beginnings of the secrets of well-known services.
const SECRET_PREFIXES: [&str; 12] = [
    "sk-",
    "ghp_",
    "gho_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "AKIA",
    "AIza",
    "hf_",
    "npm_",
    "eyJhbGciOi",
];
/// Minimum characters of a secret with such a beginning.
const MIN_TOKEN: usize = 20;

/// Reports the places of texts that look like secrets.
pub(crate) fn check_secrets(document: &Value, findings: &mut Collector) {
    let mut search = Search {
        document,
        path: String::new(),
        findings,
    };
    search.value(document, false);
}

struct Search<'v, 'c> {
    document: &'v Value,
    path: String,
    findings: &'c mut Collector,
}

impl Search<'_, '_> {
    /// Searches a value; `is_named` is true if a key around it names a secret.
    fn value(&mut self, value: &Value, is_named: bool) {
        match value {
            Value::String(text) if is_secret(text) || is_named && is_literal(text) => self.report(),
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.below(&index.to_string(), |search| search.value(item, is_named));
                }
            }
            // `{"apiKey": {"secret": "name"}}` names a secret that is stored outside.
            Value::Object(fields) if is_named && is_reference(fields) => {}
            Value::Object(fields) => {
                for (key, value) in fields {
                    let is_named = is_named || is_secret_key(key);
                    self.below(key, |search| search.value(value, is_named));
                }
            }
            _ => {}
        }
    }

    fn below(&mut self, segment: &str, step: impl FnOnce(&mut Self)) {
        let length = self.path.len();
        push_segment(&mut self.path, segment);
        step(self);
        self.path.truncate(length);
    }

    fn report(&mut self) {
        let key = self.path.rsplit('/').next().unwrap_or_default().to_owned();
        let message = format!(
            "`{key}` looks like a secret; store it outside of the flow and name it with \
             {{\"secret\": \"name\"}}, or set it in the configuration of the adapter"
        );
        let mut finding = Finding::new(FindingCode::SecretInFlow, message)
            .at(&self.path)
            .field(key);
        name_ends(&mut finding, self.document);
        self.findings.add(finding);
    }
}

fn is_secret_key(key: &str) -> bool {
    let plain: String = key
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|c| c.to_ascii_lowercase())
        .collect();
    let one = plain.strip_suffix('s').unwrap_or(&plain);
    SECRET_KEYS
        .iter()
        .any(|end| plain.ends_with(end) || one.ends_with(end))
}

fn is_reference(fields: &Map<String, Value>) -> bool {
    fields.len() == 1 && fields.get("secret").is_some_and(Value::is_string)
}

/// Returns `false` for blank texts and for names of variables, such as `$KEY` and `{{ key }}`.
fn is_literal(text: &str) -> bool {
    let text = text.trim();
    !text.is_empty() && !text.starts_with('$') && !text.starts_with("{{")
}

fn is_secret(text: &str) -> bool {
    if text.contains("-----BEGIN ") && text.contains("PRIVATE KEY-----") {
        return true;
    }
    if has_password(text) {
        return true;
    }
    let is_end = |c: char| !(c.is_ascii_alphanumeric() || "-_.".contains(c));
    text.split(is_end).any(|word| {
        word.len() >= MIN_TOKEN
            && SECRET_PREFIXES
                .iter()
                .any(|prefix| word.starts_with(prefix))
    })
}

/// Returns `true` for an address with a user and a password.
fn has_password(text: &str) -> bool {
    text.split_once("://").is_some_and(|(_, rest)| {
        let authority = rest
            .split(['/', '?', '#', ' ', '\n'])
            .next()
            .unwrap_or_default();
        authority
            .rsplit_once('@')
            .and_then(|(user, _)| user.split_once(':'))
            .is_some_and(|(_, password)| is_literal(password))
    })
}

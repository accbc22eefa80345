//! Validation issue of a request.

use serde_json::{Value, json};

/// Maximum length of an echoed input value, in bytes of JSON.
const INPUT_ECHO_LIMIT: usize = 2_000;

/// Maximum length of a name or id of the request in an error text, in characters.
const TEXT_ECHO_LIMIT: usize = 80;

/// Shortens a text of the request for an error text.
pub(crate) fn truncated(text: &str) -> String {
    text.chars().take(TEXT_ECHO_LIMIT).collect()
}

/// One validation issue in a request's body, query, path or header.
#[derive(Debug, Clone, PartialEq)]
pub struct Issue {
    /// Machine-readable kind, such as `missing` or `literal_error`.
    pub kind: &'static str,
    /// Location: `body`, `query`, `path` or `header`, then keys and indices.
    pub loc: Vec<Value>,
    /// Violated rule, for users.
    pub msg: String,
    /// Received value.
    pub input: Value,
    /// Parameters of the rule.
    pub ctx: Option<Value>,
}

impl Issue {
    /// An issue caused by the value `input`.
    pub fn new(kind: &'static str, loc: Vec<Value>, msg: impl Into<String>, input: &Value) -> Self {
        let text = input.to_string();
        let input = if text.len() > INPUT_ECHO_LIMIT {
            Value::String(text.chars().take(200).chain("...".chars()).collect())
        } else {
            input.clone()
        };
        Self {
            kind,
            loc,
            msg: msg.into(),
            input,
            ctx: None,
        }
    }

    /// Adds the parameters of the rule.
    #[must_use]
    pub fn ctx(mut self, ctx: Value) -> Self {
        self.ctx = Some(ctx);
        self
    }

    /// Removes the received value.
    pub(crate) fn forget_input(&mut self) {
        self.input = Value::Null;
    }

    pub(super) fn list_item(&self) -> Value {
        let mut item =
            json!({ "type": self.kind, "loc": self.loc, "msg": self.msg, "input": self.input });
        if let (Some(ctx), Some(fields)) = (&self.ctx, item.as_object_mut()) {
            fields.insert("ctx".to_owned(), ctx.clone());
        }
        item
    }

    pub(super) fn plain_text(&self) -> String {
        let location: String = self
            .loc
            .iter()
            .skip(1)
            .map(|part| format!("[{part}]"))
            .collect();
        let source = self.loc.first().and_then(Value::as_str).unwrap_or("body");
        format!(
            "{}: {}\n\nOn {source}{location}:\n    {}",
            self.kind, self.msg, self.input
        )
    }
}

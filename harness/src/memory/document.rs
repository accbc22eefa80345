//! The document: notes on the user and on the past, and single facts, in the shape that clients know.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::ids::ThreadId;

/// The status of a fact that nobody may act on before the user has seen it.
pub const QUARANTINED: &str = "quarantined";

/// Everything that is remembered in one scope.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MemoryDocument {
    /// The layout's version.
    pub version: String,
    /// When anything changed last.
    pub last_updated: String,
    /// Counts changes.
    pub revision: i64,
    /// Who the user is.
    pub user: UserNotes,
    /// What happened before.
    pub history: HistoryNotes,
    /// Single facts.
    pub facts: Vec<Fact>,
    /// When everything was forgotten last: what was said before is not learned any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forgotten_at: Option<DateTime<Utc>>,
}

/// Notes on the user.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct UserNotes {
    /// Work: role, projects, tools.
    pub work_context: Note,
    /// The person: languages, interests, ways.
    pub personal_context: Note,
    /// What the user is busy with now.
    pub top_of_mind: Note,
}

/// Notes on the past.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HistoryNotes {
    /// The last months.
    pub recent_months: Note,
    /// Before that.
    pub earlier_context: Note,
    /// What hardly changes.
    pub long_term_background: Note,
}

/// One note.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Note {
    /// The text.
    pub summary: String,
    /// When it was written.
    pub updated_at: String,
}

/// One fact.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Fact {
    /// `fact_` and eight hexadecimal digits.
    #[serde(default)]
    pub id: String,
    /// The fact.
    pub content: String,
    /// `preference`, `knowledge`, `context`, `behavior`, `goal`, `correction`.
    #[serde(default = "context")]
    pub category: String,
    /// From 0 to 1.
    #[serde(default = "half")]
    pub confidence: f64,
    /// When it was learned.
    #[serde(default)]
    pub created_at: String,
    /// Where from.
    #[serde(default)]
    pub source: FactSource,
    /// What was wrong before, for a correction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_error: Option<String>,
    /// [`QUARANTINED`], or absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// When it was changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<String>,
    /// What other versions wrote.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// Origin of a fact: the id of the thread that it was learned in, or a word such as `manual`.
///
/// It is always written as a text, which is all that DeerFlow's web UI takes. The objects that other versions wrote
/// (`{"type": "manual"}`, `{"type": "conversation", "threadId": ".."}`) are read as their texts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Value")]
pub struct FactSource(String);

impl FactSource {
    const MANUAL: &str = "manual";
    const UNKNOWN: &str = "unknown";

    /// A fact that the user told outright.
    pub fn manual() -> Self {
        Self(Self::MANUAL.to_owned())
    }

    /// A fact that was learned in this thread.
    pub fn thread(thread: &ThreadId) -> Self {
        Self(thread.to_string())
    }

    /// The text that clients see.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<Value> for FactSource {
    fn from(value: Value) -> Self {
        let field = |key: &str| {
            value
                .get(key)
                .and_then(Value::as_str)
                .filter(|text| !text.is_empty())
        };
        let thread = field("threadId");
        let text = match field("type") {
            Some("conversation") => thread.or(Some("conversation")),
            Some(kind) => Some(kind),
            None => thread.or(value.as_str()),
        };
        Self(text.unwrap_or(Self::UNKNOWN).to_owned())
    }
}

impl Default for FactSource {
    fn default() -> Self {
        Self(Self::UNKNOWN.to_owned())
    }
}

fn context() -> String {
    "context".to_owned()
}

fn half() -> f64 {
    0.5
}

impl Default for MemoryDocument {
    fn default() -> Self {
        Self {
            version: "1.0".to_owned(),
            last_updated: String::new(),
            revision: 0,
            user: UserNotes::default(),
            history: HistoryNotes::default(),
            facts: Vec::new(),
            forgotten_at: None,
        }
    }
}

impl MemoryDocument {
    /// The notes with their keys, the user's first.
    pub(super) fn notes_mut(&mut self) -> [(&'static str, &mut Note); 6] {
        let (user, history) = (&mut self.user, &mut self.history);
        [
            ("workContext", &mut user.work_context),
            ("personalContext", &mut user.personal_context),
            ("topOfMind", &mut user.top_of_mind),
            ("recentMonths", &mut history.recent_months),
            ("earlierContext", &mut history.earlier_context),
            ("longTermBackground", &mut history.long_term_background),
        ]
    }

    /// Whether a fact says this already, but for case and blanks.
    pub(super) fn says(&self, content: &str) -> bool {
        let wanted = folded(content);
        self.facts
            .iter()
            .any(|fact| folded(&fact.content) == wanted)
    }
}

impl Fact {
    /// Whether agents may read it.
    pub fn is_trusted(&self) -> bool {
        self.status.as_deref() != Some(QUARANTINED)
    }

    /// Whether the user told it outright.
    pub fn is_manual(&self) -> bool {
        self.source.0 == FactSource::MANUAL
    }
}

/// A text without what does not tell it from another.
pub(super) fn folded(text: &str) -> String {
    text.split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
        .to_lowercase()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn sources_of_other_versions_are_read_as_their_texts() {
        for (stored, text) in [
            (json!("manual"), "manual"),
            (json!("t1"), "t1"),
            (json!({ "type": "manual" }), "manual"),
            (json!({ "type": "manual", "threadId": null }), "manual"),
            (json!({ "type": "conversation", "threadId": "t1" }), "t1"),
            (json!({ "type": "conversation" }), "conversation"),
            (
                json!({ "type": "consolidation", "threadId": "t1" }),
                "consolidation",
            ),
            (json!({ "threadId": "t1" }), "t1"),
            (json!({}), "unknown"),
            (json!(null), "unknown"),
            (json!(7), "unknown"),
        ] {
            let fact = json!({ "content": "c", "source": stored });
            let fact: Fact = serde_json::from_value(fact).expect("a fact");
            assert_eq!(
                (fact.source.as_str(), &json!(fact)["source"]),
                (text, &json!(text)),
                "{stored}"
            );
            assert_eq!(fact.is_manual(), text == "manual");
        }
    }
}

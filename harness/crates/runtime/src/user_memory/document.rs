//! Memory document: notes on the user and the past, and single facts, in the format of clients.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use deerflow_core::ids::ThreadId;

/// Status of a fact that no agent may read before the user has confirmed it.
pub const QUARANTINED: &str = "quarantined";

/// Complete memory of one scope.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MemoryDocument {
    /// Version of the format.
    pub version: String,
    /// Time of the last change.
    pub last_updated: String,
    /// Number of changes.
    pub revision: i64,
    /// Notes on the user.
    pub user: UserNotes,
    /// Notes on the past.
    pub history: HistoryNotes,
    /// Single facts.
    pub facts: Vec<Fact>,
    /// Time at which the complete memory was cleared; earlier messages are not extracted again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forgotten_at: Option<DateTime<Utc>>,
}

/// Notes on the user.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct UserNotes {
    /// Note on the user's work: role, projects, tools.
    pub work_context: Note,
    /// Note on the person: languages, interests, habits.
    pub personal_context: Note,
    /// Note on current activities.
    pub top_of_mind: Note,
}

/// Notes on the past.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HistoryNotes {
    /// Note on the last months.
    pub recent_months: Note,
    /// Note on the time before the last months.
    pub earlier_context: Note,
    /// Note on facts that rarely change.
    pub long_term_background: Note,
}

/// One note.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Note {
    /// Text of the note.
    pub summary: String,
    /// Time of the last change.
    pub updated_at: String,
}

/// One fact.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Fact {
    /// `fact_` and eight hexadecimal digits.
    #[serde(default)]
    pub id: String,
    /// Text of the fact.
    pub content: String,
    /// `preference`, `knowledge`, `context`, `behavior`, `goal`, `correction`.
    #[serde(default = "context")]
    pub category: String,
    /// Confidence from 0 to 1.
    #[serde(default = "half")]
    pub confidence: f64,
    /// Time at which the fact was extracted or added.
    #[serde(default)]
    pub created_at: String,
    /// Origin of the fact.
    #[serde(default)]
    pub source: FactSource,
    /// Corrected error, if the fact is a correction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_error: Option<String>,
    /// [`QUARANTINED`], or absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// Time of the last change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<String>,
    /// Unknown fields of other versions, preserved as they are.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// Origin of a fact: the id of a thread, or a word such as `manual`.
///
/// It is serialized as a string, which is the only form that DeerFlow's web UI accepts. The objects
/// of other versions (`{"type": "manual"}`, `{"type": "conversation", "threadId": ".."}`) are
/// converted to strings when they are read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Value")]
pub struct FactSource(String);

impl FactSource {
    const MANUAL: &str = "manual";
    const UNKNOWN: &str = "unknown";

    /// Returns the origin of a fact that the user entered.
    pub fn manual() -> Self {
        Self(Self::MANUAL.to_owned())
    }

    /// Returns the origin of a fact that was extracted from this thread.
    pub fn thread(thread: &ThreadId) -> Self {
        Self(thread.to_string())
    }

    /// Returns the string that clients see.
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
    /// Returns the notes with their keys, those on the user first.
    pub fn notes_mut(&mut self) -> [(&'static str, &mut Note); 6] {
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

    /// Reports whether a fact has this content, ignoring case and whitespace.
    pub fn contains(&self, content: &str) -> bool {
        let normal_form = normalized(content);
        self.facts
            .iter()
            .any(|fact| normalized(&fact.content) == normal_form)
    }
}

impl Fact {
    /// Reports whether agents may read the fact.
    pub fn is_trusted(&self) -> bool {
        self.status.as_deref() != Some(QUARANTINED)
    }

    /// Reports whether the user entered the fact.
    pub fn is_manual(&self) -> bool {
        self.source.0 == FactSource::MANUAL
    }
}

/// Normalizes case and whitespace of a text for comparison.
pub(super) fn normalized(text: &str) -> String {
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
    fn sources_of_other_versions_are_read_as_strings() {
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

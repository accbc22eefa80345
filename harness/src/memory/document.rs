//! The document: notes on the user and on the past, and single facts, in the shape that clients know.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

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

/// Where a fact comes from: a thread's id, or `{"type": "manual"}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct FactSource(pub Value);

impl Default for FactSource {
    fn default() -> Self {
        Self("unknown".into())
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
        self.facts.iter().any(|fact| folded(&fact.content) == wanted)
    }
}

impl Fact {
    /// Whether agents may read it.
    pub fn is_trusted(&self) -> bool {
        self.status.as_deref() != Some(QUARANTINED)
    }

    /// Whether the user told it outright.
    pub fn is_manual(&self) -> bool {
        self.source.0.get("type").is_some_and(|kind| kind == "manual")
    }
}

/// A text without what does not tell it from another.
pub(super) fn folded(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase()
}

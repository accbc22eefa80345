//! Validation of an imported memory document. Pure.

use serde_json::json;

use deerflow_runtime::user_memory::{Fact, MemoryDocument};

/// Maximum length of an imported fact in characters, and maximum number of facts.
pub const MAX_FACT_CHARS: usize = 10_000;
const MAX_FACTS: usize = 1_000;
/// Maximum length of a label or a timestamp, in characters.
const MAX_LABEL_CHARS: usize = 200;
/// Maximum length of a note, in characters.
const MAX_NOTE_CHARS: usize = 20_000;

/// One validation error of a well-formed memory or fact.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {message}")]
pub struct ImportIssue {
    /// Machine-readable error kind.
    pub kind: &'static str,
    /// Field of the document.
    pub field: &'static str,
    /// Human-readable rule that is violated.
    pub message: String,
}

/// Validates a memory and returns all errors.
pub fn import_issues(document: &MemoryDocument) -> Vec<ImportIssue> {
    let mut issues = Vec::new();
    let mut wrong = |kind, field, message| {
        issues.push(ImportIssue {
            kind,
            field,
            message,
        })
    };
    let (user, history) = (&document.user, &document.history);
    let of_user = [
        &user.work_context,
        &user.personal_context,
        &user.top_of_mind,
    ];
    let of_past = [
        &history.recent_months,
        &history.earlier_context,
        &history.long_term_background,
    ];
    if of_user
        .into_iter()
        .chain(of_past)
        .any(|note| !fits(&note.summary, MAX_NOTE_CHARS) || !is_label(&note.updated_at))
    {
        let limits = format!(
            "A note has at most {MAX_NOTE_CHARS} characters, and its updatedAt {MAX_LABEL_CHARS}"
        );
        wrong("string_too_long", "user", limits);
    }
    for (key, label) in [
        ("version", &document.version),
        ("lastUpdated", &document.last_updated),
    ] {
        if !is_label(label) {
            wrong(
                "string_too_long",
                key,
                format!("String should have at most {MAX_LABEL_CHARS} characters"),
            );
        }
    }
    if document.facts.len() > MAX_FACTS {
        wrong(
            "too_long",
            "facts",
            format!("List should have at most {MAX_FACTS} items"),
        );
    }
    if let Some(at) = document.facts.iter().position(|fact| !is_fact(fact)) {
        let needs = format!(
            "Fact {at} needs a content of at most {MAX_FACT_CHARS} characters and a confidence from 0 to 1; its id, category, status and \
             dates have at most {MAX_LABEL_CHARS} characters each, and all else {MAX_FACT_CHARS}"
        );
        wrong("value_error", "facts", needs);
    }
    issues
}

fn is_fact(fact: &Fact) -> bool {
    let mut labels = [&fact.id, &fact.category, &fact.created_at]
        .into_iter()
        .chain(&fact.status)
        .chain(&fact.updated_at);
    let other_fields = json!([fact.source, fact.source_error, fact.extra]).to_string();
    !fact.content.trim().is_empty()
        && (0.0..=1.0).contains(&fact.confidence)
        && labels.all(|label| is_label(label))
        && [&fact.content, &other_fields]
            .into_iter()
            .all(|text| fits(text, MAX_FACT_CHARS))
}

fn is_label(text: &str) -> bool {
    fits(text, MAX_LABEL_CHARS)
}

fn fits(text: &str, most: usize) -> bool {
    text.chars().count() <= most
}

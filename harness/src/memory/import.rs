//! What a memory from outside must be. Pure.

use serde_json::json;

use super::document::{Fact, MemoryDocument};

/// The longest fact, and the most of them, that come from outside.
pub const MOST_FACT_CHARS: usize = 10_000;
const MOST_FACTS: usize = 1_000;
/// The longest of what only names something, or says when.
const MOST_LABEL_CHARS: usize = 200;
/// The longest note.
const MOST_NOTE_CHARS: usize = 20_000;

/// One thing that is wrong with a memory, or a single fact, although it has the shape of one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {message}")]
pub struct ImportIssue {
    /// A word that programs may test.
    pub kind: &'static str,
    /// The field of the document.
    pub field: &'static str,
    /// The rule that was broken, for people.
    pub message: String,
}

/// Everything that is wrong with a memory.
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
        .any(|note| !fits(&note.summary, MOST_NOTE_CHARS) || !is_label(&note.updated_at))
    {
        let limits = format!(
            "A note has at most {MOST_NOTE_CHARS} characters, and its updatedAt {MOST_LABEL_CHARS}"
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
                format!("String should have at most {MOST_LABEL_CHARS} characters"),
            );
        }
    }
    if document.facts.len() > MOST_FACTS {
        wrong(
            "too_long",
            "facts",
            format!("List should have at most {MOST_FACTS} items"),
        );
    }
    if let Some(at) = document.facts.iter().position(|fact| !is_fact(fact)) {
        let needs = format!(
            "Fact {at} needs a content of at most {MOST_FACT_CHARS} characters and a confidence from 0 to 1; its id, category, status and \
             dates have at most {MOST_LABEL_CHARS} characters each, and all else {MOST_FACT_CHARS}"
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
    let beside = json!([fact.source, fact.source_error, fact.extra]).to_string();
    !fact.content.trim().is_empty()
        && (0.0..=1.0).contains(&fact.confidence)
        && labels.all(|label| is_label(label))
        && [&fact.content, &beside]
            .into_iter()
            .all(|text| fits(text, MOST_FACT_CHARS))
}

fn is_label(text: &str) -> bool {
    fits(text, MOST_LABEL_CHARS)
}

fn fits(text: &str, most: usize) -> bool {
    text.chars().count() <= most
}

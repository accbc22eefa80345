//! Merges what was learned into a document: a pure function.

use chrono::{DateTime, Utc};

use super::dialogue::Dialogue;
use super::document::{Fact, FactSource, MemoryDocument, QUARANTINED, stamp};
use super::learn::Learned;
use super::rules::MemoryRules;
use crate::ids::{IdSource, ThreadId};

/// The longest fact and the longest note, in letters.
const MOST_FACT_LETTERS: usize = 1_000;
const MOST_NOTE_LETTERS: usize = 4_000;
/// Words in what is no memory: files of a thread are gone with it.
const PASSING: &str = "/mnt/user-data/";

/// The document with what was learned from `dialogue`; nothing when it says no more than before.
///
/// A fact that the user did not tell, or whose words only tools have said, is kept apart: it is shown to the user and to nobody else
/// until the user confirms it.
pub fn merge(
    document: &MemoryDocument,
    learned: &Learned,
    dialogue: &Dialogue,
    thread: &ThreadId,
    rules: &MemoryRules,
    ids: &dyn IdSource,
    now: DateTime<Utc>,
) -> Option<MemoryDocument> {
    let mut next = document.clone();
    for (key, note) in next.notes_mut() {
        let new = learned.notes.get(key).filter(|new| new.should_update && !new.summary.trim().is_empty());
        // A note has no place to be kept apart in, so what tools said does not get into it.
        if let Some(new) = new.filter(|new| !new.summary.contains(PASSING) && !dialogue.comes_from_tools(&new.summary, &note.summary)) {
            note.summary = cut(new.summary.trim(), MOST_NOTE_LETTERS);
            note.updated_at = stamp(now);
        }
    }
    next.facts.retain(|fact| !learned.facts_to_remove.contains(&fact.id));
    for new in &learned.new_facts {
        let content = cut(new.content.trim(), MOST_FACT_LETTERS);
        let is_sure = new.confidence >= rules.least_confidence;
        if content.is_empty() || !is_sure || content.contains(PASSING) || next.says(&content) {
            continue;
        }
        let trusted = new.origin == "user" && !dialogue.comes_from_tools(&content, "");
        next.facts.push(Fact {
            id: fact_id(ids),
            content,
            category: new.category.clone(),
            confidence: new.confidence.min(1.0),
            created_at: stamp(now),
            source: FactSource(thread.as_str().into()),
            source_error: new.source_error.clone().filter(|error| !error.trim().is_empty()),
            status: (!trusted).then(|| QUARANTINED.to_owned()),
            updated_at: None,
            extra: Default::default(),
        });
    }
    if next.facts.len() > rules.max_facts {
        // What is kept apart goes before what is trusted.
        next.facts.sort_by(|a, b| {
            (b.is_trusted(), b.confidence).partial_cmp(&(a.is_trusted(), a.confidence)).unwrap_or(std::cmp::Ordering::Equal)
        });
        next.facts.truncate(rules.max_facts);
    }
    if next == *document {
        return None;
    }
    next.last_updated = stamp(now);
    Some(next)
}

/// A new fact's id.
pub(super) fn fact_id(ids: &dyn IdSource) -> String {
    let hex = ids.random().simple().to_string();
    format!("fact_{}", &hex[..8])
}

fn cut(text: &str, letters: usize) -> String {
    text.chars().take(letters).collect()
}

#[cfg(test)]
#[path = "merge_tests.rs"]
mod tests;

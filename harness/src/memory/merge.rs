//! Merges what was learned into a document: a pure function.

use chrono::{DateTime, Utc};

use super::dialogue::Dialogue;
use super::document::{Fact, FactSource, MemoryDocument, QUARANTINED};
use super::learn::{Learned, LearnedFact};
use super::rules::MemoryRules;
use crate::clock::iso_z;
use crate::ids::{IdSource, ThreadId};

/// The longest fact and the longest note, in letters.
const MOST_FACT_LETTERS: usize = 1_000;
const MOST_NOTE_LETTERS: usize = 4_000;
/// More facts than this in one answer are no summary of a conversation.
const MOST_NEW_FACTS: usize = 20;
/// What kinds of facts there are.
const CATEGORIES: &[&str] = &[
    "preference",
    "knowledge",
    "context",
    "behavior",
    "goal",
    "correction",
];
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
        let new = learned
            .notes
            .get(key)
            .filter(|new| new.should_update && !new.summary.trim().is_empty());
        // A note has no place to be kept apart in, so what tools said does not get into it.
        if let Some(new) = new.filter(|new| {
            !new.summary.contains(PASSING)
                && !dialogue.comes_from_tools(&new.summary, &note.summary)
        }) {
            note.summary = cut(new.summary.trim(), MOST_NOTE_LETTERS);
            note.updated_at = iso_z(now);
        }
    }
    let is_told =
        |new: &LearnedFact| new.origin == "user" && !dialogue.comes_from_tools(&new.content, "");
    // A stranger's word takes nothing away, and nobody but the user what the user has told outright. Where tools spoke, a fact that
    // the user told must say what is contradicted.
    if learned.new_facts.iter().all(is_told)
        && !(learned.new_facts.is_empty() && dialogue.has_tools())
    {
        next.facts
            .retain(|fact| fact.is_manual() || !learned.facts_to_remove.contains(&fact.id));
    }
    for new in learned.new_facts.iter().take(MOST_NEW_FACTS) {
        let content = one_line(&new.content);
        let is_sure = new.confidence >= rules.least_confidence;
        if content.is_empty() || !is_sure || content.contains(PASSING) || next.says(&content) {
            continue;
        }
        let wrong = new
            .source_error
            .as_deref()
            .map(one_line)
            .filter(|wrong| !wrong.is_empty());
        next.facts.push(Fact {
            id: fact_id(ids),
            content,
            category: CATEGORIES
                .iter()
                .find(|known| **known == new.category)
                .unwrap_or(&"context")
                .to_string(),
            confidence: new.confidence.min(1.0),
            created_at: iso_z(now),
            source: FactSource::thread(thread),
            source_error: wrong.filter(|wrong| !dialogue.comes_from_tools(wrong, "")),
            status: (!is_told(new)).then(|| QUARANTINED.to_owned()),
            updated_at: None,
            extra: Default::default(),
        });
    }
    if next.facts.len() > rules.max_facts {
        // What is kept apart goes before what is trusted, and that before what the user told outright.
        let rank = |fact: &Fact| (fact.is_manual(), fact.is_trusted(), fact.confidence);
        next.facts.sort_by(|a, b| {
            rank(b)
                .partial_cmp(&rank(a))
                .unwrap_or(std::cmp::Ordering::Equal)
        });
        next.facts.truncate(rules.max_facts);
    }
    if next == *document {
        return None;
    }
    next.last_updated = iso_z(now);
    Some(next)
}

/// A text without breaks, which could pass for another entry of a memory.
fn one_line(text: &str) -> String {
    cut(
        &text.split_whitespace().collect::<Vec<_>>().join(" "),
        MOST_FACT_LETTERS,
    )
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

//! Merges proposed changes into a memory document. Pure.

use chrono::{DateTime, Utc};

use super::dialogue::Dialogue;
use super::learn::{Learned, LearnedFact};
use super::rules::MemoryRules;
use crate::clock::iso_z;
use crate::ids::{IdSource, ThreadId};
use deerflow_runtime::user_memory::{Fact, FactSource, MemoryDocument, QUARANTINED};

/// Maximum length of an extracted fact and of a note, in characters.
const MAX_LEARNED_FACT_CHARS: usize = 1_000;
const MAX_NOTE_CHARS: usize = 4_000;
/// Maximum number of new facts per answer; further ones are ignored.
const MAX_NEW_FACTS: usize = 20;
/// Valid categories of facts.
const CATEGORIES: &[&str] = &[
    "preference",
    "knowledge",
    "context",
    "behavior",
    "goal",
    "correction",
];
/// Path prefix of thread files. A text that contains it is not stored, because the files are
/// deleted with the thread.
const THREAD_FILES_PREFIX: &str = "/mnt/user-data/";

/// Returns the document with the changes that were extracted from `dialogue`; `None` if there are
/// no changes.
///
/// A fact that the user did not state, or that comes mainly from tool results, is quarantined:
/// clients show it to the user, and agents cannot read it until the user confirms it.
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
        // A note cannot be quarantined, so text from tool results is rejected.
        if let Some(new) = new.filter(|new| {
            !new.summary.contains(THREAD_FILES_PREFIX)
                && !dialogue.comes_from_tools(&new.summary, &note.summary)
        }) {
            note.summary = truncate(new.summary.trim(), MAX_NOTE_CHARS);
            note.updated_at = iso_z(now);
        }
    }
    let is_user_stated =
        |new: &LearnedFact| new.origin == "user" && !dialogue.comes_from_tools(&new.content, "");
    // Untrusted text must not remove facts, and only the user removes facts that the user entered.
    // If the dialogue contains tool results, facts are removed only together with a new fact that
    // the user stated.
    if learned.new_facts.iter().all(is_user_stated)
        && !(learned.new_facts.is_empty() && dialogue.has_tools())
    {
        next.facts
            .retain(|fact| fact.is_manual() || !learned.facts_to_remove.contains(&fact.id));
    }
    for new in learned.new_facts.iter().take(MAX_NEW_FACTS) {
        let content = one_line(&new.content);
        let is_confident = new.confidence >= rules.least_confidence;
        if content.is_empty()
            || !is_confident
            || content.contains(THREAD_FILES_PREFIX)
            || next.contains(&content)
        {
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
            status: (!is_user_stated(new)).then(|| QUARANTINED.to_owned()),
            updated_at: None,
            extra: Default::default(),
        });
    }
    if next.facts.len() > rules.max_facts {
        // Quarantined facts are evicted first, then trusted facts, then facts that the user
        // entered.
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

/// Joins a text to one line; a line break could start a forged entry of a memory.
fn one_line(text: &str) -> String {
    truncate(
        &text.split_whitespace().collect::<Vec<_>>().join(" "),
        MAX_LEARNED_FACT_CHARS,
    )
}

/// Generates the id of a new fact.
pub(super) fn fact_id(ids: &dyn IdSource) -> String {
    let hex = ids.random().simple().to_string();
    format!("fact_{}", &hex[..8])
}

fn truncate(text: &str, max_chars: usize) -> String {
    text.chars().take(max_chars).collect()
}

#[cfg(test)]
#[path = "merge_tests.rs"]
mod tests;

//! What agents read of a memory, within a budget.

use super::document::{Fact, MemoryDocument, Note};
use crate::messages::TextSize;
use crate::messages::marks::escaped;
use crate::models::TokenFamily;

/// The memory as text of at most `budget` tokens; nothing where nothing is remembered.
pub fn render(document: &MemoryDocument, budget: u64) -> Option<String> {
    let mut room = Room {
        family: TokenFamily::Other,
        left: budget,
    };
    let (user, history) = (&document.user, &document.history);
    let about_user = [
        ("Work", &user.work_context),
        ("Personal", &user.personal_context),
        ("Current focus", &user.top_of_mind),
    ];
    let before = [
        ("Recent", &history.recent_months),
        ("Earlier", &history.earlier_context),
        ("Background", &history.long_term_background),
    ];
    // Facts get at least half: they are what the user can see and correct one by one.
    let facts_room = if document.facts.iter().any(Fact::is_trusted) {
        budget / 2
    } else {
        0
    };
    room.left -= facts_room;
    let user = room.section("User context", notes(&about_user));
    let history = room.section("History", notes(&before));
    room.left += facts_room;
    let facts = room.section("Facts", facts(&document.facts));
    let text: Vec<String> = [user, history, facts].into_iter().flatten().collect();
    (!text.is_empty()).then(|| text.join("\n\n"))
}

fn notes(notes: &[(&str, &Note)]) -> Vec<String> {
    let written = notes
        .iter()
        .filter(|(_, note)| !note.summary.trim().is_empty());
    written
        .map(|(title, note)| format!("- {title}: {}", escaped(note.summary.trim())))
        .collect()
}

/// Corrections first, then the surest.
fn facts(facts: &[Fact]) -> Vec<String> {
    let mut shown: Vec<&Fact> = facts.iter().filter(|fact| fact.is_trusted()).collect();
    let rank = |fact: &Fact| (fact.category == "correction", fact.confidence);
    shown.sort_by(|a, b| {
        rank(b)
            .partial_cmp(&rank(a))
            .unwrap_or(std::cmp::Ordering::Equal)
    });
    let line = |fact: &Fact| {
        let avoid = fact
            .source_error
            .as_deref()
            .map(|error| format!(" (avoid: {})", escaped(error)))
            .unwrap_or_default();
        format!(
            "- [{} | {:.2}] {}{avoid}",
            escaped(&fact.category),
            fact.confidence,
            escaped(&fact.content)
        )
    };
    shown.into_iter().map(line).collect()
}

/// What is left of the budget.
struct Room {
    family: TokenFamily,
    left: u64,
}

impl Room {
    /// A section with as many of the lines as there is room for; the one that does not fit loses its end.
    fn section(&mut self, title: &str, lines: Vec<String>) -> Option<String> {
        let mut text = format!("{title}:");
        self.left = self.left.saturating_sub(self.tokens(&text));
        let mut some = false;
        for line in lines {
            let tokens = self.tokens(&line) + 1;
            if tokens <= self.left {
                self.left -= tokens;
                text.push_str(&format!("\n{line}"));
                some = true;
                continue;
            }
            // Wide letters are more than four times as heavy as narrow ones.
            let letters = self.family.letters(self.left) / if line.is_ascii() { 1 } else { 5 };
            if letters > 12 {
                let cut: String = line.chars().take(letters - 4).collect();
                text.push_str(&format!("\n{}…", cut.trim_end()));
                some = true;
            }
            self.left = 0;
            break;
        }
        some.then_some(text)
    }

    fn tokens(&self, text: &str) -> u64 {
        self.family.tokens(TextSize::of(text))
    }
}

#[cfg(test)]
#[path = "render_tests.rs"]
mod tests;

//! Renders a memory as text for agents, within a token budget.

use crate::messages::TextSize;
use crate::messages::marks::escaped;
use crate::models::TokenFamily;
use deerflow_runtime::user_memory::{Fact, MemoryDocument, Note};

/// Renders a memory with at most `budget` tokens; `None` if it is empty.
pub fn render(document: &MemoryDocument, budget: u64) -> Option<String> {
    let mut remaining = Budget {
        family: TokenFamily::Other,
        tokens_left: budget,
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
    // Facts get at least half of the budget, because the user can inspect and correct them one by
    // one.
    let facts_share = if document.facts.iter().any(Fact::is_trusted) {
        budget / 2
    } else {
        0
    };
    remaining.tokens_left -= facts_share;
    let user = remaining.section("User context", notes(&about_user));
    let history = remaining.section("History", notes(&before));
    remaining.tokens_left += facts_share;
    let facts = remaining.section("Facts", facts(&document.facts));
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

/// Renders trusted facts: corrections first, then by descending confidence.
fn facts(facts: &[Fact]) -> Vec<String> {
    let mut trusted: Vec<&Fact> = facts.iter().filter(|fact| fact.is_trusted()).collect();
    let rank = |fact: &Fact| (fact.category == "correction", fact.confidence);
    trusted.sort_by(|a, b| {
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
    trusted.into_iter().map(line).collect()
}

/// Remaining token budget.
struct Budget {
    family: TokenFamily,
    tokens_left: u64,
}

impl Budget {
    /// Renders a section with the lines that fit into the budget; the first line that does not fit
    /// is truncated.
    fn section(&mut self, title: &str, lines: Vec<String>) -> Option<String> {
        let mut text = format!("{title}:");
        self.tokens_left = self.tokens_left.saturating_sub(self.tokens(&text));
        let mut some = false;
        for line in lines {
            let tokens = self.tokens(&line) + 1;
            if tokens <= self.tokens_left {
                self.tokens_left -= tokens;
                text.push_str(&format!("\n{line}"));
                some = true;
                continue;
            }
            // A wide character uses more than four times as many tokens as a narrow one.
            let max_chars =
                self.family.narrow_chars(self.tokens_left) / if line.is_ascii() { 1 } else { 5 };
            if max_chars > 12 {
                let shortened: String = line.chars().take(max_chars - 4).collect();
                text.push_str(&format!("\n{}…", shortened.trim_end()));
                some = true;
            }
            self.tokens_left = 0;
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

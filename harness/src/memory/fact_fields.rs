//! What the fields of a single fact from outside must be. Pure.

use super::import::{ImportIssue, MOST_FACT_CHARS};
use super::memories::FactChange;

/// The longest category, in characters.
const MOST_CATEGORY_CHARS: usize = 64;

/// What is wrong with a fact's content.
pub fn content_issue(content: &str) -> Option<ImportIssue> {
    text_issue("content", content, MOST_FACT_CHARS)
}

/// What is wrong with a fact's category.
pub fn category_issue(category: &str) -> Option<ImportIssue> {
    text_issue("category", category, MOST_CATEGORY_CHARS)
}

/// What is wrong with a fact's confidence; also of one that is no number at all.
pub fn confidence_issue(confidence: Option<f64>) -> Option<ImportIssue> {
    let fits = confidence.is_some_and(|number| (0.0..=1.0).contains(&number));
    let message = "Input should be a number from 0 to 1";
    (!fits).then(|| ImportIssue {
        kind: "float_type",
        field: "confidence",
        message: message.to_owned(),
    })
}

impl FactChange {
    /// Everything that is wrong with the fields that are there.
    pub fn issues(&self) -> Vec<ImportIssue> {
        let content = self.content.as_deref().and_then(content_issue);
        let category = self.category.as_deref().and_then(category_issue);
        let confidence = self
            .confidence
            .and_then(|number| confidence_issue(Some(number)));
        content
            .into_iter()
            .chain(category)
            .chain(confidence)
            .collect()
    }
}

/// A text that is neither blank nor too long.
fn text_issue(field: &'static str, text: &str, most: usize) -> Option<ImportIssue> {
    if text.trim().is_empty() {
        let message = "String should have at least 1 character".to_owned();
        return Some(ImportIssue {
            kind: "string_too_short",
            field,
            message,
        });
    }
    let message = || format!("String should have at most {most} characters");
    (text.chars().count() > most).then(|| ImportIssue {
        kind: "string_too_long",
        field,
        message: message(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_at_their_limits_pass_and_those_beyond_are_named() {
        let change = |content: usize, category: usize, confidence| FactChange {
            content: Some("x".repeat(content)),
            category: Some("x".repeat(category)),
            confidence: Some(confidence),
        };
        let fields = |change: FactChange| {
            change
                .issues()
                .into_iter()
                .map(|issue| issue.field)
                .collect::<Vec<_>>()
        };
        assert_eq!(
            fields(FactChange::default()),
            [""; 0],
            "what is absent is not judged"
        );
        assert_eq!(fields(change(1, 1, 0.0)), [""; 0]);
        assert_eq!(
            fields(change(MOST_FACT_CHARS, MOST_CATEGORY_CHARS, 1.0)),
            [""; 0]
        );
        for beyond in [
            change(0, 0, -0.1),
            change(MOST_FACT_CHARS + 1, MOST_CATEGORY_CHARS + 1, 1.1),
            change(0, 0, f64::NAN),
        ] {
            assert_eq!(fields(beyond), ["content", "category", "confidence"]);
        }
    }
}

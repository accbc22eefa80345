//! Validation of the fields of a single fact. Pure.

use super::import::{ImportIssue, MAX_FACT_CHARS};
use super::service::FactChange;

/// Maximum length of a category, in characters.
const MAX_CATEGORY_CHARS: usize = 64;

/// Validates the content of a fact.
pub fn content_issue(content: &str) -> Option<ImportIssue> {
    text_issue("content", content, MAX_FACT_CHARS)
}

/// Validates the category of a fact.
pub fn category_issue(category: &str) -> Option<ImportIssue> {
    text_issue("category", category, MAX_CATEGORY_CHARS)
}

/// Validates the confidence of a fact; `None` means that the value is not a number.
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
    /// Validates the fields that are present.
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

/// Validates that a text is not blank and not too long.
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
    fn fields_beyond_their_limits_are_reported() {
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
            "absent fields are not validated"
        );
        assert_eq!(fields(change(1, 1, 0.0)), [""; 0]);
        assert_eq!(
            fields(change(MAX_FACT_CHARS, MAX_CATEGORY_CHARS, 1.0)),
            [""; 0]
        );
        for beyond in [
            change(0, 0, -0.1),
            change(MAX_FACT_CHARS + 1, MAX_CATEGORY_CHARS + 1, 1.1),
            change(0, 0, f64::NAN),
        ] {
            assert_eq!(fields(beyond), ["content", "category", "confidence"]);
        }
    }
}

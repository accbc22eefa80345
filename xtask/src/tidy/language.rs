//! Checks of names and documentation: household words, question words, long test names, restricted visibility.

use std::str::FromStr;

use proc_macro2::{TokenStream, TokenTree};

use super::household::{FIXED_NAMES, HOUSEHOLD};
use crate::report::Violation;
use crate::tokens::{is_attribute_for_tests, is_ident};
use crate::workspace::SourceFile;

/// Maximum length of a test name, in characters.
const MAX_TEST_NAME: usize = 60;

/// Maximum share of documentation comments that begin with a question word, in percent.
const MAX_QUESTION_SHARE: usize = 3;

/// Words with which no documentation comment begins.
const QUESTIONS: [&str; 9] = [
    "What", "Who", "Whose", "Which", "Where", "How", "Why", "When", "Whether",
];

/// Keywords that are followed by the name of an item.
const DEFINES: [&str; 8] = [
    "fn", "struct", "enum", "trait", "mod", "const", "static", "type",
];

/// Documentation comments of the workspace, and those that begin with a question word.
#[derive(Debug, Default)]
pub(super) struct Openings {
    comments: usize,
    questions: Vec<Violation>,
}

impl Openings {
    /// Returns a violation when too many documentation comments begin with a question word, with the first of them.
    pub(super) fn violation(self) -> Option<Violation> {
        let count = self.questions.len();
        (count * 100 > self.comments * MAX_QUESTION_SHARE).then(|| {
            let examples: Vec<String> = self.questions.iter().take(20).map(ToString::to_string).collect();
            Violation::new(
                "documentation comments",
                format!(
                    "{count} of {} begin with a question word, more than {MAX_QUESTION_SHARE} %: begin with a verb or a noun \
                     phrase\n{}",
                    self.comments,
                    examples.join("\n")
                ),
            )
        })
    }
}

/// Checks one file and counts its documentation comments.
pub(super) fn check(file: &SourceFile, openings: &mut Openings, violations: &mut Vec<Violation>) {
    comments(file, openings, violations);
    // A file that is not Rust is reported by the check of its code.
    if let Ok(tokens) = TokenStream::from_str(&file.text) {
        names(file, tokens, violations);
    }
}

fn comments(file: &SourceFile, openings: &mut Openings, violations: &mut Vec<Violation>) {
    let mut previous = None;
    for (index, line) in file.text.lines().enumerate() {
        let trimmed = line.trim_start();
        let marker = ["///", "//!"]
            .into_iter()
            .find(|marker| trimmed.starts_with(marker));
        if let Some(marker) = marker {
            let text = trimmed[marker.len()..].trim_start();
            if previous != Some(marker) {
                openings.comments += 1;
                let first = text
                    .split(|letter: char| !letter.is_alphabetic())
                    .next()
                    .unwrap_or_default();
                if QUESTIONS.contains(&first) {
                    openings
                        .questions
                        .push(Violation::at(&file.path, index + 1, text));
                }
            }
            // Code in backticks may name what the wire names.
            let prose = text.split('`').step_by(2);
            for word in prose.flat_map(|part| part.split(|letter: char| !letter.is_alphabetic())) {
                if let Some(term) = term_for(&word.to_lowercase()) {
                    let problem = format!("household word `{word}`: write {term}");
                    violations.push(Violation::at(&file.path, index + 1, problem));
                }
            }
        }
        previous = marker;
    }
}

fn names(file: &SourceFile, tokens: TokenStream, violations: &mut Vec<Violation>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut is_test = false;
    let mut is_former = false;
    for (at, token) in tokens.iter().enumerate() {
        match token {
            TokenTree::Group(group) => {
                is_test |= is_test_attribute(&tokens, at);
                is_former |= is_deprecation(&tokens, at);
                names(file, group.stream(), violations);
            }
            TokenTree::Ident(keyword) if DEFINES.iter().any(|word| keyword == word) => {
                if let Some(TokenTree::Ident(name)) = tokens.get(at + 1) {
                    let line = name.span().start().line;
                    let name = name.to_string();
                    let mut tell =
                        |problem: String| violations.push(Violation::at(&file.path, line, problem));
                    let is_fixed = is_former || FIXED_NAMES.contains(&name.as_str());
                    for word in words_of(&name).iter().filter(|_| !is_fixed) {
                        if let Some(term) = term_for(word) {
                            tell(format!(
                                "household word `{word}` in the name `{name}`: use {term}"
                            ));
                        }
                    }
                    if is_test && keyword == "fn" && name.len() > MAX_TEST_NAME {
                        tell(format!(
                            "the test name has {} characters, more than {MAX_TEST_NAME}: name subject, condition and outcome",
                            name.len()
                        ));
                    }
                }
                is_test &= keyword != "fn";
                is_former &= keyword != "fn";
            }
            TokenTree::Ident(keyword) if keyword == "pub" => {
                if let Some(TokenTree::Group(group)) = tokens.get(at + 1)
                    && is_ident(group.stream().into_iter().next().as_ref(), "in")
                {
                    let problem =
                        "`pub(in ..)`: use `pub(crate)` or `pub(super)`, or move the item";
                    violations.push(Violation::at(
                        &file.path,
                        keyword.span().start().line,
                        problem,
                    ));
                }
            }
            _ => {}
        }
    }
}

/// Reports whether the brackets at `at` are an attribute such as `#[test]` or `#[tokio::test]`.
fn is_test_attribute(tokens: &[TokenTree], at: usize) -> bool {
    let Some(TokenTree::Group(brackets)) = tokens.get(at) else {
        return false;
    };
    let is_attribute =
        at > 0 && matches!(&tokens[at - 1], TokenTree::Punct(sign) if sign.as_char() == '#');
    let last = brackets
        .stream()
        .into_iter()
        .filter(|token| matches!(token, TokenTree::Ident(_)))
        .last();
    is_attribute && !is_attribute_for_tests(tokens.get(at)) && is_ident(last.as_ref(), "test")
}

/// Reports whether the brackets at `at` are the attribute `#[deprecated]`: the item keeps a former
/// name for crates that were written against it.
fn is_deprecation(tokens: &[TokenTree], at: usize) -> bool {
    let Some(TokenTree::Group(brackets)) = tokens.get(at) else {
        return false;
    };
    at > 0
        && matches!(&tokens[at - 1], TokenTree::Punct(sign) if sign.as_char() == '#')
        && is_ident(brackets.stream().into_iter().next().as_ref(), "deprecated")
}

/// Returns the lower-case words of a name in snake case or camel case.
fn words_of(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    for letter in name.chars() {
        if letter == '_' || letter.is_uppercase() {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut()
            && letter != '_'
        {
            word.extend(letter.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

fn term_for(word: &str) -> Option<&'static str> {
    HOUSEHOLD
        .iter()
        .find(|(household, _)| *household == word)
        .map(|(_, term)| *term)
}

#[cfg(test)]
#[path = "language_tests.rs"]
mod tests;

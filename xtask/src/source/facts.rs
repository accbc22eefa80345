//! Reads the product code of one file: its imports, paths, definitions and trait implementations.

use std::str::FromStr;

use proc_macro2::{Delimiter, Group, LexError, TokenStream, TokenTree};

use super::imports::{Import, Path, read_use};
use crate::tokens::{is_attribute_for_tests, is_ident, is_punct, is_separator};

/// Keywords that are followed by the name of an item.
const DEFINES: [&str; 9] = [
    "fn", "struct", "enum", "trait", "mod", "const", "static", "type", "union",
];

/// Content of a file without its test code.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    pub(crate) imports: Vec<Import>,
    /// Paths of at least two segments outside `use`.
    pub(crate) paths: Vec<Path>,
    pub(crate) definitions: Vec<Definition>,
    /// Lines of `impl Trait for Type`.
    pub(crate) trait_impls: Vec<usize>,
    /// Modules that are declared for tests only.
    pub(crate) test_modules: Vec<String>,
}

/// Item of a file or of an inline module.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Definition {
    pub(crate) keyword: String,
    pub(crate) name: String,
    pub(crate) line: usize,
    /// Named fields of a struct.
    pub(crate) fields: usize,
}

impl Facts {
    pub(crate) fn read(text: &str) -> Result<Self, LexError> {
        let mut facts = Self::default();
        facts.stream(TokenStream::from_str(text)?, &[], Context::Items);
        Ok(facts)
    }

    fn stream(&mut self, tokens: TokenStream, scope: &[String], context: Context) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut at = 0;
        while let Some(token) = tokens.get(at) {
            at = match token {
                TokenTree::Punct(punct) if punct.as_char() == '#' => {
                    self.attribute(&tokens, at, context)
                }
                TokenTree::Group(group) => {
                    self.stream(group.stream(), scope, Context::Body);
                    at + 1
                }
                TokenTree::Ident(word) if word == "use" => {
                    let end = position(&tokens, at, |token| is_punct(Some(token), ';'));
                    let is_public = at > 0 && is_visibility(&tokens[..at]);
                    self.imports
                        .extend(read_use(&tokens[at + 1..end], scope, is_public));
                    end
                }
                TokenTree::Ident(_) if context == Context::Items => self.item(&tokens, at, scope),
                TokenTree::Ident(_) => self.path(&tokens, at, scope),
                _ => at + 1,
            };
        }
    }

    /// Skips the attribute at `at`, and the item after it when it is for tests only.
    fn attribute(&mut self, tokens: &[TokenTree], at: usize, context: Context) -> usize {
        let next = at + 2;
        if !is_attribute_for_tests(tokens.get(at + 1)) {
            return next;
        }
        let item = &tokens[next.min(tokens.len())..];
        let declared = item.iter().position(|token| is_ident(Some(token), "mod"));
        if let Some(TokenTree::Ident(name)) = declared.and_then(|place| item.get(place + 1)) {
            self.test_modules.push(name.to_string());
        }
        let end = match context {
            Context::Items => end_of_item(tokens, next),
            Context::Body => end_of_part(tokens, next),
        };
        end + 1
    }

    /// Reads a word between items: the head of a definition, an implementation, or a path.
    fn item(&mut self, tokens: &[TokenTree], at: usize, scope: &[String]) -> usize {
        let head = &tokens[at..];
        if is_ident(head.first(), "impl") {
            if let Some(line) = line_of_trait_impl(head) {
                self.trait_impls.push(line);
            }
            return at + 1;
        }
        let Some(TokenTree::Ident(name)) = head.get(1) else {
            return self.path(tokens, at, scope);
        };
        let keyword = head[0].to_string();
        if !DEFINES.contains(&keyword.as_str()) || DEFINES.iter().any(|word| name == word) {
            return self.path(tokens, at, scope);
        }
        self.definitions.push(Definition {
            fields: count_fields(&keyword, head),
            keyword: keyword.clone(),
            name: name.to_string(),
            line: name.span().start().line,
        });
        match head.get(2) {
            Some(TokenTree::Group(body)) if keyword == "mod" => {
                let inner = [scope, &[name.to_string()]].concat();
                self.stream(body.stream(), &inner, Context::Items);
                at + 3
            }
            _ => at + 2,
        }
    }

    /// Reads a path of two or more segments, if one starts here, and returns the position after it.
    fn path(&mut self, tokens: &[TokenTree], start: usize, scope: &[String]) -> usize {
        let mut at = start;
        let mut segments = Vec::new();
        while let Some(TokenTree::Ident(part)) = tokens.get(at) {
            segments.push(part.to_string());
            at += 1;
            if !is_separator(tokens, at) {
                break;
            }
            at += 2;
        }
        let is_rest = start >= 2 && is_separator(tokens, start - 2);
        if segments.len() > 1 && !is_rest {
            self.paths.push(Path {
                scope: scope.to_vec(),
                segments,
                line: tokens[start].span().start().line,
            });
        }
        at
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Context {
    /// Between the items of a file or of an inline module.
    Items,
    /// Inside an item.
    Body,
}

/// Returns the position of the `;` or of the braces that end the item at `at`.
fn end_of_item(tokens: &[TokenTree], at: usize) -> usize {
    position(tokens, at, |token| {
        is_punct(Some(token), ';') || braces(token).is_some()
    })
}

/// Returns the end of a field, an arm, a statement or a method.
fn end_of_part(tokens: &[TokenTree], at: usize) -> usize {
    let comma = position(tokens, at, |token| is_punct(Some(token), ','));
    let end = end_of_item(tokens, at);
    let is_method = tokens[at.min(comma)..comma]
        .iter()
        .any(|token| is_ident(Some(token), "fn"));
    if is_method { end } else { end.min(comma) }
}

fn position(tokens: &[TokenTree], from: usize, ends: impl Fn(&TokenTree) -> bool) -> usize {
    (from..tokens.len())
        .find(|at| ends(&tokens[*at]))
        .unwrap_or(tokens.len())
}

fn braces(token: &TokenTree) -> Option<&Group> {
    match token {
        TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => Some(group),
        _ => None,
    }
}

/// Reports whether `before` ends in `pub` or `pub(..)`.
fn is_visibility(before: &[TokenTree]) -> bool {
    matches!(before, [.., word, TokenTree::Group(_)] | [.., word] if is_ident(Some(word), "pub"))
}

fn line_of_trait_impl(head: &[TokenTree]) -> Option<usize> {
    let end = end_of_item(head, 0);
    let is_for = |at: &usize| is_ident(head.get(*at), "for") && !is_punct(head.get(at + 1), '<');
    (0..end).find(is_for).map(|_| head[0].span().start().line)
}

/// Counts the named fields of the struct that `head` begins: one colon each.
fn count_fields(keyword: &str, head: &[TokenTree]) -> usize {
    let body = (keyword == "struct")
        .then(|| head.get(end_of_item(head, 0)))
        .flatten()
        .and_then(braces);
    let Some(body) = body else { return 0 };
    let tokens: Vec<TokenTree> = body.stream().into_iter().collect();
    (0..tokens.len())
        .filter(|at| {
            is_punct(tokens.get(*at), ':')
                && !is_separator(&tokens, *at)
                && !(*at > 0 && is_separator(&tokens, at - 1))
        })
        .count()
}

#[cfg(test)]
#[path = "facts_tests.rs"]
mod tests;

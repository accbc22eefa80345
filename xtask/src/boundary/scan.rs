//! Finds the paths in a source file that start at the crate root, in any notation.

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use crate::tokens::{is_attribute_for_tests, is_punct, is_separator};

/// Use of a name directly below the crate root.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RootName {
    /// Top module that uses it.
    pub(super) from: String,
    pub(super) name: String,
    /// Line, counted from one.
    pub(super) line: usize,
    pub(super) in_test: bool,
}

/// Returns all root names that `tokens`, the text of `module`, uses in code. Skips comments,
/// documentation and strings, the root module itself, because it declares and re-exports
/// everything, and macros, because they live at the root.
pub(super) fn root_names(tokens: TokenStream, module: &[String], in_test: bool) -> Vec<RootName> {
    let mut scan = Scan { found: Vec::new() };
    scan.stream(tokens, module, in_test);
    scan.found
}

struct Scan {
    found: Vec<RootName>,
}

impl Scan {
    fn stream(&mut self, tokens: TokenStream, module: &[String], in_test: bool) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        // `true` if the current item has an attribute such as `#[cfg(test)]`.
        let mut gated = false;
        let mut at = 0;
        while let Some(token) = tokens.get(at) {
            at = match token {
                TokenTree::Punct(punct) => {
                    gated |= punct.as_char() == '#' && is_attribute_for_tests(tokens.get(at + 1));
                    gated &= punct.as_char() != ';';
                    at + 1
                }
                TokenTree::Group(group) => {
                    self.stream(group.stream(), module, in_test || gated);
                    gated &= group.delimiter() != Delimiter::Brace;
                    at + 1
                }
                TokenTree::Ident(ident) if ident == "mod" => {
                    match (tokens.get(at + 1), tokens.get(at + 2)) {
                        (Some(TokenTree::Ident(name)), Some(TokenTree::Group(body))) => {
                            let inner = [module, &[name.to_string()]].concat();
                            self.stream(body.stream(), &inner, in_test || gated);
                            gated = false;
                            at + 3
                        }
                        _ => at + 1,
                    }
                }
                TokenTree::Ident(_) => self.path(&tokens, at, module, in_test || gated),
                TokenTree::Literal(_) => at + 1,
            };
        }
    }

    /// Reads the leading `crate::`, `self::` and `super::` of a path, if one starts here, and
    /// returns the position after it.
    fn path(
        &mut self,
        tokens: &[TokenTree],
        start: usize,
        module: &[String],
        in_test: bool,
    ) -> usize {
        let mut at = start;
        let mut depth = module.len();
        while is_separator(tokens, at + 1) {
            match &tokens[at] {
                TokenTree::Ident(part) if part == "crate" => depth = 0,
                TokenTree::Ident(part) if part == "super" => depth = depth.saturating_sub(1),
                TokenTree::Ident(part) if part == "self" => {}
                _ => break,
            }
            at += 3;
        }
        if at == start {
            return start + 1;
        }
        if depth == 0 {
            self.names(&tokens[at.min(tokens.len())..], module, in_test);
        }
        at
    }

    /// Collects the names at the start of `tokens`: one, or one per branch of a `{..}` group.
    fn names(&mut self, tokens: &[TokenTree], module: &[String], in_test: bool) {
        let Some(from) = module.first() else { return };
        match tokens.first() {
            Some(TokenTree::Group(group)) => {
                let branches: Vec<TokenTree> = group.stream().into_iter().collect();
                for branch in branches.split(|token| is_punct(Some(token), ',')) {
                    self.names(branch, module, in_test);
                }
            }
            Some(TokenTree::Ident(_)) if is_punct(tokens.get(1), '!') => {}
            Some(head) => self.found.push(RootName {
                from: from.clone(),
                name: head.to_string(),
                line: head.span().start().line,
                in_test,
            }),
            None => {}
        }
    }
}

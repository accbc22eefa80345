//! Token checks: suppressed lints, unfinished code, `super::super`, and long inline test modules.

use std::str::FromStr;

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

use crate::report::Violation;
use crate::source::is_test_file;
use crate::tokens::{is_attribute_for_tests, is_ident, is_punct, is_separator};
use crate::workspace::SourceFile;

/// Maximum lines of an inline test module; longer ones move to a separate file.
const INLINE_TESTS: usize = 80;

/// Macros that mark missing code.
const UNFINISHED: [&str; 2] = ["todo", "unimplemented"];

pub(super) fn check(file: &SourceFile, violations: &mut Vec<Violation>) {
    match TokenStream::from_str(&file.text) {
        Ok(tokens) => Check { file, violations }.stream(tokens),
        Err(error) => {
            let line = error.span().start().line;
            violations.push(Violation::at(
                &file.path,
                line,
                format!("is not Rust: {error}"),
            ));
        }
    }
}

struct Check<'a> {
    file: &'a SourceFile,
    violations: &'a mut Vec<Violation>,
}

impl Check<'_> {
    fn stream(&mut self, tokens: TokenStream) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        for (at, token) in tokens.iter().enumerate() {
            match token {
                TokenTree::Punct(punct) if punct.as_char() == '#' => {
                    self.attribute(&tokens[at + 1..])
                }
                TokenTree::Ident(ident)
                    if ident == "super"
                        && is_separator(&tokens, at + 1)
                        && is_ident(tokens.get(at + 3), "super")
                        && !is_test_file(&self.file.path) =>
                {
                    self.report(
                        token,
                        "`super::super` hides the target of a path: write the path from `crate::`",
                    );
                }
                TokenTree::Ident(ident) if is_punct(tokens.get(at + 1), '!') => {
                    if let Some(name) = UNFINISHED.iter().find(|name| ident == *name) {
                        self.report(token, format!("`{name}!` marks missing code"));
                    }
                }
                TokenTree::Group(group) => self.stream(group.stream()),
                _ => {}
            }
        }
    }

    /// Checks an attribute and the item after it; `rest` begins after the `#`.
    fn attribute(&mut self, rest: &[TokenTree]) {
        let rest = if is_punct(rest.first(), '!') {
            &rest[1..]
        } else {
            rest
        };
        if let Some(TokenTree::Group(brackets)) = rest.first()
            && brackets.delimiter() == Delimiter::Bracket
        {
            self.silencer(brackets.stream());
            if is_attribute_for_tests(rest.first())
                && let Some(body) = module_body(&rest[1..])
            {
                self.inline_tests(body);
            }
        }
    }

    /// Finds `allow(..)` in an attribute, also inside `cfg_attr`.
    fn silencer(&mut self, attribute: TokenStream) {
        let tokens: Vec<TokenTree> = attribute.into_iter().collect();
        for (at, token) in tokens.iter().enumerate() {
            if is_ident(Some(token), "allow")
                && matches!(tokens.get(at + 1), Some(TokenTree::Group(_)))
            {
                self.report(
                    token,
                    "suppresses a lint permanently: write `#[expect(.., reason = \"..\")]`",
                );
            }
            if let TokenTree::Group(group) = token {
                self.silencer(group.stream());
            }
        }
    }

    fn inline_tests(&mut self, body: &Group) {
        let first = body.span_open().start().line;
        let lines = body.span_close().end().line + 1 - first;
        if lines > INLINE_TESTS {
            let stem = self.file.path.file_stem().unwrap_or_default();
            let problem = format!(
                "{lines} lines of tests, more than {INLINE_TESTS}: move them to `{stem}_tests.rs` and include them \
                 with `#[path]`"
            );
            self.violations
                .push(Violation::at(&self.file.path, first, problem));
        }
    }

    fn report(&mut self, token: &TokenTree, problem: impl Into<String>) {
        let line = token.span().start().line;
        self.violations
            .push(Violation::at(&self.file.path, line, problem));
    }
}

/// Returns the body of the module that `item` declares, after further attributes and visibility.
fn module_body(item: &[TokenTree]) -> Option<&Group> {
    let item = match item {
        [TokenTree::Punct(hash), TokenTree::Group(_), rest @ ..] if hash.as_char() == '#' => {
            return module_body(rest);
        }
        [TokenTree::Ident(word), TokenTree::Group(_), rest @ ..] if word == "pub" => rest,
        [TokenTree::Ident(word), rest @ ..] if word == "pub" => rest,
        item => item,
    };
    match item {
        [
            TokenTree::Ident(word),
            TokenTree::Ident(_),
            TokenTree::Group(body),
            ..,
        ] if word == "mod" => Some(body),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(text: &str) -> Vec<String> {
        let file = SourceFile {
            path: "app/a.rs".into(),
            text: text.to_owned(),
        };
        let mut violations = Vec::new();
        check(&file, &mut violations);
        violations.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn suppressed_lint_is_reported_in_every_spelling() {
        for text in [
            "#[allow(dead_code)] fn f() {}",
            "#![allow(dead_code)]",
            "mod m { #[cfg_attr(test, allow(dead_code))] fn f() {} }",
        ] {
            assert_eq!(problems(text).len(), 1, "{text}");
        }
        let fine =
            "#[expect(dead_code, reason = \"r\")] fn allow(a: u8) { allow(a) } // #[allow(x)]";
        assert_eq!(problems(fine), Vec::<String>::new());
    }

    #[test]
    fn unfinished_code_is_reported_in_code_only() {
        let text = "fn f() {\n  todo!()\n}\nfn g() { unimplemented!(\"later\") }\n// todo!()\nconst T: &str = \"todo!()\";";
        assert_eq!(
            problems(text),
            [
                "app/a.rs:2: `todo!` marks missing code",
                "app/a.rs:4: `unimplemented!` marks missing code",
            ]
        );
    }

    #[test]
    fn super_chain_is_reported_outside_test_files() {
        let text = "mod tests { use super::super::a; use super::b::super_; }";
        let found = problems(text);
        assert_eq!(found.len(), 1);
        assert!(
            found[0].contains("write the path from `crate::`"),
            "{found:?}"
        );
    }

    #[test]
    fn long_inline_tests_are_reported() {
        let module =
            |lines: usize| format!("#[cfg(test)]\nmod tests {{{}}}\n", "\n".repeat(lines - 1));
        assert_eq!(problems(&module(INLINE_TESTS)), Vec::<String>::new());
        let found = problems(&module(INLINE_TESTS + 1));
        assert_eq!(found.len(), 1);
        assert!(
            found[0].starts_with("app/a.rs:2: 81 lines of tests"),
            "{found:?}"
        );
        assert!(found[0].contains("a_tests.rs"), "{found:?}");
    }
}

//! Helpers on Rust tokens, shared by the checks that read source.

use proc_macro2::{Delimiter, TokenStream, TokenTree};

pub(crate) fn is_ident(token: Option<&TokenTree>, name: &str) -> bool {
    matches!(token, Some(TokenTree::Ident(ident)) if ident == name)
}

pub(crate) fn is_punct(token: Option<&TokenTree>, sign: char) -> bool {
    matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == sign)
}

/// Reports whether `::` starts at `at`.
pub(crate) fn is_separator(tokens: &[TokenTree], at: usize) -> bool {
    is_punct(tokens.get(at), ':') && is_punct(tokens.get(at + 1), ':')
}

/// Reports whether the brackets of an attribute restrict the item to tests: `cfg` with `test` or
/// the `testkit` feature, not negated.
pub(crate) fn is_attribute_for_tests(brackets: Option<&TokenTree>) -> bool {
    let Some(TokenTree::Group(brackets)) = brackets else {
        return false;
    };
    let inside: Vec<TokenTree> = brackets.stream().into_iter().collect();
    brackets.delimiter() == Delimiter::Bracket
        && is_ident(inside.first(), "cfg")
        && matches!(inside.get(1), Some(TokenTree::Group(condition)) if asks_for_tests(condition.stream()))
}

fn asks_for_tests(condition: TokenStream) -> bool {
    let tokens: Vec<TokenTree> = condition.into_iter().collect();
    tokens.iter().enumerate().any(|(at, token)| match token {
        TokenTree::Ident(ident) => ident == "test",
        TokenTree::Literal(literal) => literal.to_string() == "\"testkit\"",
        TokenTree::Group(group) => {
            let negated = at > 0 && is_ident(tokens.get(at - 1), "not");
            !negated && asks_for_tests(group.stream())
        }
        TokenTree::Punct(_) => false,
    })
}

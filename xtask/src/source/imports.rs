//! Paths, and `use` trees.

use proc_macro2::TokenTree;

use crate::tokens::{is_ident, is_punct, is_separator};

/// Path as written; `scope` holds the inline modules around it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Path {
    pub(crate) scope: Vec<String>,
    pub(crate) segments: Vec<String>,
    /// Line, counted from one.
    pub(crate) line: usize,
}

/// One leaf of a `use` tree.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Import {
    pub(crate) path: Path,
    /// Name that it binds; `*` for a glob.
    pub(crate) name: String,
    pub(crate) is_public: bool,
}

/// Returns the leaves of the tree in `tokens`, the text between `use` and `;`.
pub(super) fn read_use(tokens: &[TokenTree], scope: &[String], is_public: bool) -> Vec<Import> {
    let mut reader = Reader {
        scope,
        is_public,
        imports: Vec::new(),
    };
    reader.tree(tokens, &[]);
    reader.imports
}

struct Reader<'a> {
    scope: &'a [String],
    is_public: bool,
    imports: Vec<Import>,
}

impl Reader<'_> {
    fn tree(&mut self, tokens: &[TokenTree], prefix: &[String]) {
        let mut segments = prefix.to_vec();
        let mut at = 0;
        while let Some(token) = tokens.get(at) {
            match token {
                TokenTree::Group(group) => {
                    let branches: Vec<TokenTree> = group.stream().into_iter().collect();
                    for branch in branches.split(|token| is_punct(Some(token), ',')) {
                        self.tree(branch, &segments);
                    }
                    return;
                }
                TokenTree::Punct(punct) if punct.as_char() == '*' => {
                    return self.leaf(token, segments, "*".to_owned());
                }
                TokenTree::Ident(word) if word == "self" && !segments.is_empty() => {}
                TokenTree::Ident(word) => segments.push(word.to_string()),
                _ => {}
            }
            at += 1;
            if is_ident(tokens.get(at), "as") {
                let name = tokens.get(at + 1).map(ToString::to_string);
                return self.leaf(token, segments, name.unwrap_or_default());
            }
            if !is_separator(tokens, at) {
                let name = segments.last().cloned().unwrap_or_default();
                return self.leaf(token, segments, name);
            }
            at += 2;
        }
    }

    fn leaf(&mut self, token: &TokenTree, segments: Vec<String>, name: String) {
        self.imports.push(Import {
            path: Path {
                scope: self.scope.to_vec(),
                segments,
                line: token.span().start().line,
            },
            name,
            is_public: self.is_public,
        });
    }
}

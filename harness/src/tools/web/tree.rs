//! Parses a page into a tree in bounded time and memory, and rejects trees that are too deep for
//! recursive code.

use std::cell::Cell;
use std::time::{Duration, Instant};

use dom_query::{Document, NodeData, NodeId};
use html5ever::TokenizerResult;
use html5ever::buffer_queue::BufferQueue;
use html5ever::tokenizer::{Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts};
use html5ever::tree_builder::{TreeBuilder, TreeBuilderOpts};
use tokio::sync::Semaphore;

use super::failure::failed;
use crate::tools::ToolError;

/// Maximum number of bytes of a page that are parsed; further bytes are dropped.
const MAX_PAGE_BYTES: usize = 2 << 20;
/// Number of bytes parsed between two checks of the limits.
const CHUNK_BYTES: usize = 4 << 10;
/// Maximum number of nodes of a page.
const MAX_NODES: usize = 150_000;
/// Maximum number of attributes of an element; further attributes are dropped.
const MAX_ATTRIBUTES: usize = 32;
/// Maximum nesting depth of elements.
const MAX_DEPTH: usize = 256;
/// Maximum [`work`] of a page.
const MAX_WORK: usize = 200 << 20;
/// Fixed work of a node, in addition to its text.
const NODE_WORK: usize = 16;
/// Time limit for parsing.
const PARSE_TIMEOUT: Duration = Duration::from_secs(5);
/// Time limit for a page, including the wait for a permit.
const TOTAL_TIMEOUT: Duration = Duration::from_secs(20);

/// Permits for parsing, so that hostile pages occupy at most this many threads.
static PARSE_PERMITS: Semaphore = Semaphore::const_new(4);

/// Reason for not reading a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum PageRejection {
    #[error("this page cannot be read: its elements are nested too deeply")]
    Deep,
    #[error("this page cannot be read: it has too many elements")]
    Large,
    #[error("this page cannot be read: it takes too long")]
    Slow,
    #[error("this page cannot be read: its markup is broken")]
    Broken,
}

/// Parses a page and passes it to `reader`, on the blocking pool.
pub(super) async fn parse_with<T: Send + 'static>(
    html: String,
    reader: impl FnOnce(Document) -> T + Send + 'static,
) -> Result<T, ToolError> {
    let parsing = async {
        let permit = PARSE_PERMITS.acquire().await;
        let parsing = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            parsed(&html, Instant::now() + PARSE_TIMEOUT).map(reader)
        });
        parsing.await.unwrap_or(Err(PageRejection::Broken))
    };
    tokio::time::timeout(TOTAL_TIMEOUT, parsing)
        .await
        .unwrap_or(Err(PageRejection::Slow))
        .map_err(failed)
}

/// Parses a page; fails if it takes longer than `until` or if the tree exceeds a limit.
pub(super) fn parsed(html: &str, until: Instant) -> Result<Document, PageRejection> {
    // Same as in `Document::from`: scripts do not run, so `noscript` content counts.
    let options = TreeBuilderOpts {
        scripting_enabled: false,
        ..TreeBuilderOpts::default()
    };
    let builder = TreeBuilder::new(Document::default(), options);
    let parser = Tokenizer::new(
        BoundedBuilder {
            builder,
            full: Cell::new(false),
        },
        TokenizerOpts::default(),
    );
    let (mut rest, _) = split(html, MAX_PAGE_BYTES);
    let input = BufferQueue::default();
    while !rest.is_empty() {
        let (chunk, remaining) = split(rest, CHUNK_BYTES);
        input.push_back(chunk.into());
        // The tokenizer returns at the end of each script, for the script to be run.
        while !matches!(parser.feed(&input), TokenizerResult::Done) {}
        parser.sink.check_limits(until)?;
        rest = remaining;
    }
    parser.end();
    parser.sink.check_limits(until)?;
    let page = parser.sink.builder.sink;
    match work(&page) {
        Some(work) if work <= MAX_WORK => Ok(page),
        _ => Err(PageRejection::Deep),
    }
}

/// Splits a text after at most `max_bytes` bytes, at a character boundary.
fn split(text: &str, max_bytes: usize) -> (&str, &str) {
    let end = (0..=max_bytes.min(text.len()))
        .rev()
        .find(|at| text.is_char_boundary(*at));
    text.split_at(end.unwrap_or_default())
}

/// Builds a tree until it is full: a single tag can make the parser repeat thousands of elements
/// with all of their attributes.
struct BoundedBuilder {
    builder: TreeBuilder<NodeId, Document>,
    full: Cell<bool>,
}

impl TokenSink for BoundedBuilder {
    type Handle = NodeId;

    fn process_token(&self, mut token: Token, line: u64) -> TokenSinkResult<NodeId> {
        if self.full.get() {
            return TokenSinkResult::Continue;
        }
        if let Token::TagToken(tag) = &mut token {
            tag.attrs.truncate(MAX_ATTRIBUTES);
        }
        let result = self.builder.process_token(token, line);
        self.full.set(self.builder.sink.tree.len() > MAX_NODES);
        result
    }

    fn end(&self) {
        self.builder.end();
    }

    fn adjusted_current_node_present_but_not_in_html_namespace(&self) -> bool {
        self.builder
            .adjusted_current_node_present_but_not_in_html_namespace()
    }
}

impl BoundedBuilder {
    /// Checks the limits between chunks. A tree whose last branch is too deep is rejected early,
    /// because the parsing time grows with the square of the depth.
    fn check_limits(&self, until: Instant) -> Result<(), PageRejection> {
        let page = &self.builder.sink;
        // Parse errors are not used, and a page can contain any number of them.
        page.errors.borrow_mut().clear();
        let spine = std::iter::successors(Some(page.root()), |node| node.last_child());
        match () {
            () if self.full.get() => Err(PageRejection::Large),
            () if Instant::now() > until => Err(PageRejection::Slow),
            () if spine.take(MAX_DEPTH + 2).count() > MAX_DEPTH + 1 => Err(PageRejection::Deep),
            () => Ok(()),
        }
    }
}

/// Returns the total bytes of a page, where each byte counts once for every enclosing element,
/// because the extraction reads it that often. Returns `None` for a page that is too deep for
/// recursive code.
pub(super) fn work(page: &Document) -> Option<usize> {
    let (mut node, mut depth, mut work) = (page.root(), 0, 0);
    loop {
        let text = node.query_or(0, |node| {
            if let NodeData::Text { contents } = &node.data {
                contents.len()
            } else {
                0
            }
        });
        work += depth * (NODE_WORK + text);
        if depth > MAX_DEPTH {
            return None;
        }
        if let Some(child) = node.first_child() {
            (node, depth) = (child, depth + 1);
            continue;
        }
        node = loop {
            match (node.next_sibling(), node.parent()) {
                (Some(next), _) => break next,
                (None, Some(parent)) => (node, depth) = (parent, depth - 1),
                (None, None) => return Some(work),
            }
        };
    }
}

#[cfg(test)]
#[path = "tree_tests.rs"]
mod tests;

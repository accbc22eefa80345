//! A page's tree: built piece by piece, so that building it ends, and judged before anything sees it that recurses.

use std::cell::Cell;
use std::time::{Duration, Instant};

use dom_query::{Document, NodeData, NodeId};
use html5ever::TokenizerResult;
use html5ever::buffer_queue::BufferQueue;
use html5ever::tokenizer::{Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts};
use html5ever::tree_builder::{TreeBuilder, TreeBuilderOpts};
use tokio::sync::Semaphore;

use super::failed;
use crate::tools::ToolError;

/// The largest page that is parsed, in bytes; the rest is left out.
const LONGEST_PAGE: usize = 2 << 20;
/// How much is parsed between two looks at the clock, in bytes.
const PIECE: usize = 4 << 10;
/// The most nodes of a page.
const MOST_NODES: usize = 150_000;
/// The most attributes of an element; the rest is left out.
const MOST_ATTRIBUTES: usize = 32;
/// How many elements may stand inside of each other.
const DEEPEST: usize = 256;
/// The most [`work`] of a page.
const MOST_WORK: usize = 200 << 20;
/// What a node counts there besides its text.
const NODE_WORK: usize = 16;
/// How long parsing may take.
const PARSING: Duration = Duration::from_secs(5);
/// How long nobody waits longer for a page.
const LIMIT: Duration = Duration::from_secs(20);

/// How many pages are read at once, so that those made to hurt take no more threads than these.
static TURNS: Semaphore = Semaphore::const_new(4);

/// Why a page is not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Unfit {
    #[error("this page cannot be read: its elements are nested too deeply")]
    Deep,
    #[error("this page cannot be read: it has too many elements")]
    Large,
    #[error("this page cannot be read: it takes too long")]
    Slow,
    #[error("this page cannot be read: its markup is broken")]
    Broken,
}

/// Has a page read by `reader` without holding up the caller's thread.
pub(super) async fn with<T: Send + 'static>(
    html: String,
    reader: impl FnOnce(Document) -> T + Send + 'static,
) -> Result<T, ToolError> {
    let reading = async {
        let turn = TURNS.acquire().await;
        let reading = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            parsed(&html, Instant::now() + PARSING).map(reader)
        });
        reading.await.unwrap_or(Err(Unfit::Broken))
    };
    tokio::time::timeout(LIMIT, reading)
        .await
        .unwrap_or(Err(Unfit::Slow))
        .map_err(failed)
}

/// The tree of a page, if it is ready by `until` and small enough for all that may be done with it.
pub(super) fn parsed(html: &str, until: Instant) -> Result<Document, Unfit> {
    // As `Document::from` has it: nothing runs here that would make `noscript` mute.
    let options = TreeBuilderOpts {
        scripting_enabled: false,
        ..TreeBuilderOpts::default()
    };
    let builder = TreeBuilder::new(Document::default(), options);
    let parser = Tokenizer::new(
        Bounded {
            builder,
            full: Cell::new(false),
        },
        TokenizerOpts::default(),
    );
    let (mut rest, _) = split(html, LONGEST_PAGE);
    let input = BufferQueue::default();
    while !rest.is_empty() {
        let (piece, later) = split(rest, PIECE);
        input.push_back(piece.into());
        // At the end of a script it asks for it to be run.
        while !matches!(parser.feed(&input), TokenizerResult::Done) {}
        parser.sink.look(until)?;
        rest = later;
    }
    parser.end();
    parser.sink.look(until)?;
    let page = parser.sink.builder.sink;
    match work(&page) {
        Some(work) if work <= MOST_WORK => Ok(page),
        _ => Err(Unfit::Deep),
    }
}

/// The first `most` bytes of a text, or fewer where a character would be cut, and the rest.
fn split(text: &str, most: usize) -> (&str, &str) {
    let end = (0..=most.min(text.len()))
        .rev()
        .find(|at| text.is_char_boundary(*at));
    text.split_at(end.unwrap_or_default())
}

/// Builds a tree until it is full: one tag may have a parser repeat thousands of elements with all of their attributes.
struct Bounded {
    builder: TreeBuilder<NodeId, Document>,
    full: Cell<bool>,
}

impl TokenSink for Bounded {
    type Handle = NodeId;

    fn process_token(&self, mut token: Token, line: u64) -> TokenSinkResult<NodeId> {
        if self.full.get() {
            return TokenSinkResult::Continue;
        }
        if let Token::TagToken(tag) = &mut token {
            tag.attrs.truncate(MOST_ATTRIBUTES);
        }
        let result = self.builder.process_token(token, line);
        self.full.set(self.builder.sink.tree.len() > MOST_NODES);
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

impl Bounded {
    /// Whether to go on. A tree whose end is too deep is given up early: parsing it takes time that grows with the square of it.
    fn look(&self, until: Instant) -> Result<(), Unfit> {
        let page = &self.builder.sink;
        // Nobody reads of them, and a page may be one error after the other.
        page.errors.borrow_mut().clear();
        let way = std::iter::successors(Some(page.root()), |node| node.last_child());
        match () {
            () if self.full.get() => Err(Unfit::Large),
            () if Instant::now() > until => Err(Unfit::Slow),
            () if way.take(DEEPEST + 2).count() > DEEPEST + 1 => Err(Unfit::Deep),
            () => Ok(()),
        }
    }
}

/// The bytes of a page, each counted once for every element that it stands in, since what reads a page reads it that often; nothing
/// for a page that is too deep for the stack of who recurses.
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
        if depth > DEEPEST {
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

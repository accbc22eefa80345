//! Estimates the memory that a JSON text needs when it is parsed, and rejects texts that need too
//! much.

use std::ops::Range;

use serde_json::Value;

use crate::error::{ApiError, truncated};

/// Memory that every parsed body may need, in bytes.
///
/// Messages of agent clients need up to ten times their size, because most of their values are
/// short. 5,000 messages with 23 values each fit, and 10,000, the maximum of one request, with 8
/// values each (see the tests). The limit is below that of a body of the maximum size, so it does
/// not raise the maximum of a request.
const FLOOR: usize = 24 << 20;

/// Memory that a parsed body of more than 8 MiB may need, per byte of its text. With the text
/// itself, its request needs four times its size.
const PER_BYTE: usize = 3;

/// Maximum number of nested containers that the parser accepts.
pub(super) const MAX_DEPTH: usize = 127;

/// Memory of an element of a list.
const ELEMENT: usize = size_of::<Value>();
/// Memory of a member of an object: its hash, key and value, and its part of the index.
const MEMBER: usize = size_of::<(u64, String, Value)>() + 12;
/// Memory that the allocator adds to an allocation, on average.
const ALLOCATION: usize = 8;
/// Size from which the allocator retains a freed allocation for a while instead of reusing it.
const LARGE: usize = 64 << 10;

/// Returns the estimated memory of a JSON text when it is parsed, in bytes. Rejects a text that needs
/// too much. Ignores syntax errors, which the parser reports.
///
/// # Errors
/// [`ApiError::TooManyValues`] with the number of values, the limit, and the field that exceeds it.
pub(crate) fn check_parsed_size(text: &[u8]) -> Result<usize, ApiError> {
    let limit = FLOOR.max(text.len().saturating_mul(PER_BYTE));
    let size = parsed_size(text, limit);
    if size.bytes <= limit {
        return Ok(size.bytes);
    }
    let place = match size.key {
        Some(key) => format!(" in {}", truncated(&String::from_utf8_lossy(&text[key]))),
        None => String::new(),
    };
    Err(ApiError::TooManyValues(format!(
        "the request body has too many JSON values: the first {}{place} need more than {} MiB of memory, the limit for a body of this \
         size. Send fewer values, or several requests",
        size.values,
        limit >> 20,
    )))
}

/// Estimated size of a parsed text, or of its beginning that exceeds the limit.
#[derive(Debug, Default, PartialEq, Eq)]
struct ParsedSize {
    /// Number of values: containers and what they contain, without keys.
    values: usize,
    /// Maximum memory during the parse, in bytes.
    bytes: usize,
    /// Range of the last key of the outermost object.
    key: Option<Range<usize>>,
}

/// Container that is still open, or the text as a whole.
#[derive(Debug, Clone, Copy, Default)]
struct OpenContainer {
    kind: Kind,
    /// `true` if the next string is a key.
    expects_key: bool,
    /// Number of elements or members.
    length: usize,
    /// Number of elements or members that the allocated memory holds.
    capacity: usize,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Kind {
    #[default]
    Text,
    List,
    Object,
}

impl OpenContainer {
    fn new(kind: Kind) -> Self {
        Self {
            kind,
            expects_key: kind == Kind::Object,
            ..Self::default()
        }
    }

    /// Adds an element or a member. Returns the memory that the parser allocates for it and later
    /// ones.
    fn add(&mut self) -> usize {
        self.length += 1;
        if self.length <= self.capacity {
            return 0;
        }
        let old = self.capacity;
        let one = match self.kind {
            Kind::Text => return 0,
            Kind::List => ELEMENT,
            Kind::Object => MEMBER,
        };
        // The capacities of the vector and the hash table.
        self.capacity = match (self.kind, old) {
            (Kind::Object, 0) => 3,
            (Kind::Object, 3) => 7,
            (_, 0) => 4,
            _ => old * 2,
        };
        match old * one {
            0 => self.capacity * one + ALLOCATION,
            // The parser copies a full allocation to a larger one.
            copied if copied >= LARGE => self.capacity * one,
            copied => self.capacity * one - copied,
        }
    }
}

/// Estimates the size of a parsed text in one pass, without allocation. Stops when it exceeds
/// `limit` bytes, and where the containers are nested too deep for the parser.
fn parsed_size(text: &[u8], limit: usize) -> ParsedSize {
    let mut size = ParsedSize {
        bytes: ELEMENT,
        ..ParsedSize::default()
    };
    let mut open = [OpenContainer::default(); MAX_DEPTH + 1];
    let mut depth = 0;
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        let start = at;
        let current = &mut open[depth];
        at += 1;
        match byte {
            b' ' | b'\n' | b'\r' | b'\t' => continue,
            b':' => {
                current.expects_key = false;
                continue;
            }
            b',' => {
                current.expects_key = current.kind == Kind::Object;
                continue;
            }
            b']' | b'}' => {
                depth = depth.saturating_sub(1);
                continue;
            }
            b'"' => {
                let content = at..end_of_string(text, at);
                at = content.end + 1;
                if !content.is_empty() {
                    size.bytes += content.len() + ALLOCATION;
                }
                if current.expects_key {
                    size.bytes += current.add();
                    if depth == 1 {
                        size.key = Some(content);
                    }
                    continue;
                }
            }
            b'[' | b'{' => {}
            _ => at = end_of_word(text, at),
        }
        size.values += 1;
        if current.kind != Kind::Object {
            size.bytes += current.add();
        }
        if size.bytes > limit {
            break;
        }
        let kind = match text[start] {
            b'[' => Kind::List,
            b'{' => Kind::Object,
            _ => continue,
        };
        if depth == MAX_DEPTH {
            break;
        }
        depth += 1;
        open[depth] = OpenContainer::new(kind);
    }
    size
}

/// Returns the index of the quote that ends the string with the content from `at`, or the end of
/// the text.
fn end_of_string(text: &[u8], mut at: usize) -> usize {
    /// Bytes that are compared by one vector instruction.
    const BLOCK: usize = 32;
    let ends = |byte: &u8| matches!(byte, b'"' | b'\\');
    loop {
        let rest = text.get(at..).unwrap_or_default();
        let blocks = rest.chunks_exact(BLOCK);
        let plain =
            blocks.take_while(|block| !block.iter().fold(false, |any, byte| any | ends(byte)));
        let skipped = plain.count() * BLOCK;
        let Some(next) = rest[skipped..].iter().position(ends) else {
            return text.len();
        };
        at += skipped + next;
        if text[at] == b'"' {
            return at;
        }
        at += 2;
    }
}

/// Returns the index after the number, `true`, `false` or `null` that contains the byte before
/// `at`.
fn end_of_word(text: &[u8], at: usize) -> usize {
    let ends = |byte: &u8| {
        matches!(
            byte,
            b' ' | b'\n' | b'\r' | b'\t' | b',' | b':' | b'[' | b']' | b'{' | b'}' | b'"'
        )
    };
    let rest = text.get(at..).unwrap_or_default();
    rest.iter()
        .position(ends)
        .map_or(text.len(), |next| at + next)
}

#[cfg(test)]
#[path = "parsed_size_tests.rs"]
mod tests;

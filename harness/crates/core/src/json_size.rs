//! Size of a value as compact JSON, counted without building its text, texts in buffers of their
//! size, and the nesting of a text.

use std::borrow::Borrow;
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use serde::Serialize;
use serde::ser::Error as _;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};

/// Size of a text, in bytes, from which its buffer is allocated as a whole. A growing one needs up
/// to three times the size of the text.
pub(crate) const LARGE_TEXT: usize = 64 << 10;

/// Value that is larger than its limit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field} is limited to {limit} bytes as JSON, this one has {size}")]
pub struct TooLarge {
    /// Name of the field, or its path in the request.
    pub field: String,
    /// Maximum size in bytes.
    pub limit: usize,
    /// Size of the value in bytes.
    pub size: usize,
}

/// Rejects a value with more than `limit` bytes of compact JSON.
///
/// # Errors
/// [`TooLarge`] with the name `field` and the size of the value.
pub fn check_size<T: Serialize + ?Sized>(
    field: &str,
    value: &T,
    limit: usize,
) -> Result<(), TooLarge> {
    match size_beyond(value, limit) {
        None => Ok(()),
        Some(size) => Err(TooLarge {
            field: field.to_owned(),
            limit,
            size,
        }),
    }
}

/// Returns the size of a value in bytes of compact JSON if it exceeds `limit`. A value is visited
/// up to the limit; only one that exceeds it is counted to its end. Allocates no memory.
pub fn size_beyond<T: Serialize + ?Sized>(value: &T, limit: usize) -> Option<usize> {
    if counted(value, limit) <= limit {
        return None;
    }
    Some(counted(value, usize::MAX))
}

/// Merges `entries` into the object `before`, one level deep. With a limit, the result has at most
/// that many bytes of compact JSON; an object that is larger already may only become smaller.
///
/// # Errors
/// [`TooLarge`] with the name `field` and the size of the result.
pub fn merge_within(
    field: &str,
    mut before: Map<String, Value>,
    entries: Map<String, Value>,
    limit: Option<usize>,
) -> Result<Map<String, Value>, TooLarge> {
    let Some(limit) = limit.filter(|_| !entries.is_empty()) else {
        before.extend(entries);
        return Ok(before);
    };
    let size_before = size_beyond(&before, limit);
    before.extend(entries);
    match (check_size(field, &before, limit), size_before) {
        (Err(refused), Some(former)) if refused.size <= former => Ok(before),
        (checked, _) => checked.map(|()| before),
    }
}

/// Serializes a value. Visits a large one twice, to allocate a buffer of its size.
///
/// # Errors
/// The value cannot be serialized as JSON.
pub fn raw_value<T: Serialize + ?Sized>(value: &T) -> serde_json::Result<Box<RawValue>> {
    match size_beyond(value, LARGE_TEXT) {
        None => to_raw_value(value),
        Some(size) => raw_value_of_size(value, size),
    }
}

/// Serializes a value into a buffer of `size` bytes, which grows if the text is longer.
pub(crate) fn raw_value_of_size<T: Serialize + ?Sized>(
    value: &T,
    size: usize,
) -> serde_json::Result<Box<RawValue>> {
    let mut json = Vec::with_capacity(size);
    serde_json::to_writer(&mut json, value)?;
    let json = String::from_utf8(json).map_err(serde_json::Error::custom)?;
    RawValue::from_string(json)
}

/// Returns the nesting of JSON, without recursion. The number has no meaning for other input.
pub fn nesting(json: &[u8]) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    let (mut in_text, mut is_escaped) = (false, false);
    for byte in json {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if in_text => is_escaped = true,
            b'"' => in_text = !in_text,
            b'{' | b'[' if !in_text => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' if !in_text => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// Returns a JSON text as bytes that share its memory.
pub fn json_bytes<T>(json: Arc<T>) -> Bytes
where
    T: Borrow<RawValue> + ?Sized + Send + Sync + 'static,
{
    Bytes::from_owner(SharedJson(json))
}

/// Owner of bytes that are a JSON text.
struct SharedJson<T: ?Sized>(Arc<T>);

impl<T: Borrow<RawValue> + ?Sized> AsRef<[u8]> for SharedJson<T> {
    fn as_ref(&self) -> &[u8] {
        let json: &RawValue = (*self.0).borrow();
        json.get().as_bytes()
    }
}

/// Counts the bytes of a value until they exceed `limit`.
fn counted<T: Serialize + ?Sized>(value: &T, limit: usize) -> usize {
    let mut counter = Counter { count: 0, limit };
    // The counter fails beyond its limit, and the count states that.
    let _stopped = serde_json::to_writer(&mut counter, value);
    counter.count
}

/// Writer that counts bytes, and fails beyond its limit.
struct Counter {
    count: usize,
    limit: usize,
}

impl io::Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.count = self.count.saturating_add(bytes.len());
        if self.count > self.limit {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
#[path = "json_size_tests.rs"]
mod tests;

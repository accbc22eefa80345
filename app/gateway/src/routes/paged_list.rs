//! JSON list that is read from a store in parts, until it has the requested entries or is full.

use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use crate::error::ApiError;
use crate::responses::{JsonList, NEXT};

/// Range of entries to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Range {
    /// Entries before the range.
    pub(super) offset: usize,
    /// Number of entries.
    pub(super) limit: usize,
}

/// JSON list that is read in parts, so that memory is bounded by bytes and not by entries. Entries
/// that change their position between two parts are missing or repeated, as between two pages.
#[derive(Debug)]
pub(super) struct PagedList {
    list: JsonList,
    /// Entries before the next one.
    offset: usize,
    /// Entries that are still requested.
    rest: usize,
    /// Entries that are read beyond each part, to know whether others follow.
    ahead: usize,
    /// `true` if entries follow the last one that was read.
    has_more: bool,
    /// Entries up to the last one that was read.
    seen: usize,
    is_full: bool,
}

impl PagedList {
    /// Creates the list of `limit` entries after the first `offset` ones.
    pub(super) fn new(offset: usize, limit: usize) -> Self {
        Self {
            list: JsonList::default(),
            offset,
            rest: limit,
            ahead: 0,
            has_more: limit > 0,
            seen: offset,
            is_full: false,
        }
    }

    /// Creates a list like [`new`](Self::new) that becomes a [page](Self::into_page).
    pub(super) fn page(offset: usize, limit: usize) -> Self {
        Self {
            ahead: 1,
            ..Self::new(offset, limit)
        }
    }

    /// Returns the range to read next; `None` if the list is complete.
    pub(super) fn next_part(&self) -> Option<Range> {
        let part = self.list.part(self.rest).min(self.rest);
        let range = Range {
            offset: self.offset,
            limit: part + self.ahead,
        };
        (part > 0 && !self.is_full).then_some(range)
    }

    /// Adds the entries of a part. Those without JSON are omitted.
    pub(super) fn add<T, J: Serialize>(
        &mut self,
        part: Range,
        read: &[T],
        to_json: impl Fn(&T) -> Option<J>,
    ) -> Result<(), ApiError> {
        let asked = part.limit - self.ahead;
        self.has_more = read.len() >= part.limit;
        if read.is_empty() {
            self.rest = 0;
            return Ok(());
        }
        let of_part = &read[..read.len().min(asked)];
        for (number, entry) in of_part.iter().enumerate() {
            if let Some(json) = to_json(entry) {
                let pushed = self.list.push(&json);
                pushed.map_err(|error| ApiError::Internal(error.to_string()))?;
            }
            if self.list.is_full() {
                self.is_full = true;
                self.offset += number + 1;
                self.rest -= number + 1;
                self.has_more |= number + 1 < of_part.len();
                self.seen = self.offset;
                return Ok(());
            }
        }
        // A part may be short, because damaged rows are omitted: the next one may have entries.
        self.seen = part.offset + of_part.len();
        self.offset += if self.has_more { asked } else { part.limit };
        self.rest -= asked;
        Ok(())
    }

    /// Returns a response with an object whose only field is the list.
    pub(super) fn into_object(self, field: &'static str) -> Response {
        self.into_cut_response(|list| {
            let mut json = list.into_json();
            json.splice(..0, format!("{{\"{field}\":").into_bytes());
            json.push(b'}');
            let content_type = HeaderValue::from_static("application/json");
            ([(CONTENT_TYPE, content_type)], json).into_response()
        })
    }

    /// Returns a response that names the next page only if the list was cut because it is full.
    fn into_cut_response(self, to_response: impl FnOnce(JsonList) -> Response) -> Response {
        let is_cut = self.is_full && self.has_more && self.rest > 0;
        let mut response = to_response(self.list);
        if is_cut {
            let next = HeaderValue::from(self.offset);
            response.headers_mut().insert(NEXT, next);
        }
        response
    }

    /// Returns a [page](Self::page) with the pagination headers of searches. The total is exact on
    /// the last page only; before it means "at least one more".
    pub(super) fn into_page(self) -> Response {
        let (offset, has_more) = (self.offset, self.has_more);
        let mut response = self.list.into_response();
        let total = self.seen + usize::from(has_more);
        let headers = response.headers_mut();
        headers.insert("x-pagination-total", HeaderValue::from(total));
        if has_more {
            headers.insert(NEXT, HeaderValue::from(offset));
        }
        response
    }
}

impl IntoResponse for PagedList {
    fn into_response(self) -> Response {
        self.into_cut_response(JsonList::into_response)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads numbers from a store of `stored` entries, each with `size` bytes, and returns the
    /// numbers of entries of all parts.
    fn read(list: &mut PagedList, stored: usize, size: usize) -> Vec<usize> {
        let mut parts = Vec::new();
        while let Some(part) = list.next_part() {
            let end = stored.min(part.offset + part.limit);
            let read: Vec<usize> = (part.offset.min(end)..end).collect();
            let to_json = |_: &usize| Some("x".repeat(size));
            list.add(part, &read, to_json).expect("JSON");
            parts.push(read.len());
        }
        parts
    }

    fn header(response: &Response, name: &str) -> Option<usize> {
        response.headers().get(name)?.to_str().ok()?.parse().ok()
    }

    #[test]
    fn small_entries_are_read_in_growing_parts() {
        let mut list = PagedList::page(5, 100);
        assert_eq!(read(&mut list, 1_000, 10), [17, 65, 21]);
        let page = list.into_page();
        assert_eq!(header(&page, "x-pagination-next"), Some(105));
        assert_eq!(header(&page, "x-pagination-total"), Some(106));
    }

    #[test]
    fn last_page_has_an_exact_total() {
        let mut list = PagedList::page(5, 100);
        assert_eq!(read(&mut list, 15, 10), [10, 0]);
        let page = list.into_page();
        assert_eq!(header(&page, "x-pagination-next"), None);
        assert_eq!(header(&page, "x-pagination-total"), Some(15));
    }

    #[test]
    fn large_entries_are_read_in_small_parts_until_the_list_is_full() {
        let mut list = PagedList::new(0, 1_000);
        let parts = read(&mut list, 1_000, 1 << 20);
        assert!(parts.iter().all(|part| *part <= 16), "{parts:?}");
        let response = list.into_response();
        assert_eq!(header(&response, "x-pagination-next"), Some(32));
    }

    #[test]
    fn entries_after_damaged_ones_are_listed() {
        let mut list = PagedList::page(0, 100);
        while let Some(part) = list.next_part() {
            let end = 40.min(part.offset + part.limit);
            let sound = (part.offset.min(end)..end).filter(|n| *n != 3);
            let read: Vec<usize> = sound.collect();
            list.add(part, &read, |n| Some(*n)).expect("JSON");
        }
        let listed: Vec<usize> = serde_json::from_slice(&list.list.into_json()).expect("a list");
        assert!(listed.iter().copied().eq((0..40).filter(|n| *n != 3)));
    }

    #[test]
    fn empty_list_reads_once() {
        assert_eq!(read(&mut PagedList::new(0, 10), 0, 1), [0]);
        assert_eq!(read(&mut PagedList::new(0, 0), 10, 1), [0; 0]);
    }
}

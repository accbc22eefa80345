//! JSON lists of large entries, which are serialized one by one and limited in bytes.

use axum::http::{HeaderName, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

/// Number of bytes after which a list takes no further entries.
const MAX_BYTES: usize = 32 << 20;
/// Number of bytes of the entries that are read at a time.
const PART_BYTES: usize = 8 << 20;
/// Number of entries that are read first, when their size is not known yet.
const FIRST_PART: usize = 16;
/// Maximum number of entries that are read at a time.
const MAX_PART: usize = 1_000;
/// Header with the cursor of the next page.
pub(crate) const NEXT: HeaderName = HeaderName::from_static("x-pagination-next");

/// JSON list. Each entry is serialized when it is added, so that its tree can be dropped before the
/// next one is built.
#[derive(Debug, Default)]
pub struct JsonList {
    /// Entries with a comma after each.
    entries: Vec<u8>,
    /// Number of entries.
    count: usize,
}

impl JsonList {
    /// Adds an entry.
    ///
    /// # Errors
    /// Fails if it cannot be serialized.
    pub fn push(&mut self, entry: &impl Serialize) -> serde_json::Result<()> {
        if self.entries.is_empty() {
            self.entries.push(b'[');
        }
        serde_json::to_writer(&mut self.entries, entry)?;
        self.entries.push(b',');
        self.count += 1;
        Ok(())
    }

    /// Returns how many further entries to read at a time, by the size of those before. The first
    /// time, it is `first` or fewer.
    pub fn part(&self, first: usize) -> usize {
        match self.entries.len().checked_div(self.count) {
            Some(size) => {
                let fitting = PART_BYTES / size.max(1);
                fitting.clamp(1, MAX_PART.min(4 * self.count))
            }
            None => first.min(FIRST_PART),
        }
    }

    /// Returns the list as JSON.
    pub fn into_json(mut self) -> Vec<u8> {
        match self.entries.last_mut() {
            Some(comma) => *comma = b']',
            None => self.entries.extend_from_slice(b"[]"),
        }
        self.entries
    }

    /// Reports whether the list takes no further entries.
    pub fn is_full(&self) -> bool {
        self.entries.len() >= MAX_BYTES
    }

    /// Returns a response that names the cursor of the next page, because entries are missing.
    pub fn into_page(self, next: &str) -> Response {
        let mut response = self.into_response();
        match HeaderValue::from_str(next) {
            Ok(next) => {
                response.headers_mut().insert(NEXT, next);
            }
            Err(error) => tracing::error!(%error, next, "cursor cannot be a header"),
        }
        response
    }
}

impl IntoResponse for JsonList {
    fn into_response(self) -> Response {
        let json = HeaderValue::from_static("application/json");
        ([(header::CONTENT_TYPE, json)], self.into_json()).into_response()
    }
}

#[cfg(test)]
mod tests {
    use axum::body::to_bytes;
    use serde_json::json;

    use super::*;

    async fn body(response: Response) -> String {
        let bytes = to_bytes(response.into_body(), usize::MAX).await;
        String::from_utf8(bytes.expect("a body").to_vec()).expect("UTF-8")
    }

    #[tokio::test]
    async fn list_is_the_json_of_its_entries() {
        assert_eq!(body(JsonList::default().into_response()).await, "[]");
        let mut list = JsonList::default();
        for entry in [json!({ "a": 1 }), json!([]), json!("x")] {
            list.push(&entry).expect("JSON");
        }
        assert!(!list.is_full());
        let response = list.into_response();
        assert_eq!(response.headers()[header::CONTENT_TYPE], "application/json");
        assert_eq!(body(response).await, r#"[{"a":1},[],"x"]"#);
    }

    #[test]
    fn parts_have_fewer_entries_the_larger_they_are() {
        let mut list = JsonList::default();
        assert_eq!((list.part(1_000), list.part(2)), (FIRST_PART, 2));
        list.push(&"small").expect("JSON");
        assert_eq!(list.part(2), 4);
        list.push(&"x".repeat(PART_BYTES)).expect("JSON");
        assert_eq!(list.part(2), 1);
    }

    #[tokio::test]
    async fn full_list_names_its_next_page() {
        let mut list = JsonList::default();
        list.push(&"x".repeat(MAX_BYTES)).expect("JSON");
        assert!(list.is_full());
        let response = list.into_page("c1");
        assert_eq!(response.headers()[NEXT], "c1");
        assert_eq!(body(response).await.len(), MAX_BYTES + 4);
    }
}

//! Conditional requests: the entity tag of a flow is the hash of its content.

use axum::http::{HeaderMap, HeaderValue, header};

/// Precondition of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Precondition {
    /// None.
    None,
    /// The current content must have one of these hashes.
    OneOf(Vec<String>),
}

impl Precondition {
    /// Reads `If-Match`. `*` names any existing flow, which each change requires anyway. Weak tags
    /// match nothing.
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let mut lists = headers.get_all(header::IF_MATCH).iter().peekable();
        if lists.peek().is_none() {
            return Self::None;
        }
        let tags: Vec<&str> = lists
            .filter_map(|value| value.to_str().ok())
            .flat_map(|list| list.split(','))
            .map(str::trim)
            .collect();
        if tags.contains(&"*") {
            return Self::None;
        }
        let hash = |tag: &&str| Some(tag.strip_prefix('"')?.strip_suffix('"')?.to_owned());
        Self::OneOf(tags.iter().filter_map(hash).collect())
    }

    /// Returns `true` if a content with this hash may be changed.
    pub(super) fn allows(&self, content_hash: &str) -> bool {
        match self {
            Self::None => true,
            Self::OneOf(hashes) => hashes.iter().any(|hash| hash == content_hash),
        }
    }
}

/// Returns the header with the entity tag.
pub(super) fn etag(content_hash: &str) -> (header::HeaderName, HeaderValue) {
    let value = HeaderValue::from_str(&format!("\"{content_hash}\""))
        .unwrap_or_else(|_| HeaderValue::from_static("\"\""));
    (header::ETAG, value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn if_match_lists_strong_tags() {
        let allows = |values: &[&str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(header::IF_MATCH, value.parse().unwrap());
            }
            Precondition::of(&headers).allows("a1")
        };
        for values in [
            &[][..],
            &["*"],
            &[r#""a1""#],
            &[r#""b2", "a1""#],
            &[r#""b2""#, r#""a1""#],
        ] {
            assert!(allows(values), "{values:?}");
        }
        for values in [&[""][..], &["a1"], &[r#"W/"a1""#], &[r#""a""#]] {
            assert!(!allows(values), "{values:?}");
        }
    }
}

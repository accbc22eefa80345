//! Whether a reader has a file already, by the tags that it knows.

use axum::http::{HeaderMap, header};

/// Whether `If-None-Match` names `tag`: alone or in a list, weakly or not, or as any.
pub(super) fn is_known(headers: &HeaderMap, tag: &str) -> bool {
    let lists = headers
        .get_all(header::IF_NONE_MATCH)
        .iter()
        .filter_map(|value| value.to_str().ok());
    lists
        .flat_map(|list| list.split(','))
        .map(str::trim)
        .any(|known| known == "*" || known.strip_prefix("W/").unwrap_or(known) == tag)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_known_in_every_form_that_readers_send() {
        let known = |lists: &[&str]| {
            let mut headers = HeaderMap::new();
            for list in lists {
                headers.append(header::IF_NONE_MATCH, list.parse().unwrap());
            }
            is_known(&headers, r#""a1""#)
        };
        for said in [
            &[r#""a1""#][..],
            &[r#"W/"a1""#],
            &[r#""b2", "a1""#],
            &[r#""b2",W/"a1" "#],
            &["*"],
            &[r#""b2""#, r#""a1""#],
        ] {
            assert!(known(said), "{said:?}");
        }
        for other in [
            &[][..],
            &[""],
            &["a1"],
            &[r#""a12""#],
            &[r#""b2", W/"c3""#],
            &[r#"w/"a1""#],
        ] {
            assert!(!known(other), "{other:?}");
        }
    }
}

//! Entity tags of conditional requests.

use axum::http::{HeaderMap, header};

/// `true` if `If-None-Match` names `tag`: alone or in a list, weak or strong, or as `*`.
pub(super) fn matches_tag(headers: &HeaderMap, tag: &str) -> bool {
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
    fn tag_matches_in_every_client_form() {
        let known = |lists: &[&str]| {
            let mut headers = HeaderMap::new();
            for list in lists {
                headers.append(header::IF_NONE_MATCH, list.parse().unwrap());
            }
            matches_tag(&headers, r#""a1""#)
        };
        for lists in [
            &[r#""a1""#][..],
            &[r#"W/"a1""#],
            &[r#""b2", "a1""#],
            &[r#""b2",W/"a1" "#],
            &["*"],
            &[r#""b2""#, r#""a1""#],
        ] {
            assert!(known(lists), "{lists:?}");
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

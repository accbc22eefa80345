//! Tests of the text form of namespaces, and of patterns.

use super::*;

fn labels(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

fn space(text: &str) -> Namespace {
    Namespace::new(labels(text)).unwrap()
}

#[test]
fn text_round_trips_and_range_covers_descendants() {
    for text in ["", "a", "a b", "a.".trim_end_matches('.'), "ü 😀"] {
        assert_eq!(Namespace::from_text(&space(text).to_text()), space(text));
    }
    let (from, to) = space("a b").range();
    let to = to.unwrap();
    for within in ["a b", "a b c", "a b ~ z", "a b !"] {
        let text = space(within).to_text();
        assert!(
            from <= text && text < to && space(within).is_within(&space("a b")),
            "{within}"
        );
    }
    for without in ["a", "a b! c", "a bc", "a a", "b", "a b/"] {
        let text = space(without).to_text();
        let is_in_range = from <= text && text < to;
        assert!(
            !is_in_range && !space(without).is_within(&space("a b")),
            "{without}"
        );
    }
    assert_eq!(space("").range(), (String::new(), None));
}

#[test]
fn empty_and_dotted_labels_are_rejected() {
    let refused = |label: &str| Namespace::new(vec![label.to_owned()]).unwrap_err();
    assert_eq!(
        refused("a.b").to_string(),
        "Namespace label 'a.b' must be a non-empty string without periods"
    );
    assert_eq!(refused(""), InvalidItemPath::Label(String::new()));
    assert_eq!(refused("\0"), InvalidItemPath::Nul);
    assert_eq!(
        refused(&"x".repeat(MAX_PATH_BYTES)),
        InvalidItemPath::TooLong
    );
    assert_eq!(validate_key("\0".to_owned()), Err(InvalidItemPath::Nul));
}

#[test]
fn wildcards_match_any_label_and_depth_truncates() {
    let all = ["a b c", "a b d", "a x c", "b b c"].map(space);
    let results = |query: NamespaceQuery| {
        let query = NamespaceQuery { limit: 10, ..query };
        query
            .apply(
                all.iter()
                    .filter(|one| one.is_within(&query.common_prefix()))
                    .cloned(),
            )
            .iter()
            .map(|one| one.labels().join(" "))
            .collect::<Vec<_>>()
    };
    let query = |prefix, suffix| NamespaceQuery {
        prefix: labels(prefix),
        suffix: labels(suffix),
        ..NamespaceQuery::default()
    };
    assert_eq!(results(query("a * c", "")), ["a b c", "a x c"]);
    assert_eq!(results(query("* b", "c")), ["a b c", "b b c"]);
    assert_eq!(results(query("a b c d", "")), [""; 0]);
    assert_eq!(
        results(NamespaceQuery {
            max_depth: Some(2),
            ..query("a", "")
        }),
        ["a b", "a x"]
    );
    assert_eq!(
        results(NamespaceQuery {
            offset: 1,
            ..query("a", "")
        }),
        ["a b d", "a x c"]
    );
}

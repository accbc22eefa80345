//! Namespaces: where items stand, as labels and as the text that stores sort by.

/// What a store's index holds of a namespace's text, and of a key, in bytes.
pub const MOST_PLACE_BYTES: usize = 1024;

/// A path of labels. As text every label is followed by a dot, which no label holds: what is below a namespace is exactly what
/// its text begins.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Namespace(Vec<String>);

/// Labels or keys that no item can have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidPlace {
    /// The text of labels would be ambiguous.
    #[error("Namespace label '{0}' must be a non-empty string without periods")]
    Label(String),
    /// No store can hold it.
    #[error("Namespace and key must not be longer than {MOST_PLACE_BYTES} bytes each")]
    TooLong,
    /// No store can hold it.
    #[error("Namespace and key must not contain NUL characters")]
    Nul,
    /// An item stands somewhere.
    #[error("Namespace cannot be empty")]
    Empty,
}

impl Namespace {
    /// A namespace of these labels. No labels at all are the place above all others.
    pub fn new(labels: Vec<String>) -> Result<Self, InvalidPlace> {
        if let Some(label) = labels
            .iter()
            .find(|label| label.is_empty() || label.contains('.'))
        {
            return Err(InvalidPlace::Label(label.chars().take(80).collect()));
        }
        if labels.iter().any(|label| label.contains('\0')) {
            return Err(InvalidPlace::Nul);
        }
        if labels.iter().map(|label| label.len() + 1).sum::<usize>() > MOST_PLACE_BYTES {
            return Err(InvalidPlace::TooLong);
        }
        Ok(Self(labels))
    }

    /// The labels, outermost first.
    pub fn labels(&self) -> &[String] {
        &self.0
    }

    /// Whether it has no labels.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether it is `prefix` or below it.
    pub fn is_within(&self, prefix: &Self) -> bool {
        self.0.starts_with(&prefix.0)
    }

    /// The text that stores keep.
    pub fn to_text(&self) -> String {
        self.0
            .iter()
            .flat_map(|label| [label.as_str(), "."])
            .collect()
    }

    /// Reads the text that a store kept.
    pub fn from_text(text: &str) -> Self {
        Self(text.split_terminator('.').map(str::to_owned).collect())
    }

    /// The texts of everything within: from the first, up to but not including the second, if that is given.
    pub fn range(&self) -> (String, Option<String>) {
        let first = self.to_text();
        // The character after the dot.
        let end = first.strip_suffix('.').map(|stem| format!("{stem}/"));
        (first, end)
    }
}

/// A key that stores can keep.
pub fn checked_key(key: String) -> Result<String, InvalidPlace> {
    match key {
        key if key.contains('\0') => Err(InvalidPlace::Nul),
        key if key.len() > MOST_PLACE_BYTES => Err(InvalidPlace::TooLong),
        key => Ok(key),
    }
}

/// Which namespaces are wanted. `*` as a label of a pattern stands for any label.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NamespaceQuery {
    /// How they begin.
    pub prefix: Vec<String>,
    /// How they end.
    pub suffix: Vec<String>,
    /// Cut to so many labels; what becomes equal is shown once.
    pub max_depth: Option<usize>,
    /// At most so many.
    pub limit: usize,
    /// After so many others.
    pub offset: usize,
}

impl NamespaceQuery {
    /// The namespace that all wanted ones are within.
    pub fn head(&self) -> Namespace {
        Namespace(
            self.prefix
                .iter()
                .take_while(|label| *label != "*")
                .cloned()
                .collect(),
        )
    }

    /// Whether a namespace is wanted.
    pub fn matches(&self, namespace: &Namespace) -> bool {
        let labels = namespace.labels();
        let fits = |pattern: &[String], part: &[String]| {
            pattern
                .iter()
                .zip(part)
                .all(|(wanted, label)| wanted == "*" || wanted == label)
        };
        let (front, back) = (self.prefix.len(), self.suffix.len());
        front <= labels.len()
            && back <= labels.len()
            && fits(&self.prefix, &labels[..front])
            && fits(&self.suffix, &labels[labels.len() - back..])
    }

    /// The answer, from all namespaces within [`NamespaceQuery::head`] in the order of their texts.
    pub fn answer(&self, namespaces: impl Iterator<Item = Namespace>) -> Vec<Namespace> {
        let depth = self.max_depth.unwrap_or(usize::MAX);
        let mut shown: Vec<Namespace> = namespaces
            .filter(|namespace| self.matches(namespace))
            .map(|namespace| Namespace(namespace.0.into_iter().take(depth).collect()))
            .collect();
        // What was cut alike stands together: texts of one beginning sort side by side.
        shown.dedup();
        shown
            .into_iter()
            .skip(self.offset)
            .take(self.limit)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    fn space(text: &str) -> Namespace {
        Namespace::new(labels(text)).unwrap()
    }

    #[test]
    fn the_text_comes_back_and_its_range_holds_what_is_within() {
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
    fn labels_are_never_empty_and_hold_no_dots() {
        let refused = |label: &str| Namespace::new(vec![label.to_owned()]).unwrap_err();
        assert_eq!(
            refused("a.b").to_string(),
            "Namespace label 'a.b' must be a non-empty string without periods"
        );
        assert_eq!(refused(""), InvalidPlace::Label(String::new()));
        assert_eq!(refused("\0"), InvalidPlace::Nul);
        assert_eq!(
            refused(&"x".repeat(MOST_PLACE_BYTES)),
            InvalidPlace::TooLong
        );
        assert_eq!(checked_key("\0".to_owned()), Err(InvalidPlace::Nul));
    }

    #[test]
    fn stars_stand_for_any_label_and_depth_cuts() {
        let all = ["a b c", "a b d", "a x c", "b b c"].map(space);
        let shown = |query: NamespaceQuery| {
            let query = NamespaceQuery { limit: 10, ..query };
            query
                .answer(
                    all.iter()
                        .filter(|one| one.is_within(&query.head()))
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
        assert_eq!(shown(query("a * c", "")), ["a b c", "a x c"]);
        assert_eq!(shown(query("* b", "c")), ["a b c", "b b c"]);
        assert_eq!(shown(query("a b c d", "")), [""; 0]);
        assert_eq!(
            shown(NamespaceQuery {
                max_depth: Some(2),
                ..query("a", "")
            }),
            ["a b", "a x"]
        );
        assert_eq!(
            shown(NamespaceQuery {
                offset: 1,
                ..query("a", "")
            }),
            ["a b d", "a x c"]
        );
    }
}
